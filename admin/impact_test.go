package admin_test

import (
	"testing"
	"time"

	"keep-proxy/admin/client"
)

func TestImpact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first := w.open("order-1")
	applied := w.apply(w.claim(transfer(&first.Run)), 201, "{}")
	idle := w.open("order-3")
	w.clock.advance(time.Hour)
	second, lost := w.unknown("order-2")
	for _, c := range []struct {
		name   string
		filter client.Filter
		want   []string
	}{
		{"by connector", client.Filter{Connector: "bank"}, []string{lost.ID, applied.ID}},
		{"by the version of its file", client.Filter{Connector: "bank", Version: applied.ConnectorVersion}, []string{lost.ID, applied.ID}},
		{"by another version", client.Filter{Connector: "bank", Version: 99}, nil},
		{"by run", client.Filter{Run: first.ID}, []string{applied.ID}},
		{"by time", client.Filter{Since: "30m"}, []string{lost.ID}},
		{"until a time", client.Filter{Until: "30m"}, []string{applied.ID}},
		{"by time and run", client.Filter{Since: "30m", Run: first.ID}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := w.client.Impact(t.Context(), c.filter)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, touched := range got {
				ids = append(ids, touched.Mutation)
			}
			if diff := different(ids, c.want); diff != "" {
				t.Error(diff)
			}
		})
	}
	got, err := w.client.Impact(t.Context(), client.Filter{Run: first.ID})
	if err != nil || got[0].Item != "order-1" || got[0].ItemState != "open" || got[0].Status != 201 || got[0].State != "applied" || got[0].Dispatches != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	_ = second
	for query, words := range map[string]string{
		"": "nothing is asked about", "?version=1": "without connector", "?connector=a&version=x": "no number", "?until=soon": "neither a time",
		"?since=1h&until=2h": "before since",
	} {
		w.refused(ask{path: "/v1/impact" + query}, 400, "bad-request", words)
	}
	// That nothing was touched is an answer about a run that there was.
	w.refused(ask{path: "/v1/impact?run=r-nobody"}, 404, "not-found", "There is no run")
	if got, err = w.client.Impact(t.Context(), client.Filter{Run: idle.ID}); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v; want nothing of a run that did nothing", got, err)
	}
}
