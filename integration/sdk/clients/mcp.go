package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpClient opens a ticket.
func mcpClient(ctx context.Context, word string) (string, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "https://mcp.keep-proxy.test/mcp"}, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = session.Close() }()
	made, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "ticket_create", Arguments: map[string]any{"order": word, "title": "It broke"}})
	if err != nil {
		return "", err
	}
	return fmt.Sprint(made.StructuredContent), nil
}

type ticket struct {
	ID      string `json:"id,omitempty"`
	Order   string `json:"order"`
	Title   string `json:"title,omitempty"`
	Created string `json:"created,omitempty"`
}

type tickets struct {
	Tickets []ticket `json:"tickets"`
}

// mcpServer serves tickets, and writes one line for each that it opens to a file.
func mcpServer(_ context.Context, log string) (string, error) {
	var mu sync.Mutex
	var all []ticket
	s := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "ticket_create"}, func(_ context.Context, _ *mcp.CallToolRequest, t ticket) (*mcp.CallToolResult, ticket, error) {
		mu.Lock()
		defer mu.Unlock()
		t.ID, t.Created = fmt.Sprintf("t%d", len(all)+1), time.Now().UTC().Format(time.RFC3339Nano)
		all = append(all, t)
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, t, err
		}
		_, err = fmt.Fprintln(f, "opened", t.ID, t.Order)
		_ = f.Close()
		return nil, t, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ticket_list"}, func(_ context.Context, _ *mcp.CallToolRequest, of ticket) (*mcp.CallToolResult, tickets, error) {
		mu.Lock()
		defer mu.Unlock()
		found := tickets{Tickets: []ticket{}}
		for _, t := range all {
			if t.Order == of.Order {
				found.Tickets = append(found.Tickets, t)
			}
		}
		return nil, found, nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	fmt.Println(l.Addr())
	server := func(*http.Request) *mcp.Server { return s }
	sessions, none := mcp.NewStreamableHTTPHandler(server, nil), mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{Stateless: true})
	return "", http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			none.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	}))
}
