// Package names says what may be the name of a workflow, an item or a host. The name comes from the API, a request, or
// the configuration. Names of workflows and items are compared byte by byte and kept as they come. So that one spelling
// is one name, they are in Unicode's NFC. It imports nothing of ours.
//
// # Failure
//
// What can't be shown in one line as it is, is no name. A fault says what is wrong and how to mend it. Whoever asked
// refuses: nothing is trimmed, cut or replaced.
package names

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// Max is the longest name, in bytes.
	Max = 256
	// Once begins the items that runs with once get, so that nobody else's may.
	Once = "once:"
)

// Fault says what is wrong with a name and how to mend it. It says nothing for a name that may be one.
func Fault(name string) (what, how string) {
	switch {
	case name == "":
		return "missing", "give a name"
	case len(name) > Max:
		return fmt.Sprintf("longer than %d bytes", Max), "shorten it"
	case strings.TrimSpace(name) != name:
		return "white space at an end", "trim it"
	case !Shown(name):
		return "control characters", "leave them out"
	case !norm.NFC.IsNormalString(name):
		return "not in Unicode's normal form NFC", fmt.Sprintf("write it in NFC: %+q", norm.NFC.String(name))
	}
	return "", ""
}

// ItemFault is Fault for an item that a host names.
func ItemFault(name string) (what, how string) {
	if what, how := Fault(name); what != "" {
		return what, how
	}
	if strings.HasPrefix(name, Once) {
		return `names that begin with "` + Once + `" are kept for runs with once`, "give it another name"
	}
	return "", ""
}

// Shown reports whether text is UTF-8 that is shown in one line and in its own order. Nothing in it ends a line, moves
// a cursor, or turns the direction of writing.
func Shown(text string) bool { return utf8.ValidString(text) && !strings.ContainsFunc(text, unshown) }

// OneLine is text with a space in the place of each character for which it wouldn't be Shown. A person who decides by
// what others wrote sees it as it stands there. Their terminal obeys nobody.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unshown(r) {
			return ' '
		}
		return r
	}, text)
}

func unshown(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
