package hostile

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// vector is one line of testdata.
type vector struct {
	name, section, text string
	expected
}

// expected is what must become of a vector.
type expected struct {
	statuses []int
	// partial: a streamed request may begin, but is never whole.
	partial bool
	// fin: the client ends its side.
	fin bool
	// only is "plain" or "tunnel", or empty for both.
	only string
	// read, inTunnel and next are other statuses: for reads, inside of a tunnel, and of
	// a second answer.
	read, inTunnel, next int
	// method, target, fields and trailers are those of the rebuilt request.
	method, target   string
	fields, trailers []string
}

var option = regexp.MustCompile(` (method|target|field|trailer|read|tunnel|next)=| (fin|plain-only|tunnel-only)`)

// loadVectors reads a table of testdata.
func loadVectors(t *testing.T, file string) (all []vector) {
	t.Helper()
	names := map[string]bool{}
	for _, cells := range tableOf(t, file, 4) {
		if names[cells[0]] {
			t.Fatalf("%s: %s stands there twice", file, cells[0])
		}
		names[cells[0]] = true
		v := vector{name: cells[0], section: cells[1], text: unescape(t, cells[3])}
		v.expected = parseExpected(t, cells[2])
		all = append(all, v)
	}
	return all
}

// unescape reads text with Go's escapes.
func unescape(t *testing.T, text string) string {
	t.Helper()
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return out
}

func parseExpected(t *testing.T, cell string) (e expected) {
	t.Helper()
	places := option.FindAllStringSubmatchIndex(cell, -1)
	end := len(cell)
	for _, place := range slices.Backward(places) {
		value := cell[place[1]:end]
		end = place[0]
		key := strings.Trim(cell[place[0]:place[1]], " =")
		switch key {
		case "fin":
			e.fin = true
		case "plain-only", "tunnel-only":
			e.only = strings.TrimSuffix(key, "-only")
		case "method":
			e.method = value
		case "target":
			e.target = value
		case "field":
			e.fields = append(e.fields, value)
		case "trailer":
			e.trailers = append(e.trailers, value)
		case "read":
			e.read = number(t, value)
		case "tunnel":
			e.inTunnel = number(t, value)
		case "next":
			e.next = number(t, value)
		}
	}
	first, partial := strings.CutSuffix(cell[:end], "p")
	e.partial = partial
	for part := range strings.SplitSeq(first, ",") {
		e.statuses = append(e.statuses, number(t, part))
	}
	return e
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%q is no status", text)
	}
	return n
}

// kind is what a request is to the proxy.
type kind struct{ name, method, path string }

var kinds = []kind{{"read", "GET", "/look"}, {"ignored", "POST", "/tell"}, {"mutation", "POST", "/pull"}}

// setting is where and as what a vector is tried.
type setting struct {
	kind
	tunnel          bool
	authority, body string
}

// fill puts a setting's values into the bytes of a vector.
func (s setting) fill(text string) string {
	host, port, _ := strings.Cut(s.authority, ":")
	base := "http://" + s.authority
	if s.tunnel {
		base = ""
	}
	var split strings.Builder
	for _, b := range []byte(s.body) {
		fmt.Fprintf(&split, "1\r\n%c\r\n", b)
	}
	n, last := len(s.body), len(s.path)-1
	kind := "Content-Type: application/json\r\n"
	return strings.NewReplacer(
		"{{", "{", "}}", "}", "{M}", s.method, "{X}", base, "{P}", s.path,
		"{P1}", fmt.Sprintf("/%%%02x%s", s.path[1], s.path[2:]), "{P2}", fmt.Sprintf("%s%%%02x", s.path[:last], s.path[last]),
		"{H}", s.authority, "{H0}", host+":0"+port, "{B}", s.body, "{N}", strconv.Itoa(n),
		"{L}", fmt.Sprintf("%x", n), "{LU}", fmt.Sprintf("%X", n), "{LPLUS}", fmt.Sprintf("%x", n+1), "{SPLIT}", split.String(),
		"{CT}", kind, "{F}", kind+fmt.Sprintf("Content-Length: %d\r\n", n),
	).Replace(text)
}

// mustUnescape reads text with Go's escapes; text that has none that are valid stays.
func mustUnescape(text string) string {
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		return text
	}
	return out
}

// tableOf reads the rows of a table: cells parted by tabs, comments behind #.
func tableOf(t *testing.T, file string, cells int) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != cells {
			t.Fatalf("%s: %d cells, want %d: %q", file, len(row), cells, line)
		}
		rows = append(rows, row)
	}
	return rows
}
