package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"keep-proxy/cli/demo"
	"keep-proxy/cli/netns"
	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/control"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/testca"
)

// parallel is the least number of scripts that run at a time, unless -parallel says
// otherwise: they wait for clocks and other processes more than they compute.
const parallel = 6

// TestMain makes the test binary play the commands of the scripts: the program
// itself, and small scripts as their users write them.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(max(parallel, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"keep-proxy":       mainIsolated,
		"keep-proxy-netns": main,
		"pay":              payMain,
		"ask":              askMain,
		"gate":             gateMain,
		"typist":           typistMain,
		"terminal":         terminalMain,
	})
}

// isolateVariable makes the program isolate each run.
const isolateVariable = "TEST_ISOLATE"

// mainIsolated is the program, whose runs are isolated where the variable says so.
func mainIsolated() {
	if os.Getenv(isolateVariable) != "" && len(os.Args) > 1 && os.Args[1] == "run" {
		os.Args = slices.Insert(os.Args, 2, "--isolate")
	}
	main()
}

// program is this test binary under the program's name, in a folder: it must be a
// file of its own, for the program starts itself by the path that the system gives.
func program(t *testing.T, dir string) string {
	t.Helper()
	return programAs(t, dir, "keep-proxy")
}

// programAs is program for another command of the scripts.
func programAs(t *testing.T, dir, command string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, command)
	if os.Link(self, name) == nil {
		return name
	}
	content, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(name, content, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// payMain is a script that pays, told by the demo's variables.
func payMain() {
	if err := demo.Client(context.Background(), os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// askMain is a script that asks once: METHOD URL BODY, and then fields as NAME:VALUE. It
// prints the status, and of a refusal its name and sentence; it fails like curl --fail. What
// it was told it prints also where keep-proxy run, which sees the run's end at the same moment,
// asks it to end before that.
func askMain() {
	signal.Ignore(syscall.SIGTERM)
	status, text, err := askOnce(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var refused struct {
		Type   string `json:"type"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(text, &refused) == nil && strings.HasPrefix(refused.Type, "urn:keep:problem:") {
		text = []byte(strings.TrimPrefix(refused.Type, "urn:keep:problem:") + ": " + refused.Detail)
	}
	fmt.Println(status, strings.TrimSpace(string(text)))
	if status >= http.StatusBadRequest {
		os.Exit(22)
	}
}

func askOnce(method, address, body string, fields []string) (status int, text []byte, err error) {
	client, err := demo.NewClient(os.Getenv)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ":")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err = io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// patience bounds what a script waits for. It is reached only by what is broken: processes that
// begin with the race detector take seconds on a busy machine, and a gate waits for several.
const patience = 5 * time.Minute

// gateMain is a script that makes the file NAME.in and waits until NAME.out is
// there, or until it is ended.
func gateMain() {
	name := os.Args[1]
	if err := os.WriteFile(name+".in", nil, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := appears(name + ".out"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// appears waits for a file.
func appears(name string) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	late := time.After(patience)
	for {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-late:
			return fmt.Errorf("%s did not appear in %s", name, patience)
		case <-poll.C:
		}
	}
}

func TestScripts(t *testing.T) {
	// The doctor wants ledgers on a disk, and /tmp may be in memory.
	root, err := os.MkdirTemp("/var/tmp", "scripts") //nolint:usetesting // As it says.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil { // Some commands are run as another user.
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), WorkdirRoot: root,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv(isolateVariable, os.Getenv(isolateVariable))
			examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
			e.Setenv("EXAMPLES", examples)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"bank": bankCommand, "appears": appearsCommand, "until": untilCommand, "jsonhas": jsonCommand,
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "isolation":
				return netns.Check(false) == nil, nil
			}
			return false, fmt.Errorf("condition %q is unknown", name)
		},
		RequireExplicitExec: true,
	})
}

// Codes, signals, the terminal and results are as without isolation: the same tests hold for a command with a network of
// its own.
func TestAnIsolatedCommandIsAsAnyOther(t *testing.T) {
	t.Parallel()
	if err := netns.Check(false); err != nil {
		t.Skipf("no network namespace can be had here: %v", err)
	}
	if os.Getenv(isolateVariable) != "" {
		t.Skip("this is how it is called")
	}
	scripts := "^TestScripts$/^(run|signals|stop|result|crash|once)$"
	terminals := "^Test(Control|ACommand|AShellS|AJob|TheCommandHas|AResize|AnEditor|AnInterpreter)"
	for _, tests := range []string{scripts, terminals} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tests)
		cmd.Env = append(os.Environ(), isolateVariable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	}
}

// bankCommand starts a bank (bank start; nokeys: that knows no keys), writes its configuration to config.yaml,
// arms a fault (bank arm NAME), waits until it did something (bank has IDENTITY), or
// holds its count against a number (bank did IDENTITY N).
func bankCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: bank start [nokeys] | arm NAME | has IDENTITY | did IDENTITY N")
	}
	if args[0] == "start" {
		startBank(ts, len(args) == 2 && args[1] == "nokeys")
		return
	}
	c := control.New(ts.Getenv("BANK_CONTROL"))
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch {
	case args[0] == "has" && len(args) == 2:
		_, err := oracle.Wait(ctx, ts.MkAbs("bank.log"), func(t oracle.Tally) bool { return t.Effects(args[1]) > 0 })
		ts.Check(err)
	case args[0] == "arm" && len(args) == 2:
		ts.Check(c.ArmNamed(ctx, args[1]))
	case args[0] == "did" && len(args) == 3:
		tally, err := c.Tally(ctx)
		ts.Check(err)
		if got := fmt.Sprint(tally.Effects(args[1])); got != args[2] {
			ts.Fatalf("the bank did %s %s times, want %s", args[1], got, args[2])
		}
	default:
		ts.Fatalf("bank: unknown %q", args)
	}
}

// startBank starts bank and quotes in this process. A bank without keys has a
// configuration of its own, double.yaml, for the rule files in the folder rules.
func startBank(ts *testscript.TestScript, noKeys bool) {
	ca := testAuthority(ts)
	start := func(api string, settings []byte) *fakes.Fake {
		f, err := fakes.Start(fakes.Options{API: api, Log: ts.MkAbs(api + ".log"), CA: ca, Control: "127.0.0.1:0", Settings: settings})
		ts.Check(err)
		ts.Defer(func() { _ = f.Close() })
		return f
	}
	var settings []byte
	if noKeys {
		settings = []byte(`{"native_keys": false}`)
	}
	bank, quotes := start("bank", settings), start("quotes", nil)
	ts.Setenv("BANK", bank.URL())
	ts.Setenv("BANK_ADDR", bank.Addr())
	ts.Setenv("BANK_CONTROL", bank.ControlURL())
	ts.Setenv("DEMO_BANK", bank.URL())
	ts.Setenv("DEMO_QUOTES", quotes.URL())
	configuration := fmt.Sprintf(`proxy:
  listen: ["127.0.0.1:0"]
  upstream_ca: %q
  egress: {allow: [127.0.0.1]}
  timeouts: {dial: 60s}
admin: {listen: "127.0.0.1:0"}
ledger: {dir: %q, min_free: 1MiB}
reconcile: {inline: 0s, base: 200ms, cap: 1s}
log: {level: warn}
`, ts.MkAbs("fakes-ca.pem"), ts.MkAbs("data"))
	ts.Check(os.WriteFile(ts.MkAbs("config.yaml"), []byte(configuration+ruled("demo-bank", bank.Addr(), "")), 0o600))
	if noKeys {
		ts.Check(os.WriteFile(ts.MkAbs("double.yaml"), []byte(configuration+ruled("twice-bank", bank.Addr(), ts.MkAbs("rules"))), 0o600))
	}
}

// ruled is the part of a configuration that has a connector for a bank, of a folder.
func ruled(connector, at, dir string) string {
	dirs := "[]"
	if dir != "" {
		dirs = fmt.Sprintf("[%q]", dir)
	}
	return fmt.Sprintf("connectors:\n  dirs: %s\n  settings:\n    - connector: %s\n      hosts: [%q, \"127.0.0.1:1\"]\n", dirs, connector, at)
}

// testAuthority is the authority of a script's fakes.
func testAuthority(ts *testscript.TestScript) *testca.CA {
	ca, err := testca.LoadOrCreate(ts.Getenv("WORK"))
	ts.Check(err)
	return ca
}

// appearsCommand waits for files.
func appearsCommand(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		ts.Check(appears(ts.MkAbs(name)))
	}
}

// untilCommand runs a command again and again, until it succeeds (! until: fails).
func untilCommand(ts *testscript.TestScript, neg bool, args []string) {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	late := time.After(patience)
	for {
		err := ts.Exec(args[0], args[1:]...)
		if (err == nil) != neg {
			return
		}
		select {
		case <-late:
			ts.Fatalf("until %q: %v", args, err)
		case <-poll.C:
		}
	}
}

// jsonCommand holds a member of a JSON file against a text: jsonhas FILE PATH TEXT,
// where PATH is separated by dots and TEXT may be a part.
func jsonCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: jsonhas FILE PATH TEXT")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	for name := range strings.SplitSeq(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			if len(at) == 0 {
				v = nil
				break
			}
			v = at[0]
		}
	}
	if got := fmt.Sprint(v); strings.Contains(got, args[2]) == neg {
		ts.Fatalf("%s of %s is %q", args[1], args[0], got)
	}
}

// TestEveryCommandSaysWhatItDoes holds the help of every command against the form
// that people read.
func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	root := newRoot(streams{strings.NewReader(""), io.Discard, io.Discard})
	for _, cmd := range root.Commands() {
		if cmd.Hidden {
			continue
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %q is no short description", cmd.Name(), cmd.Short)
		}
	}
	for _, name := range []string{"serve", "run", "env", "check", "explain", "connectors", "mutations", "runs", "resolve", "status", "ledger", "ca", "health", "version", "demo"} {
		if found, _, err := root.Find([]string{name}); err != nil || found.Name() != name {
			t.Errorf("there is no command %s", name)
		}
	}
}
