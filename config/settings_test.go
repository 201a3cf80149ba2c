package config

import (
	"reflect"
	"testing"
	"time"
)

const fullSettings = `
connectors:
  dirs: [rules, /etc/keep/rules]
  bundled: [stripe, webhook]
  settings:
    - connector: stripe
      hosts: [api.stripe.com, "127.0.0.1:4443"]
      credentials: {header: authorization, value: "Bearer ${file:/run/secrets/stripe}", use: always}
      overrides:
        Refund.Create:
          settle: 10m
          absent_confirmations: 3
          absent_spacing: 1m
          on_absent: escalate
          block_scope: item
          timeout: 30s
          max_body: 1MiB
        charge.create: {}
    - connector: webhook
      hosts: [hooks.example]
      parameters: {field: customfield_10010, number: 007, none: "", on: true, tools: [a, 5]}
`

func TestSettingsAreReadWhole(t *testing.T) {
	t.Parallel()
	got, err := Load(Options{File: writeConfig(t, fullSettings), Environ: home})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Bundled{Names: []string{"stripe", "webhook"}}); !reflect.DeepEqual(got.Connectors.Bundled, want) {
		t.Errorf("bundled = %+v, want %+v", got.Connectors.Bundled, want)
	}
	value, err := ParseSecret("Bearer ${file:/run/secrets/stripe}")
	if err != nil {
		t.Fatal(err)
	}
	want := []ConnectorSettings{
		{
			Connector:   "stripe",
			Hosts:       []string{"api.stripe.com", "127.0.0.1:4443"},
			Credentials: &Credentials{Header: "Authorization", Value: value, Use: UseAlways},
			Overrides: map[string]Override{
				"Refund.Create": {
					Settle: 10 * time.Minute, AbsentConfirmations: 3, AbsentSpacing: time.Minute,
					OnAbsent: OnAbsentEscalate, BlockScope: BlockItem, Timeout: 30 * time.Second, MaxBody: MiB,
				},
				"charge.create": {},
			},
		},
		{Connector: "webhook", Hosts: []string{"hooks.example"}, Parameters: map[string]Parameter{
			"field": {Texts: []string{"customfield_10010"}}, "number": {Texts: []string{"007"}}, "none": {Texts: []string{""}},
			"on": {Texts: []string{"true"}}, "tools": {List: true, Texts: []string{"a", "5"}},
		}},
	}
	if !reflect.DeepEqual(got.Connectors.Settings, want) {
		t.Errorf("settings = %+v\nwant %+v", got.Connectors.Settings, want)
	}
}

func TestTheUseOfACredentialIsReconcileUnlessSaid(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, "connectors: {settings: [{connector: a, credentials: {header: X-Key, value: \"${env:KEY}\"}}]}")
	got, err := Load(Options{File: file, Environ: home})
	if err != nil {
		t.Fatal(err)
	}
	if use := got.Connectors.Settings[0].Credentials.Use; use != UseReconcile {
		t.Errorf("use = %q, want %q", use, UseReconcile)
	}
}

func TestProblemsOfSettings(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, settings string
		want           []string
	}{
		{"no list", "{connector: a}", []string{
			`keep.yaml:1:24: connectors.settings: must be a list; write it in brackets, [] for none, or as lines that begin with "- "`,
		}},
		{"no map in the list", "[stripe]", []string{
			`keep.yaml:1:25: connectors.settings[0] = "stripe": must be a map; write key: value lines below it`,
		}},
		{"no connector", "[{hosts: [a]}]", []string{
			"keep.yaml:1:25: connectors.settings[0].connector: the connector's name is missing; add connector: NAME",
		}},
		{"a name that no connector can have", "[{connector: \"My API\"}]", []string{
			`keep.yaml:1:37: connectors.settings[0].connector = "My API": not a connector's name; use lower-case letters, digits and -, as in the connector's file`,
		}},
		{"one connector twice", "[{connector: a}, {connector: b}, {connector: a}]", []string{
			`keep.yaml:1:69: connectors.settings[2].connector = "a": this connector has settings already, at connectors.settings[0]; put all of them into one entry`,
		}},
		{"a host with a scheme", "[{connector: a, hosts: [\"https://api.example\"]}]", []string{
			`keep.yaml:1:48: connectors.settings[0].hosts[0] = "https://api.example": not a host; write host or host:port, without scheme or path`,
		}},
		{"a host twice", "[{connector: a, hosts: [h, h]}]", []string{
			`keep.yaml:1:51: connectors.settings[0].hosts[1] = "h": given twice, first as connectors.settings[0].hosts[0]; remove one of them`,
		}},
		{"an unknown key", "[{connector: a, host: h}]", []string{
			"keep.yaml:1:40: connectors.settings[0].host: unknown key; did you mean hosts?",
		}},
		{"credentials without anything", "[{connector: a, credentials: {}}]", []string{
			`keep.yaml:1:53: connectors.settings[0].credentials.header: the header's name is missing; add header: Authorization, or the name that the API expects`,
			`keep.yaml:1:53: connectors.settings[0].credentials.value: the value is missing; add value: "Bearer ${file:/absolute/path}", or exec: [program]`,
		}},
		{"a key beside a header field", "[{connector: a, credentials: {sigv4: {access_key: a, session_token: t}, header: A, value: b}}]", []string{
			`keep.yaml:1:61: connectors.settings[0].credentials.sigv4.secret_key: is missing; write "${file:/absolute/path}" or "${env:NAME}"`,
			"keep.yaml:1:61: connectors.settings[0].credentials.sigv4: a key signs requests, and is no header field; keep sigv4 alone, with use",
		}},
		{"an override of a later version", "[{connector: a, overrides: {o: {on_absent: redispatch, max_dispatches: 3, drift: warn}}}]", []string{
			"keep.yaml:1:98: connectors.settings[0].overrides.o.drift: is not built yet; leave it out; this version refuses it rather than ignore it",
		}},
		{"a parameter without a value", "[{connector: a, parameters: {p: }}]", []string{
			"keep.yaml:1:56: connectors.settings[0].parameters.p: must be one value, and there is none; write it, or leave the key out",
		}},
		{"a parameter that is a map", "[{connector: a, parameters: {p: {x: y}}}]", []string{
			"keep.yaml:1:56: connectors.settings[0].parameters.p: must be one value; write one value on the line; quote it if it holds [ or { or \": \"",
		}},
		{"an operation twice", "[{connector: a, overrides: {o: {}, o: {}}}]", []string{
			"keep.yaml:1:59: connectors.settings[0].overrides.o: is already on line 1; keep one of them",
		}},
		{"overrides that are no map", "[{connector: a, overrides: [o]}]", []string{
			"keep.yaml:1:51: connectors.settings[0].overrides: must be a map; write key: value lines below it",
		}},
		{"a zero that would mean no override", "[{connector: a, overrides: {o: {settle: 0s, max_body: 0}}}]", []string{
			`keep.yaml:1:64: connectors.settings[0].overrides.o.settle = "0s": out of bounds; write a value from 1ms to 8760h`,
			`keep.yaml:1:78: connectors.settings[0].overrides.o.max_body = "0": out of bounds; write a value from 1B to 1GiB`,
		}},
		{"no sending at all", "[{connector: a, overrides: {o: {on_absent: redispatch, max_dispatches: 0}}}]", []string{
			`keep.yaml:1:95: connectors.settings[0].overrides.o.max_dispatches = "0": out of bounds; write a value from 1 to 10`,
		}},
		{"a credential that isn't kept at all", "[{connector: a, credentials: {exec: [p], cache: 0s}}]", []string{
			`keep.yaml:1:72: connectors.settings[0].credentials.cache = "<secret>": out of bounds; write a value from 1s to 24h`,
		}},
		{"a timeout beyond the whole", "[{connector: a, overrides: {o: {timeout: 11m}}}]", []string{
			`keep.yaml:1:65: connectors.settings[0].overrides.o.timeout = "11m": connectors.settings[0].overrides.o.timeout (11m) is more than proxy.timeouts.total (10m); lower the one or raise the other`,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := writeConfig(t, "connectors: {settings: "+c.settings+"}")
			compareLines(t, problems(t, Options{File: file, Environ: home}), c.want)
		})
	}
}

func TestProblemsNeverShowWhatMayBeASecret(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, credentials string
		want              string
	}{
		{"a reference that is not closed", `{header: A, value: "sk_live_1${env:X"}`,
			`keep.yaml:1:72: connectors.settings[0].credentials.value = "<secret>": a ${ has no closing }; write text with ${env:NAME} or ${file:/absolute/path} in it`},
		{"a relative path", `{header: A, value: "sk_live_1${file:x}"}`,
			`keep.yaml:1:72: connectors.settings[0].credentials.value = "<secret>": ${file:} takes an absolute path, not x; write the path from / on`},
		{"a value in place of a map", `sk_live_1`,
			`keep.yaml:1:53: connectors.settings[0].credentials = "<secret>": must be a map; write key: value lines below it`},
		{"a value behind a mistyped key", `{header: A, value: "${env:X}", valeu: sk_live_1}`,
			`keep.yaml:1:84: connectors.settings[0].credentials.valeu: unknown key; did you mean value?`},
		{"a whole header line as its name", `{header: "A: sk_live_1", value: "${env:X}"}`,
			`keep.yaml:1:62: connectors.settings[0].credentials.header = "<secret>": not a header's name; write the name alone, such as Authorization, without a colon`},
		{"a use that is a secret", `{header: A, value: "${env:X}", use: sk_live_1}`,
			`keep.yaml:1:89: connectors.settings[0].credentials.use = "<secret>": not a known value; use always or reconcile`},
		{"a value that is a number", `{header: A, value: 12345}`,
			`keep.yaml:1:72: connectors.settings[0].credentials.value = "<secret>": a number or boolean where text is expected; put it in quotes`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := writeConfig(t, "connectors: {settings: [{connector: a, credentials: "+c.credentials+"}]}")
			compareLines(t, problems(t, Options{File: file, Environ: home}), []string{c.want})
		})
	}
}

func TestCredentialHeaders(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, header, want, problem string
	}{
		{"a common one", "authorization", "Authorization", ""},
		{"one of a vendor", "x-api-key", "X-Api-Key", ""},
		{"a name with a space", "my key", "", "not a header's name"},
		{"no name", "", "", "not a header's name"},
		{"framing", "content-length", "", "the proxy sets or removes this header itself"},
		{"routing", "host", "", "the proxy sets or removes this header itself"},
		{"one of a single connection", "te", "", "the proxy sets or removes this header itself"},
		{"the proxy's credentials", "proxy-authorization", "", "the proxy sets or removes this header itself"},
		{"keep-proxy's own", "keep-item", "", "the proxy sets or removes this header itself"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, f := readHeaderName("", c.header)
			if f == nil {
				f = &fault{}
			}
			if got != c.want || f.text != c.problem {
				t.Errorf("got %q and %q, want %q and %q", got, f.text, c.want, c.problem)
			}
		})
	}
}

func TestBundled(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, yaml, variable string
		want                 Bundled
		text                 string
		stripe               bool
	}{
		{"all", "true", "true", Bundled{All: true}, "true", true},
		{"none", "false", "false", Bundled{}, "false", false},
		{"named", "[stripe, github]", "stripe, github", Bundled{Names: []string{"stripe", "github"}}, "stripe,github", true},
		{"others", "[github]", "github", Bundled{Names: []string{"github"}}, "github", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fromFile, err := Load(Options{File: writeConfig(t, "connectors: {bundled: "+c.yaml+"}"), Environ: home})
			if err != nil {
				t.Fatal(err)
			}
			fromVariable, err := Load(Options{Environ: append([]string{"KEEP_CONNECTORS_BUNDLED=" + c.variable}, home...)})
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []Bundled{fromFile.Connectors.Bundled, fromVariable.Connectors.Bundled} {
				if !reflect.DeepEqual(got, c.want) || got.String() != c.text || got.Includes("stripe") != c.stripe {
					t.Errorf("got %+v (%s), includes stripe: %t", got, got, got.Includes("stripe"))
				}
			}
		})
	}
}

func TestProblemsOfBundled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, yaml string
		want       []string
	}{
		{"one name without a list", "stripe", []string{
			`keep.yaml:1:23: connectors.bundled = "stripe": neither a boolean nor a list; write true for all, false for none, or a list of names`,
		}},
		{"a name twice", "[a, a]", []string{
			`keep.yaml:1:27: connectors.bundled[1] = "a": given twice, first as connectors.bundled[0]; remove one of them`,
		}},
		{"a path as a name", "[a.yaml]", []string{
			`keep.yaml:1:24: connectors.bundled[0] = "a.yaml": not a connector's name; use lower-case letters, digits and -, as in the connector's file`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := writeConfig(t, "connectors: {bundled: "+c.yaml+"}")
			compareLines(t, problems(t, Options{File: file, Environ: home}), c.want)
		})
	}
}
