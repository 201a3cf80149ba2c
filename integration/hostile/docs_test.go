package hostile

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// page is where the counts stand. DOCS=write puts them there.
const page = "../../docs/hostile-bytes.md"

func TestThePageCountsTheVectors(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- begin vectors -->\n", "<!-- end vectors -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", page)
	}
	want := before + begin + "\n" + counted(t) + "\n" + end + after
	switch {
	case want == string(text):
	case os.Getenv("DOCS") != "write":
		t.Errorf("%s doesn't count the vectors that there are; make docs writes it", page)
	default:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// counted is the table of the tables.
func counted(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| table | vectors | of them refused | tried as | trials |\n| --- | --- | --- | --- | --- |\n")
	one, refused, trials := loadVectors(t, "testdata/http1.tsv"), 0, 0
	for _, v := range one {
		if !slices.Contains(v.statuses, http.StatusOK) {
			refused++
		}
		trials += len(kinds) * len(v.tunnels())
	}
	row := func(name string, vectors, refused, trials int, as string) {
		fmt.Fprintf(&b, "| `%s` | %d | %d | %s | %d |\n", name, vectors, refused, as, trials)
	}
	row("http1.tsv", len(one), refused, trials, "a read, an ignored request and a mutation, plain and inside CONNECT")
	two, refused, trials := loadH2(t), 0, 0
	for _, v := range two {
		if !slices.Contains(v.statuses, http.StatusOK) {
			refused++
		}
		trials += len(v.kinds())
	}
	row("http2.tsv", len(two), refused, trials, "the same three over HTTP/2 in TLS, frame by frame")
	answers, refused := loadAnswers(t), 0
	for _, l := range answers {
		if slices.Contains(l.read, "502") || slices.Contains(l.read, "cut") {
			refused++
		}
	}
	row("answers.tsv", len(answers), refused, len(asks)*len(answers), "an answer to a mutation, to a read and to content that streams, each followed by a request that must get its own")
	return b.String()
}
