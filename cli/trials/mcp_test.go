package trials

import (
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/connectors"
)

// ticket is a call of the tool that the guide's file is about.
const ticket = `
cases:
  - name: a ticket is known by its order and title
    request:
      method: POST
      url: https://mcp.keep-proxy.test/mcp
      headers: {mcp-session-id: s1}
      body: {jsonrpc: "2.0", id: 3, method: tools/call, params: {name: ticket_create, arguments: {order: A-17, title: It broke}}}
    expect: {operation: ticket.create}
`

// The guide's file extends the one for MCP servers by a probe, which opens a session and reads streams of events.
func TestTheGuidesProbeOfAnMCPServer(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/connectors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ := strings.Cut(string(guide), "```yaml mcp\n")
	file, _, found := strings.Cut(file, "```")
	fake, err := connectors.Fake("mcp")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	only := []string{"applied", "lost answer found", "late commit inside settle"}
	report, err := Run(t.Context(), Options{Connector: []byte(file + ticket), Fake: fake, Version: "test", Log: zerolog.Nop(), only: only})
	if err != nil || len(report.Rows) == 0 || report.Rows[0].Operation != "ticket.create" {
		t.Fatal(report, err)
	}
	for _, cell := range report.Rows[0].Cells {
		if cell.Outcome != OK {
			t.Errorf("%s: %s", cell.Trial, cell.Said)
		}
	}
}
