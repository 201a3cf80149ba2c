package rules

import (
	"slices"
	"strings"
)

// credentialWords are the last word in the names of fields and query members that mostly hold credentials. Some don't.
// Those are stored where the rule names them.
var credentialWords = []string{
	"key", "token", "secret", "jwt", "session", "sessionid", "signature", "sig", "auth", "authorization", "password", "passwd",
	"passphrase", "credential", "credentials", "team",
}

// harmless are the words before "key" and "token" that make a name of no credential. Such a key tells one request or
// piece of data from others.
var harmless = []string{
	"idempotency", "idempotence", "idempotent", "deduplication", "dedup", "page", "next", "continuation", "partition", "sort",
}

// otherWords only end like a credential's name.
var otherWords = []string{"monkey", "donkey", "turkey", "hockey", "jockey", "whiskey", "steam", "obsession", "possession"}

// NamedLikeCredential reports whether a header field or a query member has the name of a credential. Its last word
// tells, whatever vendor's words stand before it. The words may be written as one: servers and clients change case.
func NamedLikeCredential(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return c < 'a' || 'z' < c })
	if len(words) == 0 || sameField(name, SubkeyField) {
		return false
	}
	last := words[len(words)-1]
	if last == "id" && len(words) > 1 {
		last = words[len(words)-2] + last
	}
	return !slices.Contains(otherWords, last) && slices.ContainsFunc(credentialWords, func(word string) bool {
		if !strings.HasSuffix(last, word) {
			return false
		}
		before := strings.TrimSuffix(strings.Join(words, ""), word)
		return word != "key" && word != "token" || !slices.ContainsFunc(harmless, func(h string) bool { return strings.HasSuffix(before, h) })
	})
}
