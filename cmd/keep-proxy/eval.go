package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
	"keep-proxy/app"
	"keep-proxy/rules"
)

// newEval makes the command that computes an expression.
func newEval() *cobra.Command {
	f, answer := &explainFlags{}, ""
	cmd := &cobra.Command{
		Use:   "eval EXPRESSION [-X METHOD] [-H 'NAME: VALUE'] [-d BODY] URL",
		Short: "Compute an expression of a rule from a request",
		Long: "Prints the value as JSON, or what is wrong with the expression. Nothing is sent.\n" +
			"The request is given as to explain. Variables of path and host are those of the operation that it fits.\n" +
			"With --response the expression may read response. The file is as curl -i prints an answer.\n" +
			"mutation is then the record that cases run with.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.read(cmd.InOrStdin(), args[1:]); err != nil {
				return err
			}
			c, err := f.load(cmd)
			if err != nil {
				return err
			}
			set, err := loadedRules(c)
			if err != nil {
				return err
			}
			raw, err := app.RawRequest(f.Explain)
			if err != nil {
				return usage("eval: %w; write it whole, such as https://api.example/v1/things", err)
			}
			request, refusal := rules.Normalise(raw)
			if refusal != nil {
				return refusal
			}
			var response *rules.Response
			if answer != "" {
				if response, err = readResponse(cmd, answer); err != nil {
					return fmt.Errorf("%s: %w", answer, err)
				}
			}
			value, err := set.Evaluate(args[0], request.WithBody(raw.Body), response)
			if err != nil {
				return err
			}
			return showPage(cmd.OutOrStdout(), "", func(p *page) { p.sayf("%s", value) })
		},
	}
	f.bind(cmd)
	f.bindRequest(cmd)
	cmd.Flags().StringVar(&answer, "response", "", "file with the answer, as curl -i prints it; - for standard input")
	return cmd
}

// beforeAnswer is a head that another follows. curl -i prints that of a proxy's tunnel, and interim answers.
var beforeAnswer = regexp.MustCompile(`^HTTP/.*\n(?:[^\r\n].*\n)*\r?\nHTTP/`)

// readResponse reads a status line, fields, an empty line and the body.
func readResponse(cmd *cobra.Command, file string) (*rules.Response, error) {
	content, err := readNamed(cmd.InOrStdin(), file)
	if err != nil {
		return nil, err
	}
	for m := beforeAnswer.FindIndex(content); m != nil; m = beforeAnswer.FindIndex(content) {
		content = content[m[1]-len("HTTP/"):]
	}
	var read wire.Explain // A status line has its number where a request line has its URL.
	if err := readRequest(content, &read); err != nil {
		return nil, err
	}
	status, err := strconv.Atoi(read.URL)
	if err != nil {
		return nil, fmt.Errorf("status line %q; write HTTP/1.1 200 in the first line", read.Method+" "+read.URL)
	}
	return &rules.Response{Status: status, Header: http.Header(read.Headers), Body: read.Body.Content, Complete: true}, nil
}
