package fakes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/testca"
)

// Announcement is the line that Main prints once it listens.
type Announcement struct {
	API     string `json:"api"`
	URL     string `json:"url"`
	Addr    string `json:"addr"`
	Control string `json:"control"`
	Log     string `json:"log"`
	CAFile  string `json:"ca_file,omitempty"`
	PID     int    `json:"pid"`
}

// Exit codes of Main.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `usage: API -log FILE [-ca-dir DIR] [-listen ADDR] [-control ADDR] [-host NAME,…]
           [-no-h2] [-settings JSON] [-until-eof]

`

// command is what the arguments ask for.
type command struct {
	options  Options
	caDir    string
	untilEOF bool
}

// Main runs one fake: args are the API's name and flags. Without -ca-dir it serves plain HTTP; with it, the authority
// is kept there. The control listener is on 127.0.0.1:0 unless told otherwise. It serves until ctx ends or, with
// -until-eof, stdin does. It returns an exit code: 2 for wrong arguments, 1 if it could not serve or its log failed.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd, err := parse(args, stderr)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	if err := cmd.run(ctx, stdin, stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	return exitOK
}

func parse(args []string, stderr io.Writer) (command, error) {
	var cmd command
	var hosts, settings string
	fs := flag.NewFlagSet("fake", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, usage)
		fs.PrintDefaults()
	}
	fs.StringVar(&cmd.options.Log, "log", "", "file of the effects log (required)")
	fs.StringVar(&cmd.caDir, "ca-dir", "", "folder of the certificate authority, made there at first; without it plain HTTP")
	fs.StringVar(&cmd.options.Listen, "listen", server.Loopback, "address of the upstream")
	fs.StringVar(&cmd.options.Control, "control", server.Loopback, "address of the control listener")
	fs.StringVar(&hosts, "host", "", "more names for the certificate, separated by commas")
	fs.BoolVar(&cmd.options.NoHTTP2, "no-h2", false, "offer HTTP/1.1 only")
	fs.StringVar(&settings, "settings", "", "the API's settings as JSON")
	fs.BoolVar(&cmd.untilEOF, "until-eof", false, "end when standard input ends")
	if len(args) == 0 {
		fs.Usage()
		return command{}, errors.New("fakes: name an API first")
	}
	cmd.options.API = args[0]
	if err := fs.Parse(args[1:]); err != nil {
		return command{}, err
	}
	if fs.NArg() > 0 || cmd.options.Log == "" {
		return command{}, fmt.Errorf("fakes: -log is required, and nothing but flags after the API: %q", fs.Args())
	}
	cmd.options.Hosts = splitList(hosts)
	if settings != "" {
		cmd.options.Settings = []byte(settings)
	}
	return cmd, nil
}

func splitList(text string) []string {
	var out []string
	for part := range bytes.SplitSeq([]byte(text), []byte(",")) {
		if part = bytes.TrimSpace(part); len(part) > 0 {
			out = append(out, string(part))
		}
	}
	return out
}

func (cmd command) run(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	if cmd.caDir != "" {
		ca, err := testca.LoadOrCreate(cmd.caDir)
		if err != nil {
			return err
		}
		cmd.options.CA = ca
	}
	fake, err := Start(cmd.options) //nolint:contextcheck // what it starts ends with Close
	if err != nil {
		return err
	}
	if err := json.NewEncoder(stdout).Encode(cmd.announce(fake)); err != nil {
		return errors.Join(fmt.Errorf("fakes: announce: %w", err), fake.Close())
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	if cmd.untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			end()
		}()
	}
	<-ctx.Done()
	return fake.Close()
}

func (cmd command) announce(fake *Fake) Announcement {
	a := Announcement{API: cmd.options.API, URL: fake.URL(), Addr: fake.Addr(), Control: fake.ControlURL(), Log: cmd.options.Log, PID: os.Getpid()}
	if cmd.caDir != "" {
		a.CAFile = filepath.Join(cmd.caDir, testca.CertFile)
	}
	return a
}
