package clients

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// calling is the trade of HTTP clients: each makes the call that it is told, with a body
// on standard input, and prints status and fields.
type calling struct{}

func (calling) read(_ *testing.T, w *world) errand {
	return errand{on: w.bank, method: "GET", url: w.site(w.bank) + "/balance"}
}

func (calling) change(_ *testing.T, w *world, word string) errand {
	return errand{on: w.bank, method: "POST", url: w.site(w.bank) + "/transfers", body: order(word), counts: "transfer:" + word}
}

func (calling) halt(_ *testing.T, w *world, word string) errand {
	return errand{on: w.hooks, method: "POST", url: w.site(w.hooks) + "/hook/plain/" + word, body: "hello", counts: "hook:plain/" + word}
}

// order is a transfer as the bank takes it.
func order(reference string) string {
	return fmt.Sprintf(`{"from":"ann","to":"bob","amount":100,"currency":"EUR","reference":"%s"}`, reference)
}

func (calling) content(d done, what string) bool {
	replayed := strings.Contains(strings.ToLower(d.text), "keep-replayed: true")
	if what == "read" {
		return status(d.text) == "200"
	}
	return status(d.text) == "201" && replayed == (what == "replay")
}

func (calling) refused(d done) bool { return status(d.text) == "424" && refusal.MatchString(d.text) }

var refusal = regexp.MustCompile(`urn:keep:problem:(unknown-outcome|run-aborted)`)

var statusLine = regexp.MustCompile(`(?m)^\s*(?:HTTP/[0-9.]+|STATUS) (\d{3})`)

// status is the last status that the client printed, "" for none.
func status(printed string) string {
	all := statusLine.FindAllStringSubmatch(printed, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}
