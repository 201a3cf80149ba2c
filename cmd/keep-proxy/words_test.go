package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/config"
)

func TestTheChildsEnvironment(t *testing.T) {
	t.Parallel()
	got := childEnvironment(
		[]string{"HOME=/h", "HTTP_PROXY=http://old", "TOKEN=secret", "EMPTY=", "TOKEN_FILE=/f"},
		map[string]string{"HTTP_PROXY": "http://new", "NO_PROXY": ""},
		[]string{"TOKEN"},
	)
	want := []string{"HOME=/h", "EMPTY=", "TOKEN_FILE=/f", "HTTP_PROXY=http://new", "NO_PROXY="}
	if !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
}

func TestVariablesThatAreSecretsAreKeptFromTheChild(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Options{Environ: []string{
		"HOME=" + t.TempDir(), "KEEP_PROXY_UPSTREAM_PROXY_URL=http://proxy.test:3128", "KEEP_PROXY_UPSTREAM_PROXY_USER=me",
		"KEEP_PROXY_UPSTREAM_PROXY_PASSWORD=a-${env:PART}",
	}})
	if err != nil {
		t.Fatal(err)
	}
	inherited := []string{"KEEP_PROXY_UPSTREAM_PROXY_USER=me", "KEEP_PROXY_UPSTREAM_PROXY_PASSWORD=a-${env:PART}", "PART=b", "OTHER=c"}
	want := []string{"KEEP_PROXY_UPSTREAM_PROXY_USER=me", "KEEP_PROXY_UPSTREAM_PROXY_PASSWORD=${env:WITHHELD_FROM_COMMANDS}", "OTHER=c"}
	got := childEnvironment(inherited, nil, secretNames(c))
	if !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
	// What keep-proxy is asked for inside still has a configuration.
	if _, err := config.Load(config.Options{Environ: append(got, "HOME="+t.TempDir(), "KEEP_PROXY_UPSTREAM_PROXY_URL=http://proxy.test:3128")}); err != nil {
		t.Error(err)
	}
}

// awkward are words that a shell would change, were they not quoted.
var awkward = []string{"plain", "", "a b", "it's", `back\slash`, "$HOME", "`id`", "a\nb", "*", "~", "-n", "é", `"`}

func TestAShellReadsQuotedWordsBack(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh here")
	}
	for _, word := range awkward {
		out, err := exec.CommandContext(t.Context(), sh, "-c", "printf %s "+quoted(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q as %s came back as %q (%v)", word, quoted(word), out, err)
		}
	}
}

func TestOtherQuotings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ word, fish, dotenv string }{
		{"plain", "plain", "plain"},
		{"", "''", ""},
		{"it's", `'it\'s'`, `"it's"`},
		{`a\b`, `'a\\b'`, `'a\b'`},
		{"$x", "'$x'", `'$x'`},
		{`say "x" #1`, `'say "x" #1'`, `'say "x" #1'`},
		{`it's $1`, `'it\'s $1'`, `"it's \$1"`},
		{"a\nb", "'a\nb'", `"a\nb"`},
	} {
		if got := fishQuoted(c.word); got != c.fish {
			t.Errorf("%q for fish is %s, want %s", c.word, got, c.fish)
		}
		if got := dotenvQuoted(c.word); got != c.dotenv {
			t.Errorf("%q for .env is %s, want %s", c.word, got, c.dotenv)
		}
	}
}

func TestWhatOthersWroteDoesNotDriveTheTerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\x1b[31mb\r\nc\u009bd é":     "a [31mb  c d é",
		"to \u202e001 EUR\u202c bob":   "to  001 EUR  bob",
		"\u2066a\u2069\u200fb\u200ec":  " a  b c",
		"one\u2028two\u2029three \xff": "one two three \ufffd",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// What a program of a rule, or an API, said of a mutation stands in the mutation and in the item that
// waits because of it, and so in what refuses the item's next run.
func TestWhatOthersSaidIsShownInOneLine(t *testing.T) {
	t.Parallel()
	const hostile = "gone\x1b[2J\u202e\nkeep-proxy: all is well"
	var shown page
	showMutation(&shown, &wire.Mutation{ID: "m-1", Verification: &wire.Verification{Said: "disagrees", Reason: hostile}})
	refused := &wire.Problem{Type: wire.ProblemPrefix + "item-attention", Detail: "The item waits (" + hostile + ")."}
	for name, text := range map[string]string{
		"the mutation":        shown.String(),
		"a refusal":           sentence(nil, openError(refused)),
		"a faulty request":    sentence(nil, &wire.Problem{Errors: []wire.Fault{{Where: "/compensate", What: hostile}}}),
		"another error":       sentence(nil, errors.New("gone\x1b[2J\u202e keep-proxy: all is well")),
		"a decision, refused": sentence(nil, withActions(refused)),
	} {
		if strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, "\nkeep-proxy: all") || !strings.Contains(text, "gone") {
			t.Errorf("%s is told as %q", name, text)
		}
	}
	if text := sentence(nil, errors.New("one:\ntwo")); text != "one:\ntwo" {
		t.Errorf("lines are told as %q", text)
	}
}

func TestAges(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for want, d := range map[string]time.Duration{
		"0s": -time.Hour, "59s": 59 * time.Second, "1m": time.Minute, "59m": time.Hour - 1, "1h": time.Hour, "47h": 47 * time.Hour, "2d": 48 * time.Hour,
	} {
		if got := ago(now, now.Add(-d)); got != want {
			t.Errorf("%s ago is %q, want %q", d, got, want)
		}
	}
	if got := ago(now, time.Time{}); got != "" {
		t.Errorf("no time is %q", got)
	}
}

func TestATimeSaysItsZone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	for want, zone := range map[string]*time.Location{
		"2026-03-01 12:00:00.005Z":      time.UTC,
		"2026-03-01 13:00:00.005+01:00": time.FixedZone("CET", 3600),
		"2026-03-01 08:30:00.005-03:30": time.FixedZone("NST", -12600),
	} {
		if got := stampIn(at, zone); got != want {
			t.Errorf("in %s: %q, want %q", zone, got, want)
		}
	}
	if got := stampIn(time.Time{}, time.UTC); got != "" {
		t.Errorf("no time is written as %q", got)
	}
	if got, want := stamp(at), stampIn(at, time.Local); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestATableHasNoHeadWithoutRows(t *testing.T) {
	t.Parallel()
	var out page
	if (columns[[]string]{"A", cells}).table(&out, nil); out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
	if (columns[[]string]{"A\tBC", cells}).table(&out, [][]string{{"long", "x"}}); out.String() != "A     BC\nlong  x\n" {
		t.Errorf("%q", out.String())
	}
}

func TestProgressIsToldOfWhatTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out)
		for i := range 30 {
			p.step("verified", int64(i), 30)
			time.Sleep(100 * time.Millisecond) // The bubble's clock.
		}
		p.end()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 4 || lines[0] != "verified: 10 of 30" {
			t.Errorf("lines %q, want one after a second and then two a second", lines)
		}
	})
}

func TestTheFindingsOfAReloadAreToldApart(t *testing.T) {
	t.Parallel()
	got := reloadWords(&wire.LastReload{Error: "connectors: a.yaml:1:1: error\nb.yaml:2:1: error"})
	if want := "connectors: a.yaml:1:1: error | b.yaml:2:1: error"; !strings.HasSuffix(got, want) {
		t.Errorf("status says %q, want %q at its end", got, want)
	}
}

// A person who reads 0 bytes says that nothing happened: of a sending without an end nobody knows.
func TestTheBytesOfASendingWithoutAnEndAreNotZero(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	sendings := []wire.Dispatch{{StartedAt: at, Lost: true}, {StartedAt: at, EndedAt: at.Add(time.Second), Wire: wire.Wire{BytesWritten: 412}}, {StartedAt: at, EndedAt: at}}
	var shown, asked page
	showMutation(&shown, &wire.Mutation{Dispatches: sendings})
	showEscalation(&asked, wire.Escalation{Evidence: sendings})
	for name, text := range map[string]string{"mutations show": shown.String(), "resolve": asked.String()} {
		_, table, _ := strings.Cut(text, "Sendings:\n")
		lines := strings.Split(strings.TrimSpace(table), "\n")
		if len(lines) != 4 {
			t.Fatalf("%s: %q", name, text)
		}
		where := strings.Index(lines[0], "BYTES")
		for i, want := range []string{"?", "412", "0"} {
			if got, _, _ := strings.Cut(lines[i+1][where:], " "); got != want {
				t.Errorf("%s: sending %d has %s bytes, want %s", name, i+1, got, want)
			}
		}
	}
}

func TestWhatIsOwedIsShownWithHowItIsUndone(t *testing.T) {
	t.Parallel()
	const how = "keep-proxy obligations run --config c m-1 --reason 'WHY'"
	owed := wire.Mutation{
		ID: "m-1", State: "failed", Undo: &wire.Undo{Mutation: "m-0", Object: "o"},
		Actions: []wire.Action{{Action: wire.ActionSkip, Consequence: "The obligation is waived."}},
	}
	queued, done := owed, owed
	queued.NextTryAt = time.Unix(1, 0)
	done.State = "applied"
	for m, want := range map[*wire.Mutation]bool{&owed: true, &queued: false, &done: false, {ID: "m-1", State: "failed"}: false} {
		for way, show := range map[string]func(io.Writer) error{
			"to look": func(out io.Writer) error {
				return showPage(out, " --config c", func(p *page) { showMutation(p, m) })
			},
			"to decide": func(out io.Writer) error {
				w := &walk{in: bufio.NewScanner(strings.NewReader("0")), out: out, flags: " --config c"}
				return w.mutation(t.Context(), m, 0)
			},
		} {
			var shown bytes.Buffer
			if err := show(&shown); err != nil || strings.Contains(shown.String(), how) != want {
				t.Errorf("%s, %s: %v, shown %q; want the command: %t", m.State, way, err, shown.String(), want)
			}
		}
	}
}

func TestAHistoryThatIsNotWholeSaysSo(t *testing.T) {
	t.Parallel()
	shown := &page{flags: " --config c"}
	m := wire.Mutation{Events: []wire.Event{{What: "claim"}, {What: "success"}, {What: "replayed"}, {What: "acknowledge"}}, EventsLeftOut: 7}
	showEvents(shown, &m)
	lines := strings.Split(strings.TrimSpace(shown.String()), "\n")
	if len(lines) != 7 || !strings.Contains(lines[3], "success") || !strings.Contains(lines[4], "7 events") ||
		!strings.Contains(lines[4], "keep-proxy audit export --config c has all") || !strings.Contains(lines[5], "replayed") {
		t.Errorf("shown %q", shown.String())
	}
}

// A flag needs a host. A request whose head was refused has none.
func TestNoFlagWithoutAHost(t *testing.T) {
	t.Parallel()
	var flags []string
	tellRefused(func(_ string, args ...any) {
		for _, a := range args {
			if s, ok := a.(string); ok && strings.Contains(s, "--tolerate") {
				flags = append(flags, s)
			}
		}
	}, []wire.Refused{{Code: "misdirected", Class: "logic"}, {Code: "unmatched", Host: "a.test", Class: "logic"}})
	if len(flags) != 1 || strings.Contains(flags[0], "misdirected") {
		t.Errorf("flags %q", flags)
	}
}
