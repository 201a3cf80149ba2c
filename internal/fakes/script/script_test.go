package script_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/internal/fakes/script"
)

func TestEveryNamedFaultIsValid(t *testing.T) {
	t.Parallel()
	for _, name := range script.Names() {
		f, err := script.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Validate(); err != nil {
			t.Errorf("%v", err)
		}
		if f.Name != name {
			t.Errorf("%s is called %q", name, f.Name)
		}
	}
	if _, err := script.Named("no such"); err == nil || !strings.Contains(err.Error(), "commit-close") {
		t.Errorf("error %v, want one that lists the names", err)
	}
}

func TestEveryNamedFaultIsDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "# Named faults")
	if !found {
		t.Fatal("the package comment has no section on named faults")
	}
	words := strings.FieldsFunc(section, func(r rune) bool { return strings.ContainsRune(" ,\t\n", r) })
	for _, name := range script.Names() {
		suffix := strings.TrimPrefix(name, "commit")
		if !slices.Contains(words, name) && !slices.Contains(words, suffix) {
			t.Errorf("%s is not in the package comment", name)
		}
	}
}

func TestNamedFaultsAreCopies(t *testing.T) {
	t.Parallel()
	first, err := script.Named("close")
	if err != nil {
		t.Fatal(err)
	}
	first.Steps[0].Do = script.Reset
	if again, err := script.Named("close"); err != nil || again.Steps[0].Do != script.Close {
		t.Errorf("a change reached the table: %v, %v", again, err)
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	steps := func(s ...script.Step) script.Fault { return script.Fault{Steps: s} }
	closing := script.Step{Do: script.Close}
	tests := []struct {
		name  string
		fault script.Fault
		want  string
	}{
		{"no steps", steps(), "0 of them end the request"},
		{"two ends", steps(closing, closing), "2 of them end the request"},
		{"the zero action", steps(script.Step{}, closing), "unknown action"},
		{"an answer with nothing in hand", steps(script.Step{Do: script.Answer}), "nothing to send"},
		{"a cut before the commit", steps(script.Step{Do: script.Cut}, script.Step{Do: script.Commit}), "nothing to send"},
		{"early in the middle", steps(script.Step{Do: script.Commit}, script.Step{Do: script.Early, Status: 200}), "must be the first"},
		{"a status step without status", steps(script.Step{Do: script.Status}), "needs a status"},
		{"an informational status", steps(script.Step{Do: script.Status, Status: 103}), "not a final status"},
		{"a 204 with a body", steps(script.Step{Do: script.Status, Status: 204, Body: "x"}), "204 has no body"},
		{"a close with a status", steps(script.Step{Do: script.Close, Status: 500}), "takes no status"},
		{"a fail without status", steps(script.Step{Do: script.Fail}, closing), "needs a status"},
		{"a commit with a body alone", steps(script.Step{Do: script.Commit, Body: "x"}, closing), "a body needs a status"},
		{"a wait for nothing", steps(script.Step{Do: script.Wait}, closing), "needs hold or for"},
		{"a wait for two things", steps(script.Step{Do: script.Wait, Hold: "g", For: 1}, closing), "exclude each other"},
		{"a close that waits", steps(script.Step{Do: script.Close, Hold: "g"}), "takes no hold"},
		{"a close with a header", steps(script.Step{Do: script.Close, Header: map[string]string{"a": "b"}}), "no body or header"},
		{"a negative size", steps(script.Step{Do: script.Huge, Bytes: -1}), "bytes -1"},
		{"a chunked close", steps(script.Step{Do: script.Close, Chunked: true}), "can't be chunked"},
		{"a count below always", script.Fault{Times: -2, Steps: []script.Step{closing}}, "times -2"},
		{"an early answer by identity", script.Fault{Match: script.Match{Identity: "a"}, Steps: []script.Step{{Do: script.Early, Status: 200}}}, "before the body is read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var deck script.Deck
			if err := deck.Arm(tt.fault); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if len(deck.Armed()) != 0 {
				t.Error("it was armed all the same")
			}
		})
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     script.Fault
		err      string
	}{
		{
			name: "steps", in: `{"name":"x","times":2,"match":{"path":"/a*"},"steps":[{"do":"commit"},{"do":"wait","for":"2s"},{"do":"close"}]}`,
			want: script.Fault{Name: "x", Times: 2, Match: script.Match{Path: "/a*"}, Steps: []script.Step{
				{Do: script.Commit}, {Do: script.Wait, For: script.Duration(2 * time.Second)}, {Do: script.Close},
			}},
		},
		{
			name: "a named fault with another name and match", in: `{"named":"close","name":"gone","match":{"identity":"a"},"times":-1}`,
			want: script.Fault{Name: "gone", Times: script.Always, Match: script.Match{Identity: "a"}, Steps: []script.Step{{Do: script.Close}}},
		},
		{name: "both", in: `{"named":"close","steps":[{"do":"close"}]}`, err: "exclude each other"},
		{name: "an unknown key", in: `{"naem":"close"}`, err: "naem"},
		{name: "an unknown key in a step", in: `{"steps":[{"do":"close","fro":"1s"}]}`, err: "fro"},
		{name: "a negative time", in: `{"steps":[{"do":"wait","for":"-1s"},{"do":"close"}]}`, err: "negative"},
		{name: "a number as time", in: `{"steps":[{"do":"wait","for":5},{"do":"close"}]}`, err: "decode"},
		{name: "two values", in: `{"named":"close"} {}`, err: "more than one"},
		{name: "rubbish after it", in: `{"named":"close"} x`, err: "more than one"},
		{name: "nothing", in: ``, err: "decode"},
		{name: "an invalid story", in: `{"steps":[{"do":"commit"}]}`, err: "want exactly 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := script.Decode([]byte(tt.in))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestFaultsSurviveTheWire(t *testing.T) {
	t.Parallel()
	for _, name := range script.Names() {
		f, err := script.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := script.Decode(data); err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%s came back as %+v, %v", name, got, err)
		}
	}
}

func subject(method, path, identity string) script.Subject {
	return script.Subject{Method: method, Path: path, Identity: identity, Header: func(string) string { return "" }}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	post := subject("POST", "/v1/refunds", "refund:pi_1")
	tests := []struct {
		name  string
		match script.Match
		in    script.Subject
		want  bool
	}{
		{"the zero match takes a mutation", script.Match{}, post, true},
		{"the zero match leaves a read", script.Match{}, subject("GET", "/v1/refunds", ""), false},
		{"a star takes a read", script.Match{Method: "*"}, subject("GET", "/", ""), true},
		{"a named method", script.Match{Method: "GET"}, subject("GET", "/", ""), true},
		{"another method", script.Match{Method: "PUT"}, post, false},
		{"the path", script.Match{Path: "/v1/refunds"}, post, true},
		{"a part of the path is not enough", script.Match{Path: "/v1"}, post, false},
		{"the beginning with a star", script.Match{Path: "/v1*"}, post, true},
		{"the identity", script.Match{Identity: "refund:pi_1"}, post, true},
		{"another identity", script.Match{Identity: "refund:pi_2"}, post, false},
		{"a condition", script.Match{When: func(s script.Subject) bool { return s.Path == "/other" }}, post, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.match.Fits(tt.in); got != tt.want {
				t.Errorf("fits: %t", got)
			}
		})
	}
}

func TestDeckGivesEachFaultItsTimes(t *testing.T) {
	t.Parallel()
	var deck script.Deck
	for _, f := range []script.Fault{
		{Name: "first", Steps: []script.Step{{Do: script.Close}}},
		{Name: "twice", Times: 2, Steps: []script.Step{{Do: script.Close}}},
		{Name: "rest", Times: script.Always, Steps: []script.Step{{Do: script.Close}}},
	} {
		if err := deck.Arm(f); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for range 5 {
		f, ok := deck.Take(subject("POST", "/", ""), true)
		if !ok {
			t.Fatal("the deck is empty")
		}
		got = append(got, f.Name)
	}
	if s := strings.Join(got, " "); s != "first twice twice rest rest" {
		t.Errorf("taken: %s", s)
	}
	deck.Clear()
	if f, ok := deck.Take(subject("POST", "/", ""), true); ok {
		t.Errorf("took %s from a cleared deck", f.Name)
	}
}

func TestDeckLooksAtEarlyFaultsOnlyBeforeTheBody(t *testing.T) {
	t.Parallel()
	var deck script.Deck
	early := script.Fault{Steps: []script.Step{{Do: script.Early, Status: 200}}}
	if err := deck.Arm(early); err != nil {
		t.Fatal(err)
	}
	if _, ok := deck.Take(subject("POST", "/", ""), true); ok {
		t.Error("an early fault was taken after the body")
	}
	if _, ok := deck.Take(subject("POST", "/", ""), false); !ok {
		t.Error("an early fault was not taken before the body")
	}
}

func TestDeckServesExactlyTimesConcurrently(t *testing.T) {
	t.Parallel()
	var deck script.Deck
	if err := deck.Arm(script.Fault{Times: 10, Steps: []script.Step{{Do: script.Close}}}); err != nil {
		t.Fatal(err)
	}
	taken := make(chan bool, 40)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			_, ok := deck.Take(subject("POST", "/", ""), true)
			taken <- ok
		})
	}
	wg.Wait()
	close(taken)
	n := 0
	for ok := range taken {
		if ok {
			n++
		}
	}
	if n != 10 {
		t.Errorf("taken %d times, want 10", n)
	}
}

func TestGates(t *testing.T) {
	t.Parallel()
	var gates script.Gates
	isOpen := func() bool {
		select {
		case <-gates.Opened("g"):
			return true
		default:
			return false
		}
	}
	if isOpen() {
		t.Error("a gate begins open")
	}
	waiting := gates.Opened("g")
	gates.Shut(script.Fault{Steps: []script.Step{{Do: script.Wait, Hold: "g"}}})
	gates.Release("g")
	<-waiting // shutting a shut gate must not leave those behind who wait
	gates.Release("g")
	if !isOpen() {
		t.Error("a released gate is shut")
	}
	gates.Shut(script.Fault{Steps: []script.Step{{Do: script.Wait, Hold: "other"}}})
	if !isOpen() {
		t.Error("a fault shut a gate that it does not name")
	}
	gates.Shut(script.Fault{Steps: []script.Step{{Do: script.Wait, Hold: "g"}}})
	if isOpen() {
		t.Error("an armed fault's gate is open")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"named":"commit-close","times":3}`))
	f.Add([]byte(`{"steps":[{"do":"commit"},{"do":"wait","for":"2s"},{"do":"close"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fault, err := script.Decode(data)
		if err != nil {
			return
		}
		if err := fault.Validate(); err != nil {
			t.Errorf("decoded what is invalid: %v", err)
		}
	})
}
