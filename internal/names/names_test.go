package names_test

import (
	"strings"
	"testing"

	"keep-proxy/internal/names"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ name, fault string }{
		"plain":                           {"invoice-17", ""},
		"spaces inside, quotes, a dollar": {`a "b" $c \ %zz {x}`, ""},
		"composed":                        {"caf\u00e9", ""},
		"a family of emoji":               {"👩‍👩‍👧‍👦", ""},
		"a flag, by regional indicators":  {"🇦🇹", ""},
		"a variation selector":            {"☎\ufe0f", ""},
		"right-to-left letters":           {"שלום", ""},
		"a zero-width space":              {"a\u200bb", ""},
		"a zero-width non-joiner":         {"می\u200cخواهم", ""},
		"a byte order mark":               {"\ufeffa", ""},
		"a soft hyphen":                   {"a\u00adb", ""},
		"a no-break space inside":         {"a\u00a0b", ""},
		"tags, which nobody sees":         {"a\U000e0041", ""},
		"a private use character":         {"\ue000", ""},
		"a character that is none":        {"\uffff", ""},
		"the replacement character":       {"\ufffd", ""},
		"the last code point":             {"\U0010ffff", ""},
		"thirty combining marks":          {"z" + strings.Repeat("\u0335", 30), ""},
		"256 bytes":                       {strings.Repeat("x", 256), ""},
		"256 bytes of long characters":    {strings.Repeat("🧾", 64), ""},

		"nothing":                     {"", "missing"},
		"decomposed":                  {"cafe\u0301", "NFC"},
		"an Ångström sign":            {"\u212b", "NFC"},
		"marks in another order":      {"a\u0301\u0323", "NFC"},
		"257 bytes":                   {strings.Repeat("x", 257), "longer than 256 bytes"},
		"65 long characters":          {strings.Repeat("🧾", 65), "longer than 256 bytes"},
		"a space at its end":          {"a ", "white space"},
		"an ideographic space first":  {"\u3000a", "white space"},
		"a line separator at its end": {"a\u2028", "white space"},
		"a NUL":                       {"a\x00b", "control characters"},
		"a line break":                {"a\nb", "control characters"},
		"a next line":                 {"a\u0085b", "control characters"},
		"a line separator":            {"a\u2028b", "control characters"},
		"a paragraph separator":       {"a\u2029b", "control characters"},
		"an escape sequence":          {"a\x1b[31mb", "control characters"},
		"a C1 control":                {"a\u009bb", "control characters"},
		"a right-to-left override":    {"a\u202eb", "control characters"},
		"an isolate":                  {"a\u2066b", "control characters"},
		"an Arabic letter mark":       {"a\u061cb", "control characters"},
		"bytes that are no UTF-8":     {"a\xffb", "control characters"},
		"half a surrogate":            {"a\xed\xa0\x80b", "control characters"},
		"an overlong slash":           {"a\xc0\xafb", "control characters"},
		"once's own":                  {"once:1", "kept for runs with once"},
	} {
		what, how := names.ItemFault(c.name)
		if (what == "") != (c.fault == "") || !strings.Contains(what, c.fault) || (how == "") != (what == "") {
			t.Errorf("%s: %q (%s), want %q", name, what, how, c.fault)
		}
	}
}
