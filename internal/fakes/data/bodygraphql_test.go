package data_test

import (
	"testing"

	"keep-proxy/internal/fakes/apitest"
)

func TestLinearMakesWhatTheFirstFieldAsksFor(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, load(t, "../../../connectors/fakes/linear.yaml"))
	post := func(body string) apitest.Reply {
		return b.Do("POST", "/graphql", body, "Authorization", "lin_api", "Content-Type", "application/json")
	}
	const create = `{"query":"mutation M($in: In!, $t: String) { made: issueCreate(input: $in, note: [1, $t, {a: E}]) { success } }","variables":{"in":{"teamId":"t1","title":"It broke","id":"own"}}}`
	post(create).Is(200, `"made":{"__typename":"IssuePayload"`)
	post(create).Is(400, "taken")
	post(`{"query":"query A { viewer { id } } query B($id: ID) { all: issues(filter: {id: {eq: $id}}) { nodes { id } } }","operationName":"B","variables":{"id":"own"}}`).Is(200, `"It broke"`)
	post(`{"query":"{ issues(filter: {id: {eq: \"other\"}}) { nodes { id } } }"}`).Is(200, `"nodes":[]`)
	post(`{"query":"mutation {"}`).Is(404, "")
	if n := b.Counted().Effects("issue:t1:It broke"); n != 1 {
		t.Errorf("%d effects", n)
	}
}
