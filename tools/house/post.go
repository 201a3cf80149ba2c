package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const connector = `apiVersion: keep/v1
connector: things
version: 1
title: Things
hosts: ["%s"]
reads: safe-methods
operations:
  - name: thing.create
    match: {method: POST, path: /things}
    effect: mutation
    describe: "Create the thing {json.name}"
    identity: {name: json.name}
    reconcile:
      - none: "things can't be asked about"
    manual_check: "Look for the thing {json.name}."
`

// onePost prints how many functions and files run only because of one POST. It is plain HTTP in a
// CONNECT tunnel, without a run; a start without a request is subtracted.
func onePost() error {
	dir, err := os.MkdirTemp("", "house-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "keep-proxy")
	build := exec.Command("go", "build", "-cover", "-covermode=count", "-coverpkg=./...", "-o", binary, "./cmd/keep-proxy")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	idle, err := counted(filepath.Join(dir, "idle"), binary, false)
	if err != nil {
		return err
	}
	busy, err := counted(filepath.Join(dir, "busy"), binary, true)
	if err != nil {
		return err
	}
	functions, files := map[string]bool{}, map[string]bool{}
	for f, n := range busy {
		if n > 0 && idle[f] == 0 {
			file, _, _ := strings.Cut(f, ":")
			functions[f], files[file] = true, true
		}
	}
	fmt.Printf("| functions; files that one POST runs | %d; %d |\n", len(functions), len(files))
	return nil
}

// counted starts the program, perhaps sends it a POST, ends it, and returns how often each function ran.
func counted(dir, binary string, post bool) (map[string]int, error) {
	if err := os.MkdirAll(filepath.Join(dir, "cover"), 0o700); err != nil {
		return nil, err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	config := "proxy:\n  listen: [127.0.0.1:0]\n  unmanaged: {workflow: house, item: post}\n  egress: {allow: [127.0.0.1]}\n" +
		"admin: {listen: 127.0.0.1:0}\nledger: {dir: " + filepath.Join(dir, "data") + "}\nconnectors:\n  dirs: [" + filepath.Join(dir, "connectors") + "]\n"
	for name, text := range map[string]string{"config.yaml": config, "connectors/things.yaml": fmt.Sprintf(connector, server.Listener.Addr())} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "serve", "--config", filepath.Join(dir, "config.yaml"))
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+filepath.Join(dir, "cover"), "HOME="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	proxy, err := listening(said)
	if err == nil && post {
		err = throughTunnel(proxy, server.Listener.Addr().String())
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, said)
	if waited := cmd.Wait(); err == nil && waited != nil {
		err = fmt.Errorf("serve: %w", waited)
	}
	if err != nil {
		return nil, err
	}
	profile := filepath.Join(dir, "profile")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i", filepath.Join(dir, "cover"), "-o", profile).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("covdata: %w\n%s", err, out)
	}
	return byFunction(profile)
}

// listening reads the log until it names the proxy's address.
func listening(log io.Reader) (string, error) {
	lines := bufio.NewScanner(log)
	var seen bytes.Buffer
	for lines.Scan() {
		seen.WriteString(lines.Text() + "\n")
		_, named, _ := strings.Cut(lines.Text(), "proxy")
		for word := range strings.FieldsFuncSeq(named, func(r rune) bool { return strings.ContainsRune(` "=[],{}`, r) }) {
			word = strings.TrimPrefix(word, "http://")
			if _, port, err := net.SplitHostPort(word); err == nil && port != "0" && strings.HasPrefix(word, "127.") {
				return word, nil
			}
		}
	}
	return "", fmt.Errorf("the log names no address of the proxy:\n%s", &seen)
}

// throughTunnel posts by CONNECT.
func throughTunnel(proxy, upstream string) error {
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", upstream); err != nil {
		return err
	}
	read := bufio.NewReader(conn)
	answer, err := http.ReadResponse(read, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("CONNECT: %s", answer.Status)
	}
	request := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: upstream, Path: "/things"}, Host: upstream, Close: true,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"name":"a"}`)), ContentLength: 12,
	}
	if err := request.Write(conn); err != nil {
		return err
	}
	answer, err = http.ReadResponse(read, request)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("POST: %s\n%s", answer.Status, content)
	}
	return err
}

// byFunction sums a profile's counts up by "file:function:line".
func byFunction(profile string) (map[string]int, error) {
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	type span struct {
		name       string
		begin, end int
	}
	spans := map[string][]span{}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		file, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) != 3 {
			continue
		}
		name := strings.TrimPrefix(file, "keep-proxy/")
		if spans[name] == nil {
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			spans[name] = []span{}
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					begin := set.Position(f.Pos()).Line
					spans[name] = append(spans[name], span{fmt.Sprintf("%s:%s:%d", name, f.Name.Name, begin), begin, set.Position(f.End()).Line})
				}
			}
		}
		at, _, _ := strings.Cut(fields[0], ".")
		begin, err := strconv.Atoi(at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		for _, s := range spans[name] {
			if s.begin <= begin && begin <= s.end {
				counts[s.name] += n
			}
		}
	}
	return counts, nil
}
