package rules

import "github.com/go-json-experiment/json/jsontext"

// Derived is what an operation's rule makes of a request.
type Derived struct {
	// Identity holds canonical JSON by name. An absent optional has no entry. A
	// value read from a secret place is {"sha256": hex}.
	Identity map[string]jsontext.Value
	// Subkey separates two intended mutations of the same identity; often empty.
	Subkey string
	// Account is whose data is changed; empty when the rule doesn't say.
	Account string
	// HostGroup and HostVars are the connector's part of the mutation key;
	// HostVars are the host variables that are not identity.
	HostGroup string
	HostVars  map[string]string
	// Target is the rule's describe with values filled in, secrets masked.
	Target string
	// PayloadDigest is the hex SHA-256 of everything but identity and ignored
	// places; equal digests are the same payload.
	PayloadDigest string
	// SignificantDigest leaves the minor places out too. Payloads that differ in
	// PayloadDigest alone differ in minor ways.
	SignificantDigest string
}
