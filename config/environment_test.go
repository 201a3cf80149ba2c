package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestProblemsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		line string
		want []string
	}{
		{"a name of something else", "KEEPER=1", nil},
		{"a name without a value", "KEEP_LOG_LEVLE", nil},
		{"an empty unknown name is an unset one", "KEEP_LOG_LEVLE=", nil},
		{"a mistyped name", "KEEP_PROXY_LISTN=sk_live", []string{
			"environment: KEEP_PROXY_LISTN: no such variable; did you mean KEEP_PROXY_LISTEN?",
		}},
		{"a mistyped name of run", "KEEP_WORKFLO=w", []string{
			"environment: KEEP_WORKFLO: no such variable; did you mean KEEP_WORKFLOW?",
		}},
		{"a name like nothing", "KEEP_STRIPE_SECRET_KEY_FOR_TESTS=sk_live", []string{
			"environment: KEEP_STRIPE_SECRET_KEY_FOR_TESTS: no such variable; unset it; variables that begin with KEEP_ are keep-proxy's own, one for each key of config.example.yaml",
		}},
		{"a time that is too short", "KEEP_LEDGER_RETENTION_KEEP=1h", []string{
			`environment: ledger.retention.keep = "1h": out of bounds; write a value from 24h to 876000h`,
		}},
		{"half of a certificate", "KEEP_ADMIN_TLS_KEY_FILE=/k", []string{
			`environment: admin.tls.key_file = "/k": admin.tls.cert_file is missing; set both admin.tls.cert_file and admin.tls.key_file, or neither`,
		}},
		{"tokens", "KEEP_ADMIN_TOKENS=secret", []string{
			"environment: KEEP_ADMIN_TOKENS: admin.tokens is a list of maps and has no variable; write it in the configuration file",
		}},
		{"a key without a variable", "KEEP_CONNECTORS_SETTINGS=[]", []string{
			"environment: KEEP_CONNECTORS_SETTINGS: connectors.settings is a list of maps and has no variable; write it in the configuration file",
		}},
		{"a bad element of a list", "KEEP_PROXY_LISTEN=127.0.0.1:1,127.0.0.1", []string{
			`environment: proxy.listen[1] = "127.0.0.1": not an address; write host:port, such as 127.0.0.1:8080, or unix:/absolute/path`,
		}},
		{"a value that breaks a rule", "KEEP_PROXY_HOLD=2h", []string{
			`environment: proxy.hold = "2h": out of bounds; write a value from 0s to 1h`,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			compareLines(t, problems(t, Options{Environ: append([]string{c.line}, home...)}), c.want)
		})
	}
}

// Kubernetes sets them in each pod beside a Service that is named keep-proxy.
func TestVariablesOfAServiceAreNamedAsSuch(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"KEEP_PROXY_SERVICE_HOST": true, "KEEP_PROXY_SERVICE_PORT": true, "KEEP_PROXY_SERVICE_PORT_HTTP": true, "KEEP_PROXY_PORT": true,
		"KEEP_PROXY_PORT_8080_TCP": true, "KEEP_PROXY_PORT_8080_TCP_PROTO": true, "KEEP_PROXY_PORT_8080_UDP_ADDR": true, "KEEP_PROXY_PORTS": false,
		"KEEP_PROXY_LISTN": false,
	} {
		got := problems(t, Options{Environ: append([]string{name + "=tcp://10.0.0.1:80"}, home...)})
		if len(got) != 1 || strings.Contains(got[0], "enableServiceLinks: false") != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNamesOfRunAndOfTheCommandLineAreNoConfiguration(t *testing.T) {
	t.Parallel()
	environ := append([]string{}, home...)
	for _, name := range notConfiguration {
		environ = append(environ, name+"=/x")
	}
	got, err := Load(Options{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Load(Options{Environ: home})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("they changed the configuration:\n%+v\nwant\n%+v", got, want)
	}
}

func TestOfAVariableGivenTwiceTheLastCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		environ []string
		want    LogLevel
	}{
		{"two values", []string{"KEEP_LOG_LEVEL=debug", "KEEP_LOG_LEVEL=warn"}, LevelWarn},
		{"a value and nothing", []string{"KEEP_LOG_LEVEL=debug", "KEEP_LOG_LEVEL="}, LevelInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Load(Options{Environ: append(c.environ, home...)})
			if err != nil || got.Log.Level != c.want {
				t.Errorf("level %q, error %v; want %q", got.Log.Level, err, c.want)
			}
		})
	}
}
