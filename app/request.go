package app

import (
	"keep-proxy/admin/wire"
	"keep-proxy/rules"
)

// RawRequest is a request that a person asks about, as the rules take it. A URL
// that isn't whole is an error.
func RawRequest(e wire.Explain) (rules.Raw, error) { return rawExplain(e) }
