package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

// digestOf is the SHA-256 of a token in hex.
func digestOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func TestTheAdminAPIOfAWholeTeam(t *testing.T) {
	t.Parallel()
	c, err := Load(Options{Environ: home, File: writeConfig(t, `
admin:
  listen: 0.0.0.0:8443
  health_listen: 0.0.0.0:8082
  public_url: https://keep.example.com/team/
  tls: {cert_file: /tls.pem, key_file: /tls.key}
  tokens:
    - {name: dashboard, role: viewer, sha256: "`+strings.ToUpper(digestOf("a"))+`"}
    - {name: scheduler, role: host, sha256: "`+digestOf("b")+`"}
    - {name: ann, role: operator, sha256: "`+digestOf("c")+`"}
`)})
	if err != nil {
		t.Fatal(err)
	}
	want := []AdminToken{{"dashboard", TokenViewer, digestOf("a")}, {"scheduler", TokenHost, digestOf("b")}, {"ann", TokenOperator, digestOf("c")}}
	if !slices.Equal(c.Admin.Tokens, want) {
		t.Errorf("tokens %+v, want %+v", c.Admin.Tokens, want)
	}
	if c.Admin.PublicURL != "https://keep.example.com/team" || c.Admin.HealthListen != "0.0.0.0:8082" || !c.Admin.TLS.Enabled() {
		t.Errorf("admin %+v", c.Admin)
	}
}

func TestProblemsOfTheAdminAPI(t *testing.T) {
	t.Parallel()
	empty, digest := digestOf(""), digestOf("a")
	for _, c := range []struct {
		name, admin string
		want        []string
	}{
		{"no token at all", `tokens: [{name: a, role: host}]`, []string{
			`keep.yaml:1:18: admin.tokens[0].sha256: the token's digest is missing; add sha256, made by: printf %s "$TOKEN" | sha256sum`,
		}},
		{"a token in clear", `tokens: [{name: a, role: host, sha256: hunter2}]`, []string{
			`keep.yaml:1:48: admin.tokens[0].sha256 = "<secret>": not the SHA-256 of a token, in 64 hex digits; make it by: printf %s "$TOKEN" | sha256sum`,
		}},
		{"the digest of nothing", `tokens: [{name: a, role: host, sha256: "` + empty + `"}]`, []string{
			`keep.yaml:1:48: admin.tokens[0].sha256 = "<secret>": the SHA-256 of nothing; make a token, by openssl rand -hex 32, and its digest by: printf %s "$TOKEN" | sha256sum`,
		}},
		{"a role that is none", `tokens: [{name: a, role: admin, sha256: "` + digest + `"}]`, []string{
			`keep.yaml:1:34: admin.tokens[0].role = "<secret>": not a known value; use viewer, operator or host`,
		}},
		{"neither name nor role", `tokens: [{sha256: "` + digest + `"}]`, []string{
			`keep.yaml:1:18: admin.tokens[0].name: the holder's name is missing; add name: NAME, which is recorded with what its holder decides`,
			`keep.yaml:1:18: admin.tokens[0].role: the role is missing; add role: viewer, operator or host`,
		}},
		{"the operator's name", `tokens: [{name: operator, role: host, sha256: "` + digest + `"}]`, []string{
			`keep.yaml:1:25: admin.tokens[0].name = "<secret>": this name is the holder's of admin.token_file; use another`,
		}},
		{"one name twice", `tokens: [{name: a, role: host, sha256: "` + digest + `"}, {name: a, role: host, sha256: "` + digestOf("b") + `"}]`, []string{
			`keep.yaml:1:124: admin.tokens[1].name = "<secret>": this name is taken by admin.tokens[0]; give each token a name of its own`,
		}},
		{"one token twice", `tokens: [{name: a, role: host, sha256: "` + digest + `"}, {name: b, role: viewer, sha256: "` + digest + `"}]`, []string{
			`keep.yaml:1:149: admin.tokens[1].sha256 = "<secret>": this is the token of admin.tokens[0]; make one for each`,
		}},
		{"a certificate without its key", `tls: {cert_file: /tls.pem}`, []string{
			`keep.yaml:1:26: admin.tls.cert_file = "/tls.pem": admin.tls.key_file is missing; set both admin.tls.cert_file and admin.tls.key_file, or neither`,
		}},
		{"half a certificate opens no interface", `listen: "0.0.0.0:1", tls: {cert_file: /tls.pem}`, []string{
			`keep.yaml:1:17: admin.listen = "0.0.0.0:1": without TLS the admin API answers on loopback alone; use 127.0.0.1:PORT, [::1]:PORT or unix:/path, or set admin.tls`,
			`keep.yaml:1:47: admin.tls.cert_file = "/tls.pem": admin.tls.key_file is missing; set both admin.tls.cert_file and admin.tls.key_file, or neither`,
		}},
		{"a certificate for a socket", `listen: "unix:/run/a.sock", tls: {cert_file: /c, key_file: /k}`, []string{
			`keep.yaml:1:54: admin.tls.cert_file = "/c": a unix socket is served in clear: its owner alone connects to it; remove admin.tls, or listen on host:port`,
		}},
		{"health on the API's address", `health_listen: "127.0.0.1:8081"`, []string{
			`keep.yaml:1:24: admin.health_listen = "127.0.0.1:8081": admin.health_listen and admin.listen can't listen on one address; give each its own`,
		}},
		{"health on the proxy's address", `health_listen: "127.0.0.1:8080"`, []string{
			`keep.yaml:1:24: admin.health_listen = "127.0.0.1:8080": admin.health_listen and proxy.listen can't listen on one address; give each its own`,
		}},
		{"health everywhere without saying so", `health_listen: ":8082"`, []string{
			`keep.yaml:1:24: admin.health_listen = ":8082": the host is missing; write 127.0.0.1 for this machine alone, or 0.0.0.0 or [::] for every interface`,
		}},
		{"a public address without a scheme", `public_url: keep.example.com`, []string{
			`keep.yaml:1:21: admin.public_url = "<secret>": not an address that a browser opens; write https://HOST or https://HOST/PATH`,
		}},
		{"a public address with a password", `public_url: "https://a:b@keep.example.com"`, []string{
			`keep.yaml:1:21: admin.public_url = "<secret>": credentials would stand in every alert; write https://HOST or https://HOST/PATH`,
		}},
		{"a public address with a query", `public_url: "https://keep.example.com/?a=b"`, []string{
			`keep.yaml:1:21: admin.public_url = "<secret>": paths are added to it, so it has neither query nor fragment; write https://HOST or https://HOST/PATH`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := problems(t, Options{Environ: home, File: writeConfig(t, "admin: {"+c.admin+"}\n")})
			compareLines(t, got, c.want)
		})
	}
}
