package upstream_test

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/upstream"
)

// verdictRow is one row of the table in docs/semantics.md §5.
type verdictRow struct {
	kind, class string
	notDelete   bool
}

var threeDigits = regexp.MustCompile(`\b\d{3}\b`)

// documentedVerdicts reads that table: by status, and for any other.
func documentedVerdicts(t *testing.T) (byStatus map[int]verdictRow, other verdictRow) {
	t.Helper()
	data, err := os.ReadFile("../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "<!-- begin verdicts -->")
	table, _, ended := strings.Cut(rest, "<!-- end verdicts -->")
	if !found || !ended {
		t.Fatal("docs/semantics.md has no table of verdicts")
	}
	byStatus = map[int]verdictRow{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		row := verdictRow{strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3]), strings.Contains(cells[1], "except on DELETE")}
		if strings.TrimSpace(cells[1]) == "any other" {
			other = row
		}
		for _, text := range threeDigits.FindAllString(cells[1], -1) {
			status, err := strconv.Atoi(text)
			if _, twice := byStatus[status]; err != nil || twice {
				t.Fatalf("status %s is in the table twice (%v)", text, err)
			}
			byStatus[status] = row
		}
	}
	return byStatus, other
}

func TestTheDocumentedTableIsTheDefaultOne(t *testing.T) {
	t.Parallel()
	byStatus, other := documentedVerdicts(t)
	if other.kind == "" {
		t.Fatal("the table does not say what any other status is")
	}
	for status := 200; status < 600; status++ {
		for _, method := range []string{http.MethodPost, http.MethodDelete} {
			want, listed := byStatus[status]
			if !listed || want.notDelete && method == http.MethodDelete {
				want = other
			}
			v := upstream.Judge(
				upstream.Evidence{BytesWritten: 1, Head: true, BodyComplete: true, Status: status},
				upstream.Facts{Method: method}, verdict.Opinion{})
			class := string(v.Class)
			if v.Kind == upstream.Uncertain {
				class = ""
			}
			if v.Kind.String() != want.kind || class != want.class {
				t.Errorf("%s %d is %s %s, documented as %s %s", method, status, v.Kind, class, want.kind, want.class)
			}
		}
	}
}
