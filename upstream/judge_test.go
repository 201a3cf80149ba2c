package upstream

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
)

// defaults is docs/semantics.md §5 once more, status by status, for a whole answer
// to a POST.
var defaults = func() map[int]Verdict {
	table := map[int]Verdict{}
	put := func(v Verdict, statuses ...int) {
		for _, s := range statuses {
			table[s] = v
		}
	}
	span := func(v Verdict, from, to int) {
		for s := from; s <= to; s++ {
			table[s] = v
		}
	}
	uncertain := func(reason string) Verdict { return Verdict{Class: "indeterminate", Reason: reason} }
	failed := func(class verdict.Class, reason string) Verdict {
		return Verdict{Kind: Failed, Class: class, Reason: reason}
	}

	span(uncertain("no complete answer head was read after bytes had been sent"), -1, 199)
	span(uncertain("a 2xx status that does not say what happened"), 200, 299)
	span(uncertain("a redirect that does not say what happened"), 300, 399)
	span(uncertain("unknown status"), 400, 499)
	span(uncertain("a status that a gateway may give after the upstream committed"), 500, 599)
	span(uncertain("unknown status"), 600, 999)
	put(Verdict{Kind: Applied, Reason: "success status"}, 200, 201, 202, 204, 303)
	put(failed("logic", "redirected with method and body kept; not done at this host, and not followed"), 307, 308)
	put(failed("logic", "the upstream refuses the request as it is"),
		400, 405, 406, 411, 413, 414, 415, 416, 417, 421, 424, 426, 428, 431, 451, 501, 505, 511)
	put(failed("permission", "the upstream denies permission"), 401, 403, 407)
	put(failed("precondition", "the upstream refuses under present circumstances"), 402, 404, 410, 422)
	put(failed("transient", "the upstream asks to try again later"), 425, 429)
	put(uncertain("a status that a gateway may give after the upstream committed"), 408, 409, 412, 499)
	return table
}()

func TestDefaultTable(t *testing.T) {
	t.Parallel()
	for status := -1; status <= 999; status++ {
		ev := Evidence{BytesWritten: 1, Head: true, Status: status, BodyComplete: true}
		want := defaults[status]
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", ""} {
			want := want
			if method == "DELETE" && (status == 404 || status == 410) {
				want = Verdict{Class: "indeterminate", Reason: "not found or gone, which may be this deletion's own work"}
			}
			if got := Judge(ev, Facts{Method: method}, verdict.Opinion{}); got != want {
				t.Errorf("%s, %d:\n got %+v\nwant %+v", method, status, got, want)
			}
		}
	}
}

func TestFactsChangeTheDefaultTable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		whole  bool
		facts  Facts
		want   Verdict
	}{
		"cut success":               {201, false, Facts{}, Verdict{Kind: Committed, Reason: "success status, but the answer's body was cut"}},
		"success over the limit":    {201, true, Facts{TooLarge: true}, Verdict{Kind: TooLarge, Reason: "success status, but the answer's body is over the limit"}},
		"cut and over the limit":    {201, false, Facts{TooLarge: true}, Verdict{Kind: TooLarge, Reason: "success status, but the answer's body is over the limit"}},
		"cut failure":               {422, false, Facts{}, defaults[422]},
		"failure over the limit":    {422, true, Facts{TooLarge: true}, defaults[422]},
		"gRPC":                      {200, true, Facts{GRPC: true}, Verdict{Class: "indeterminate", Reason: "gRPC: the HTTP status does not tell the outcome"}},
		"gRPC behind a gateway":     {403, true, Facts{GRPC: true}, defaults[403]},
		"asked to wait":             {429, true, Facts{RetryAfter: time.Minute}, Verdict{Kind: Failed, Class: "transient", Reason: "the upstream asks to try again later", RetryAfter: time.Minute}},
		"asked to wait, gone wrong": {503, true, Facts{RetryAfter: time.Minute}, Verdict{Class: "indeterminate", Reason: "a status that a gateway may give after the upstream committed", RetryAfter: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := Evidence{BytesWritten: 1, Head: true, Status: tc.status, BodyComplete: tc.whole}
			if got := Judge(ev, tc.facts, verdict.Opinion{}); got != tc.want {
				t.Errorf("\n got %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestOpinionsGoBeforeTheDefaultTable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opinion verdict.Opinion
		want    Verdict
	}{
		"applied":                 {verdict.Opinion{Kind: verdict.OpinionApplied, Reason: "ok is true"}, Verdict{Kind: Applied, Reason: "by the rule: ok is true"}},
		"failed":                  {verdict.Opinion{Kind: verdict.OpinionFailed, Class: "permission", Reason: "FORBIDDEN"}, Verdict{Kind: Failed, Class: "permission", Reason: "by the rule: FORBIDDEN"}},
		"failed without a class":  {verdict.Opinion{Kind: verdict.OpinionFailed}, Verdict{Class: "indeterminate", Reason: "the rule says failed without a class of failure"}},
		"failed, indeterminate":   {verdict.Opinion{Kind: verdict.OpinionFailed, Class: "indeterminate"}, Verdict{Class: "indeterminate", Reason: "the rule says failed without a class of failure"}},
		"failed, unknown class":   {verdict.Opinion{Kind: verdict.OpinionFailed, Class: "cosmic"}, Verdict{Class: "indeterminate", Reason: "the rule says failed without a class of failure"}},
		"uncertain":               {verdict.Opinion{Kind: verdict.OpinionUncertain, Reason: "the condition broke"}, Verdict{Class: "indeterminate", Reason: "by the rule: the condition broke"}},
		"uncertain, with a class": {verdict.Opinion{Kind: verdict.OpinionUncertain, Class: "logic"}, Verdict{Class: "indeterminate", Reason: "by the rule: "}},
		"unknown":                 {verdict.Opinion{Kind: 77}, Verdict{Class: "indeterminate", Reason: "the rule's opinion is unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for status := 200; status < 600; status++ {
				for _, f := range []Facts{{Method: "POST"}, {Method: "DELETE"}, {GRPC: true}} {
					ev := Evidence{BytesWritten: 1, Head: true, Status: status, BodyComplete: true}
					if got := Judge(ev, f, tc.opinion); got != tc.want {
						t.Fatalf("%d, %+v:\n got %+v\nwant %+v", status, f, got, tc.want)
					}
				}
			}
		})
	}
}

// TestFirstRowsAlwaysHold walks the whole cross product of evidence, status,
// method, facts and opinion.
func TestFirstRowsAlwaysHold(t *testing.T) {
	t.Parallel()
	opinions := []verdict.Opinion{{}, {Kind: verdict.OpinionApplied}, {Kind: verdict.OpinionFailed, Class: verdict.Logic}, {Kind: verdict.OpinionUncertain}, {Kind: 99}}
	bools := []bool{false, true}
	for bits := range 1 << 7 {
		bit := func(n int) bool { return bits>>n&1 == 1 }
		f := Facts{Method: "POST", GRPC: bit(0), TooLarge: bit(1)}
		if bit(2) {
			f.Method = "DELETE"
		}
		ev := Evidence{NotSent: bit(3), Refused: bit(4), Head: bit(5), BodyComplete: bit(6)}
		for _, wrote := range bools {
			ev.BytesWritten = 0
			if wrote {
				ev.BytesWritten = 17
			}
			for _, op := range opinions {
				for status := range 601 {
					ev.Status = status
					if err := checkFirstRows(ev, Judge(ev, f, op)); err != nil {
						t.Fatalf("%s, wrote %v, %+v, %+v: %v", brief(ev), wrote, f, op, err)
					}
				}
			}
		}
	}
}

// checkFirstRows holds a verdict against the first three rows and against what is
// true of every verdict.
func checkFirstRows(ev Evidence, v Verdict) error {
	switch {
	case v.Reason == "":
		return fmt.Errorf("a verdict without a reason: %+v", v)
	case (v.Kind == Uncertain) != (v.Class == verdict.Indeterminate), v.Kind.Success() && v.Class != "", v.Kind == Failed && !slices.Contains(verdict.Failures(), v.Class):
		return fmt.Errorf("kind and class don't go together: %+v", v)
	}
	var want string
	switch {
	case ev.NotSent && ev.BytesWritten > 0:
		want = "uncertain, the evidence contradicts itself: bytes were written, yet nothing was sent"
	case ev.NotSent:
		want = "failed, nothing was sent"
	case ev.Refused && !ev.Head:
		want = "failed, the upstream declared that it did not process the request"
	case !ev.Head, ev.Status < 200:
		want = "uncertain, no complete answer head was read after bytes had been sent"
	default:
		if v.Kind.Success() && !ev.BodyComplete && v.Kind == Applied {
			return fmt.Errorf("applied without a whole answer: %+v", v)
		}
		return nil
	}
	if got := v.Kind.String() + ", " + v.Reason; got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	if v.Kind == Failed && v.Class != verdict.Transient {
		return fmt.Errorf("class %q, want transient", v.Class)
	}
	return nil
}

func TestZeroValuesAreUncertain(t *testing.T) {
	t.Parallel()
	if v := Judge(Evidence{}, Facts{}, verdict.Opinion{}); v.Kind != Uncertain || v.Class != verdict.Indeterminate {
		t.Errorf("verdict of nothing: %+v", v)
	}
	if k := new(Verdict).Kind; k != Uncertain {
		t.Errorf("zero verdict: %v", k)
	}
}

func TestVerdictKindsAsText(t *testing.T) {
	t.Parallel()
	for kind, want := range map[VerdictKind]string{
		Uncertain: "uncertain", Applied: "applied", Committed: "committed", TooLarge: "too_large", Failed: "failed",
	} {
		if got := kind.String(); got != want {
			t.Errorf("%d: %q, want %q", kind, got, want)
		}
	}
	if s := VerdictKind(99).String(); s != "uncertain" {
		t.Errorf("an unknown kind reads %q", s)
	}
}

func TestFactsOfAnAnswer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		header http.Header
		want   Facts
	}{
		"nothing":           {nil, Facts{}},
		"gRPC":              {http.Header{"Content-Type": {"application/grpc"}}, Facts{GRPC: true}},
		"gRPC with a codec": {http.Header{"Content-Type": {"Application/gRPC+proto; x=y"}}, Facts{GRPC: true}},
		"gRPC-Web":          {http.Header{"Content-Type": {"application/grpc-web-text"}}, Facts{GRPC: true}},
		"JSON":              {http.Header{"Content-Type": {"application/json"}}, Facts{}},
		"asked to wait":     {http.Header{"Retry-After": {"7"}}, Facts{RetryAfter: 7 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.want.Method = "POST"
			if got := FactsOf("POST", &Answer{Header: tc.header}, now); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
