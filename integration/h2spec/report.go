package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
)

// tried is one case and what came of it.
type tried struct {
	// section is h2spec's, such as http2/6.5.3. That of a client's case begins with the way in which
	// was asked.
	section, name   string
	failed, skipped bool
}

type cases []*tried

// readReport reads what h2spec wrote about the cases for servers.
func readReport(file string) (all cases, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var suites struct {
		Suites []struct {
			Package string `xml:"package,attr"`
			Cases   []struct {
				Name    string    `xml:"classname,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &suites); err != nil {
		return nil, err
	}
	for _, s := range suites.Suites {
		for _, c := range s.Cases {
			all = append(all, &tried{s.Package, c.Name, c.Failure != nil || c.Error != nil, c.Skipped != nil})
		}
	}
	return all, nil
}

// fewest is how many cases there must be, or h2spec didn't run.
const fewest = 240

// judge holds the cases against misses.txt and counts what isn't as it says.
func (all cases) judge() (unexpected int, err error) {
	listed, err := os.ReadFile("misses.txt")
	if err != nil {
		return 0, err
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(listed)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			known[line] = true
		}
	}
	passed, missed, skipped := 0, 0, 0
	for _, c := range all {
		name := c.section + ": " + c.name
		expected := known[name]
		delete(known, name)
		switch {
		case c.skipped:
			skipped++
			unexpected++
			log.Printf("skipped: %s", name)
		case c.failed && !expected:
			missed++
			unexpected++
			log.Printf("FAILED, and not in misses.txt: %s", name)
		case c.failed:
			missed++
		case expected:
			passed++
			unexpected++
			log.Printf("passed, and in misses.txt: %s", name)
		default:
			passed++
		}
	}
	for name := range known {
		unexpected++
		log.Printf("in misses.txt, and not a case: %s", name)
	}
	fmt.Printf("h2spec: %d cases, %d passed, %d missed, %d skipped\n", len(all), passed, missed, skipped)
	if len(all) < fewest {
		return 0, fmt.Errorf("only %d cases ran", len(all))
	}
	return unexpected, nil
}

// row counts the cases of one section.
type row struct{ passed, all int }

func (r row) String() string {
	if r.all == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", r.passed, r.all)
}

// table counts for the page the cases of a section that passed, as a server and as both clients.
func (all cases) table() string {
	var sections []string
	rows := map[string]map[string]row{}
	for _, c := range all {
		kind, section, _ := strings.Cut(c.section, "/")
		side := kind
		switch kind {
		case "generic":
			section, side = "any, as h2spec's own first part has them", "http2"
		case "hpack":
			section, side = "RFC 7541", "http2"
		}
		if rows[section] == nil {
			rows[section] = map[string]row{}
			sections = append(sections, section)
		}
		r := rows[section][side]
		if r.all++; !c.failed && !c.skipped {
			r.passed++
		}
		rows[section][side] = r
	}
	slices.SortStableFunc(sections, order)
	var b strings.Builder
	b.WriteString("| section | as a server | asking with a read | with a mutation |\n| --- | --- | --- | --- |\n")
	total := map[string]row{}
	for _, section := range append(sections, "all") {
		of := rows[section]
		if section == "all" {
			of = total
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", section, of["http2"], of[asRead], of[asMutation])
		for side, r := range of {
			t := total[side]
			total[side] = row{t.passed + r.passed, t.all + r.all}
		}
	}
	return b.String()
}

// order puts sections into that of the RFC, numbers first.
func order(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		var x, y int
		if _, err := fmt.Sscanf(as[i], "%d", &x); err != nil {
			x = 1 << 10
		}
		if _, err := fmt.Sscanf(bs[i], "%d", &y); err != nil {
			y = 1 << 10
		}
		if x != y {
			return x - y
		}
	}
	return len(as) - len(bs)
}

// write puts the table into a page, between its marks.
func (all cases) write(page string) error {
	const begin, end = "<!-- begin h2spec -->\n", "<!-- end h2spec -->"
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return errors.New(page + " has no place for the table")
	}
	return os.WriteFile(page, []byte(before+begin+"\n"+all.table()+"\n"+end+after), 0o644)
}
