package rules

import (
	"strconv"
	"strings"
	"testing"
)

// What an expression reads while it goes through a list is made for CEL once, and not at every
// element: a body of some megabytes would keep a processor busy for minutes. It is counted in
// pieces of memory, as times are those of the machine.
//
//nolint:paralleltest // it counts what the whole process allocates
func TestWhatIsReadAtEveryElementIsMadeOnce(t *testing.T) {
	const elements, rest = 300, 5000
	items := `"items":[` + strings.TrimSuffix(strings.Repeat(`{"c":"eur"},`, elements), ",") + `]`
	long := `"rest":[` + strings.TrimSuffix(strings.Repeat(`[1],`, rest), ",") + `]`
	body := `{"currency":"eur",` + items + `,` + long + `}`
	pairs := make([]string, rest)
	for i := range pairs {
		pairs[i] = "n" + strconv.Itoa(i) + "=eur"
	}
	found, err := parseJSON([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{
		"json.items.all(i, i.c == json.currency)",
		"found.items.all(i, i.c == found.currency)",
		"response.json.items.all(i, i.c == response.json.currency)",
		"json.items.all(i, response.text.size() > 0)",
		"json.items.all(i, i.c == query_all.n7[0])",
		"query_all.all(name, query_all.size() > 0)",
		"json.items.all(i, body_sha256 != i.c)",
	} {
		e, err := compileExpr(source, inFound)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		req := request(t, "POST https://api.test/x?"+strings.Join(pairs[:elements], "&"), body)
		made := testing.AllocsPerRun(1, func() {
			s := &scope{req: req, found: found, resp: newAnswer(&Response{Status: 200, Body: []byte(body), Complete: true})}
			if holds, err := e.test(s); err != nil || !holds {
				t.Fatalf("%s: %t, %v", source, holds, err)
			}
		})
		if most := 200_000.0; made > most {
			t.Errorf("%s makes %.0f pieces of memory of a body of %d bytes, want less than %.0f", source, made, len(body), most)
		}
	}
}

// What CEL counts by itself it gives up counting at the fifth level and at 10,000 values.
func TestDeepAndLongListsAreGoneThrough(t *testing.T) {
	t.Parallel()
	deep := `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"id":"c1","method":{"card":{"checks":{"cvc":"pass"}}}},`, 100), ",") + `]}`
	long := `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"id":"c1","labels":[`+strings.Repeat("1,", 499)+`1]},`, 100), ",") + `]}`
	for _, body := range []string{deep, long} {
		for _, source := range []string{
			"json.items.size() == 100", "json.items.all(i, i.id == 'c1')", "last(json.items).id == 'c1'", "json.items.filter(i, i.id == 'c1').size() == 100",
			"(json.items + json.items).size() == 200", "json == json && json.items[0] in json.items", "'items' in json && type(json) == map && json.?items.hasValue()",
			"response.json.items.map(i, i.id).distinct() == ['c1']",
		} {
			e, err := compileExpr(source, inAnswer)
			if err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			s := &scope{req: request(t, "POST https://api.test/x", body), resp: newAnswer(&Response{Status: 200, Body: []byte(body), Complete: true})}
			if holds, err := e.test(s); err != nil || !holds {
				t.Errorf("%s of a body of %d bytes: %t, %v", source, len(body), holds, err)
			}
		}
	}
}

// What takes more than it may is an error, and not a wait.
func TestAnExpressionThatCostsTooMuchIsAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		elements     int
		source, part string
	}{
		{3000, "json.items.all(i, json.items.all(j, i == j))", "cost limit"},
		{3000, "json.items.map(i, json.items).size() > 0", "memory limit"},
		{800, "json.items.map(i, json.items)", "too many values"},
	} {
		e, err := compileExpr(c.source, inRequest)
		if err != nil {
			t.Fatalf("%s: %v", c.source, err)
		}
		body := `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"c":"eur"},`, c.elements), ",") + `]}`
		if _, _, err := e.eval(&scope{req: request(t, "POST https://api.test/x", body)}); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v, want %q", c.source, err, c.part)
		}
	}
}
