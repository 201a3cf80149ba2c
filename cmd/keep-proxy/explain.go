package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
	"keep-proxy/app"
	"keep-proxy/internal/clock"
	"keep-proxy/rules"
)

// explainFlags are the flags of explain.
type explainFlags struct {
	adminFlags
	wire.Explain // as if in this work

	headers []string
	data    string
	request string
}

// newExplain makes the command that says what the rules make of a request.
func newExplain() *cobra.Command {
	f := &explainFlags{}
	cmd := &cobra.Command{
		Use:   "explain [-X METHOD] [-H 'NAME: VALUE'] [-d BODY] URL",
		Short: "Say how a request would be judged, without sending it",
		Long: "Tells operation, identity, payload and key. If a proxy runs, it also tells what would happen now. No API is\n" +
			"asked: where a connector asks whose data is changed, the key is known with --account only.\n" +
			"-d declares a form, as curl does, unless -H says what it is.\n" +
			"--request reads the request from a file: request line with the whole URL, fields, an empty line, body.\n" +
			"The body is as long as its Content-Length. Without one, a line break at the file's end is no part of it.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.read(cmd.InOrStdin(), args); err != nil {
				return err
			}
			out, err := f.explain(cmd)
			if err != nil {
				return err
			}
			f.hint(cmd, out)
			return show(cmd, out, showExplained)
		},
	}
	f.bind(jsonFlag(cmd))
	f.bindRequest(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.Workflow, "workflow", "", "as if in this workflow")
	flags.StringVar(&f.Item, "item", "", "as if for this item")
	flags.IntVar(&f.Attempt, "attempt", 0, "as if in this attempt")
	flags.StringVar(&f.Account, "account", "", "as if the API said that it is this one's data, where a connector asks it")
	return cmd
}

// bindRequest adds the flags that give the request.
func (f *explainFlags) bindRequest(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.Method, "method", "X", "", "method (default GET, with -d POST)")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "header field, NAME: VALUE; may be repeated")
	flags.StringVarP(&f.data, "data", "d", "", "body; @FILE reads it, @- from standard input")
	flags.StringVar(&f.request, "request", "", "file with the whole request; - for standard input")
}

// hint says what is easily overlooked in what was asked.
func (f *explainFlags) hint(cmd *cobra.Command, out app.Explained) {
	say := saying(cmd.ErrOrStderr())
	form := slices.Equal(f.Headers["Content-Type"], []string{formType})
	if f.data != "" && form && beginsJSON(string(bytes.TrimSpace(f.Body.Content))) {
		say("curl would send this as a form; add -H 'content-type: application/json'")
	}
	if f.Account != "" && out.AccountAsked == "" && out.Effect == "mutation" {
		say("--account %s changes nothing: this connector doesn't ask the API for the account", f.Account)
	}
}

// formType is what curl's -d declares.
const formType = "application/x-www-form-urlencoded"

// read reads the request that the flags describe.
func (f *explainFlags) read(stdin io.Reader, args []string) error {
	switch {
	case f.request != "" && (len(args) > 0 || f.Method != "" || f.data != "" || len(f.headers) > 0):
		return usage("--request holds the whole request; leave URL, -X, -H and -d out")
	case f.request != "":
		content, err := readNamed(stdin, f.request)
		if err != nil {
			return err
		}
		if err := readRequest(content, &f.Explain); err != nil {
			return fmt.Errorf("%s: %w", f.request, err)
		}
		return nil
	case len(args) == 0:
		return usage("name the URL, or give --request FILE")
	}
	f.URL, f.Headers = args[0], wire.Header{}
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return usage("-H %q is no field; write -H 'NAME: VALUE'", line)
		}
		f.Headers[name] = append(f.Headers[name], strings.TrimSpace(value))
	}
	if f.data == "" {
		f.Method = cmp.Or(f.Method, http.MethodGet)
		return nil
	}
	f.Method = cmp.Or(f.Method, http.MethodPost)
	if !hasField(f.Headers, "Content-Type") {
		f.Headers["Content-Type"] = []string{formType}
	}
	body, err := readData(stdin, f.data)
	f.Body = wire.Body{Content: body}
	return err
}

func hasField(h wire.Header, name string) bool {
	for given := range h {
		if textproto.CanonicalMIMEHeaderKey(given) == name {
			return true
		}
	}
	return false
}

// readData reads a body as curl's -d does, which takes line ends and NUL out of a file.
func readData(stdin io.Reader, data string) ([]byte, error) {
	name, ok := strings.CutPrefix(data, "@")
	if !ok {
		return []byte(data), nil
	}
	content, err := readNamed(stdin, name)
	return slices.DeleteFunc(content, func(c byte) bool { return c == '\r' || c == '\n' || c == 0 }), err
}

func readNamed(stdin io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

// readRequest reads the form that editors call .http. That is a request line with the whole URL, fields, an empty
// line, and the body.
func readRequest(content []byte, e *wire.Explain) error {
	r := bufio.NewReader(bytes.NewReader(content))
	lines := textproto.NewReader(r)
	line, err := lines.ReadLine()
	for err == nil && (strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//")) {
		line, err = lines.ReadLine()
	}
	words := strings.Fields(line)
	if len(words) < 2 {
		return fmt.Errorf("request line %q; write METHOD URL in the first line", line)
	}
	header, err := lines.ReadMIMEHeader()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("fields: %w", err)
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	body, err := bodyOf(header, rest)
	e.Method, e.URL, e.Headers, e.Body = words[0], words[1], wire.Header(header), wire.Body{Content: body}
	return err
}

// bodyOf is the body in what follows a file's fields: as much as they say. Where they don't, the line break that
// editors put at a file's end is no part of it.
func bodyOf(header textproto.MIMEHeader, rest []byte) ([]byte, error) {
	lengths := header["Content-Length"]
	if len(lengths) == 0 {
		if line, ended := bytes.CutSuffix(rest, []byte("\n")); ended {
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		return rest, nil
	}
	n, err := strconv.ParseUint(lengths[0], 10, 31)
	if err != nil || len(lengths) > 1 {
		return nil, fmt.Errorf("Content-Length %s is no length; write one number of bytes, or leave it out", strings.Join(lengths, ", "))
	}
	if uint64(len(rest)) < n || len(bytes.TrimSpace(rest[n:])) > 0 {
		return nil, fmt.Errorf("Content-Length is %d, but %d bytes follow the fields; mend it, or leave it out", n, len(rest))
	}
	return rest[:n], nil
}

// explain asks the running proxy, else the rules alone.
func (f *explainFlags) explain(cmd *cobra.Command) (out app.Explained, err error) {
	c, err := f.load(cmd)
	if err != nil {
		return out, err
	}
	running, err := f.running(c)
	if err != nil {
		return out, err
	}
	if running != nil {
		text, err := running.Explain(cmd.Context(), f.Explain)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		return out, errors.Join(err, running.Close())
	}
	set, err := loadedRules(c)
	if err != nil {
		return out, err
	}
	raw, err := app.RawRequest(f.Explain)
	if err != nil {
		return out, usage("explain: %w; write it whole, such as https://api.example/v1/things", err)
	}
	return app.ExplainRequest(set, raw, app.ScopeOf(f.Explain, clock.System().Now())), nil
}

func showExplained(p *page, x app.Explained) {
	operation := x.Connector
	if x.Operation != "" {
		operation += "." + x.Operation
	}
	var identity []string
	for _, name := range slices.Sorted(maps.Keys(x.Ident)) {
		identity = append(identity, name+"="+x.Ident[name])
	}
	refused := x.Refused
	if x.Detail != "" {
		refused += ": " + x.Detail
	}
	upgrade := strings.Join(x.Upgrade, ", ")
	if upgrade != "" {
		upgrade += "; nobody judges what is said there"
	}
	account, key := x.Account, x.Key
	if x.AccountAsked != "" {
		asked := "the API would be asked by " + x.AccountAsked
		if account = asked; x.Account != "" {
			account = x.Account + " (given; " + asked + ")"
		}
		if key == "" && x.Refused == "" {
			key = "depends on the account, and nothing is asked here; give it with --account"
		}
	}
	p.facts(
		"effect", x.Effect,
		"operation", operation,
		"refused", refused,
		"upgrade", upgrade,
		"what", x.Target,
		"account", account,
		"identity", strings.Join(identity, ", "),
		"subkey", x.Subkey,
		"payload", x.PayloadDigest,
		"significant", x.SignificantDigest,
		"key", key,
		"mutation", x.ID,
		"marker", x.Marker,
		"vendor key", x.VendorKey,
		"kept", strings.Join(x.Kept, ", "),
		"masked", strings.Join(x.Masked, ", "),
		"asked", strings.Join(x.Asked, ", or "),
		"now", x.Now,
	)
	section(p, "Operations looked at", "OPERATION\tFITS\tWHY", x.Others, func(o rules.Candidate) []string {
		matched := "no"
		if o.Matched {
			matched = "yes"
		}
		return []string{o.Operation, matched, clip(o.Reason, 100)}
	})
}
