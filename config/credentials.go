package config

import "time"

// Credentials is one request header that the proxy sets itself.
type Credentials struct {
	// Header is the field name (RFC 9110 §5.1) in canonical form, such as
	// Authorization.
	Header string `key:"header" read:"header"`
	// Value is the field's value, unless Exec gives it.
	Value Secret `key:"value"`
	// Exec is a program, and its arguments, that writes the credential to its standard output. It is for credentials
	// that don't live long.
	Exec []string `key:"exec"`
	// Scheme is the authentication scheme (RFC 9110 §11.1) that goes before what Exec
	// wrote; "" for none. Default Bearer in Authorization, and none in other fields.
	Scheme *string `key:"scheme" read:"scheme"`
	// Cache is how long what Exec wrote is used; 1 s to 24 h. Default 5 min.
	Cache time.Duration `key:"cache"`
	// SigV4 is a key of AWS, by which requests are signed anew instead. Nil: none.
	SigV4 *SigV4 `key:"sigv4"`
	// Use says on which requests the header is set. Default reconcile.
	Use CredentialUse `key:"use"`
}

// SigV4 is a key that signs requests (AWS Signature Version 4).
type SigV4 struct {
	AccessKey Secret `key:"access_key"`
	SecretKey Secret `key:"secret_key"`
	// SessionToken belongs to a temporary key. Zero: none.
	SessionToken Secret `key:"session_token"`
	// Region is that of hosts that don't name one. Default us-east-1.
	Region string `key:"region"`
}

// Secrets are all values of the credentials, by their keys.
func (c *Credentials) Secrets() map[string]Secret {
	if c.SigV4 == nil {
		return map[string]Secret{"value": c.Value}
	}
	out := map[string]Secret{"sigv4.access_key": c.SigV4.AccessKey, "sigv4.secret_key": c.SigV4.SecretKey}
	if !c.SigV4.SessionToken.IsZero() {
		out["sigv4.session_token"] = c.SigV4.SessionToken
	}
	return out
}
