package rules

import (
	"net/mail"
	"regexp"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// toldZone is an end of a time that tells its zone. Go takes other names, such as EST, for UTC.
var toldZone = regexp.MustCompile(`(?:[+-][0-9]{4}|[^A-Za-z](?:GMT|UTC?))(?:\s*\([^()]*\))?$`)

// rfc2822 is the time of a text as mail has it (RFC 5322 §3.3, and RFC 2822 before it).
func rfc2822(v ref.Val) ref.Val {
	s, _ := v.(types.String)
	text := strings.TrimSpace(string(s))
	t, err := mail.ParseDate(text)
	if err != nil || !toldZone.MatchString(text) {
		return types.NewErr("rfc2822() of what is no such time, or one without its offset")
	}
	return types.Timestamp{Time: t.UTC()}
}
