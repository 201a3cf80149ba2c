package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// newCA makes the command that prints the proxy's own CA.
func newCA() *cobra.Command {
	var s settings
	var path, asJSON bool
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Print the certificate of the proxy's own CA, PEM",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load(cmd)
			if err != nil {
				return err
			}
			name := c.Proxy.CA.CertFile
			pem, err := os.ReadFile(name)
			if err != nil {
				return fmt.Errorf("ca: %w; it is written when the proxy starts first", err)
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), struct {
					File string `json:"file"`
					PEM  string `json:"pem"`
				}{name, string(pem)})
			}
			if path {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), name)
				return err
			}
			_, err = cmd.OutOrStdout().Write(pem)
			return err
		},
	}
	s.bind(cmd)
	cmd.Flags().BoolVar(&path, "path", false, "print the file's path instead")
	cmd.Flags().BoolVar(&asJSON, "json", false, "both as JSON")
	return cmd
}
