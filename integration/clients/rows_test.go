package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// result is a row of the table.
type result struct {
	client

	version string
	notRun  string
	// done are the cases that went as they must, in the order of cases.
	done []string
	bad  bool
}

var statusLine = regexp.MustCompile(`(?m)^\s*(?:HTTP/[0-9.]+|STATUS) (\d{3})`)

// status is the last status that the client printed, 0 for none.
func status(printed string) string {
	all := statusLine.FindAllStringSubmatch(printed, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// try plays the five cases with one client.
func (w *world) try(t *testing.T, row int, r *result) {
	t.Helper()
	c := r.client
	if missing := c.missing(); missing != "" {
		r.notRun = missing
		t.Skipf("not run: %s is not on this machine", missing)
	}
	r.version = version(c)
	w.makeTruststore(t, c)
	bank, hook := "https://"+anywhere(w.bank), "https://"+anywhere(w.hooks)
	order := func(reference string) string {
		return fmt.Sprintf(`{"from":"ann","to":"bob","amount":100,"currency":"EUR","reference":"%s"}`, reference)
	}
	check := func(what string, ok bool, printed string) {
		if !ok {
			r.bad = true
			t.Errorf("%s:\n%s", what, printed)
			return
		}
		r.done = append(r.done, what)
	}
	if c.around != nil && c.around() {
		before := w.sends(t, "x")
		got := w.under(t, c, "around", "POST", bank+"/transfers", order("x"))
		check("around", status(got) == "" || w.sends(t, "x") > before, got)
		return
	}

	// Under run: a read, a mutation whose answer is lost, and the script once more.
	ref := fmt.Sprintf("run-%d", row)
	got := w.under(t, c, "read", "GET", bank+"/balance", "")
	check("read", status(got) == "200", got)
	must(t, w.bank.ArmNamed("commit-close"))
	got = w.under(t, c, ref, "POST", bank+"/transfers", order(ref))
	check("mutation", status(got) == "201" && w.effects(t, ref) == 1, got)
	got = w.under(t, c, ref, "POST", bank+"/transfers", order(ref))
	check("replay", status(got) == "201" && strings.Contains(strings.ToLower(got), "keep-replayed: true") && w.effects(t, ref) == 1 && w.sends(t, ref) == 1, got)

	// Under env: the same without run in between.
	ref = fmt.Sprintf("env-%d", row)
	for i, want := range []string{"", "true"} {
		got = w.call(t, c, w.open(t, c, ref), "POST", bank+"/transfers", order(ref))
		ok := status(got) == "201" && strings.Contains(strings.ToLower(got), "keep-replayed: true") == (want != "") && w.effects(t, ref) == 1
		check([]string{"mutation (env)", "replay (env)"}[i], ok, got)
	}

	// A wrong token gets nowhere.
	ref = fmt.Sprintf("token-%d", row)
	env := w.open(t, c, ref)
	env.forge(w.shared(t))
	got = w.call(t, c, env, "POST", bank+"/transfers", order(ref))
	check("wrong token", !strings.HasPrefix(status(got), "2") && w.sends(t, ref) == 0, got)

	// What can't be known stops the run; whoever goes on gets nothing through.
	name := fmt.Sprintf("plain/stop-%d", row)
	must(t, w.hooks.ArmNamed("close"))
	env = w.open(t, c, "stop")
	got = w.call(t, c, env, "POST", hook+"/hook/"+name, "hello")
	again := w.call(t, c, env, "POST", hook+"/hook/plain/after", "hello")
	check("stop", status(got) == "424" && strings.Contains(got, "unknown-outcome") && status(again) == "424", got+again)
}

// forge puts another token into the variables, at the listener that all share: at a
// run's own nobody is asked for one.
func (o opened) forge(shared string) {
	for name, value := range o {
		if strings.HasSuffix(strings.ToUpper(name), "_PROXY") && value != "" {
			o[name] = "http://run:wrong@" + shared
		}
	}
}

// shared is the address of the proxy's listener.
func (w *world) shared(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "data", "serving.json"))
	must(t, err)
	var serving struct {
		Proxy string `json:"proxy"`
	}
	must(t, json.Unmarshal(text, &serving))
	return serving.Proxy
}

// effects and sends are the bank's own counts for a transfer.
func (w *world) effects(t *testing.T, reference string) int {
	t.Helper()
	tally, err := w.bank.Tally()
	must(t, err)
	return tally.Effects("transfer:" + reference)
}

func (w *world) sends(t *testing.T, reference string) int {
	t.Helper()
	tally, err := w.bank.Tally()
	must(t, err)
	return tally.Sends("transfer:" + reference)
}

// missing is what the client lacks on this machine.
func (c client) missing() string {
	if c.argv[0] != "{self}" {
		if _, err := exec.LookPath(c.argv[0]); err != nil {
			return c.argv[0]
		}
	}
	if c.needs != "" {
		if _, err := os.Stat(c.needs); err != nil {
			return c.needs
		}
	}
	if exec.Command(c.version[0], c.version[1:]...).Run() != nil {
		return strings.Join(c.version, " ")
	}
	return ""
}

var number = regexp.MustCompile(`\d+(\.\d+)+`)

func version(c client) string {
	out, _ := exec.Command(c.version[0], c.version[1:]...).CombinedOutput()
	return number.FindString(string(out))
}

// makeTruststore makes a store of roots as Java takes them.
func (w *world) makeTruststore(t *testing.T, c client) {
	t.Helper()
	if !strings.Contains(strings.Join(c.argv, " "), "{truststore}") {
		return
	}
	w.truststore = filepath.Join(w.dir, "truststore.p12")
	w.command(t, nil, "keytool", "-importcert", "-noprompt", "-alias", "keep-proxy", "-storetype", "PKCS12",
		"-keystore", w.truststore, "-storepass", "changeit", "-file", filepath.Join(w.dir, "data", "ca-cert.pem"))
}

// olderNode reports whether this machine's Node knows no NODE_USE_ENV_PROXY.
func olderNode() bool {
	out, err := exec.Command("node", "-p", "parseFloat(process.versions.node) < 22.21").Output()
	return err == nil && strings.TrimSpace(string(out)) == "true"
}
