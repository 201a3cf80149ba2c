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
