package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"text/template"

	"keep-proxy/config"
)

// settings are what a test changes of the configuration.
type settings struct {
	Listen, AdminListen  string
	Hold                 string
	Dial                 string
	Response, Total      string
	Settle               string
	OnAbsent, BlockScope string
	// Verify is the banks' verify_on_replay, "" for the default.
	Verify            string
	MaxBody, MaxHead  string
	MinFree           string
	DenyPrivate       string
	Unmatched         string
	UnmanagedItem     string
	RetryGrace        string
	RetryTries        int
	Inline, Base, Cap string
	MaxAttempts       int
	LedgerID          string
	Passthrough       string
	// MailCredentials authorise what is asked of the mail API, "" for none.
	MailCredentials string

	// Webhook is called when a person is asked, "" for nobody.
	Webhook string

	// HTTP1 leaves HTTP/2 out of what the upstreams offer.
	HTTP1 bool
	// Vendors starts the fakes of real APIs too.
	Vendors bool

	// Filled in by the world.
	Dir, UpstreamCA, Connectors string
	Hosts                       map[string]string
}

// defaults bound what upstreams and inline tries take by no less than a busy machine may
// take; what has to run out says so itself.
func defaults() settings {
	return settings{
		Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Hold: "0s", Dial: "60s", Response: "60s", Total: "90s", Settle: "400ms", OnAbsent: "fail",
		BlockScope: "workflow", MaxBody: "1MiB", MaxHead: "16KiB", MinFree: "1MiB", DenyPrivate: "false",
		Unmatched: "deny", RetryGrace: "60s", RetryTries: 5, Inline: "60s", Base: "20ms", Cap: "100ms", MaxAttempts: 500,
	}
}

var configuration = template.Must(template.New("config").Parse(`
proxy:
  listen: ["{{.Listen}}"]
  upstream_ca: "{{.UpstreamCA}}"
  egress: {deny_private: {{.DenyPrivate}}}
  hold: {{.Hold}}
  block_scope: {{.BlockScope}}
  max_body: {{.MaxBody}}
  max_head: {{.MaxHead}}
  unmatched: {mutation: {{.Unmatched}}}
  passthrough: [{{.Passthrough}}]
  timeouts: {dial: {{.Dial}}, response: {{.Response}}, total: {{.Total}}}
{{- if .UnmanagedItem}}
  unmanaged: {workflow: loose, item: {{.UnmanagedItem}}}
{{- end}}
admin: {listen: "{{.AdminListen}}"}
ledger: {dir: "{{.Dir}}/state", min_free: {{.MinFree}}, id: "{{.LedgerID}}"}
connectors:
  dirs: ["{{.Connectors}}"]
  bundled: [{{if .Vendors}}stripe, github{{end}}]
  settings:
{{- range $name, $host := .Hosts}}
    - connector: {{$name}}
      hosts: ["{{$host}}"]
{{- if or (eq $name "keyed-bank") (eq $name "probed-bank") (eq $name "cancelling-bank")}}
      overrides: {transfer.create: {settle: {{$.Settle}}, on_absent: {{$.OnAbsent}}{{with $.Verify}}, verify_on_replay: {{.}}{{end}}}}
{{- end}}
{{- if or (eq $name "mail") (eq $name "reversing-bank")}}
      overrides: { {{- if eq $name "mail"}}message.send{{else}}transfer.create{{end}}: {settle: {{$.Settle}}}}
{{- end}}
{{- if and (eq $name "asking-mail") $.MailCredentials}}
      credentials: {header: Authorization, value: {{$.MailCredentials}}}
{{- end}}
{{- if or (eq $name "stripe") (eq $name "github")}}
      credentials: {header: Authorization, value: Bearer operator-token}
{{- end}}
{{- end}}
reconcile: {inline: {{.Inline}}, base: {{.Base}}, factor: 2, cap: {{.Cap}}, jitter: 0, max_attempts: {{.MaxAttempts}}}
runs: {retry_grace: {{.RetryGrace}}, retry_grace_tries: {{.RetryTries}}}
{{- with .Webhook}}
notify:
  webhooks:
    - {name: pager, url: "{{.}}", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}
{{- end}}
`))

// write renders the configuration into a file of the world's folder.
func (s settings) write(tb testing.TB) string {
	tb.Helper()
	var text bytes.Buffer
	if err := configuration.Execute(&text, s); err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(s.Dir, "config.yaml")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

func loadConfig(tb testing.TB, file string) config.Config {
	tb.Helper()
	c, err := config.Load(config.Options{File: file})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
