package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// visitor is one client of a soak, with a run of its own.
type visitor struct {
	s    *soak
	name string
	// i tells it from those of the same habit, and n counts its rounds.
	i, n   int
	run    *scriptRun
	way    *way
	h1, h2 *http.Client
}

// visitor opens a run for a client.
func (s *soak) visitor(h habit, i int) *visitor {
	s.t.Helper()
	v := &visitor{s: s, name: fmt.Sprintf("%d %s %d", s.visits, h.name, i), i: i}
	run, err := s.visit(v.name)
	if err != nil {
		s.t.Fatalf("%s: %v", v.name, err)
	}
	v.run, v.h1 = run, run.client
	v.way = s.wayThrough(run.opened.ProxyURL, run.opened.CAPEM, 0)
	v.h2 = &http.Client{Transport: v.way.transport(true)}
	return v
}

// visit opens a run of an item, in the place of one that may go on.
func (s *soak) visit(item string) (*scriptRun, error) {
	opened, err := s.api.OpenRun(s.t.Context(), wire.OpenRun{
		Workflow: "soak", Item: item, OnFailure: "return", BlockScope: "item", Takeover: true,
	}, "")
	if err != nil {
		return nil, err
	}
	y := s.wayThrough(opened.ProxyURL, opened.CAPEM, 0)
	return &scriptRun{w: s.world, id: opened.ID, opened: opened, client: &http.Client{Transport: y.transport(false)}}, nil
}

// leave closes what a client keeps, and ends its run.
func (v *visitor) leave() {
	v.h1.CloseIdleConnections()
	v.h2.CloseIdleConnections()
	_ = v.run.finish("done")
}

// client is the visitor's own, of one of the two protocols by turns.
func (v *visitor) client() *http.Client {
	if v.n%2 == 0 {
		return v.h1
	}
	return v.h2
}

// upstream is one of the two that can be read, by turns which are not those of client.
func (v *visitor) upstream() *httptest.Server {
	if v.n/2%2 == 0 {
		return v.s.h1
	}
	return v.s.h2
}

// reads asks for a kilobyte, and wants it.
func (v *visitor) reads(c *http.Client, u *httptest.Server) error {
	return getKilobyte(c, u.URL+"/read")
}

// mutates sends one mutation until it is settled, each time in another run, and once
// more when it has succeeded: that must be a replay.
func (v *visitor) mutates() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	item := fmt.Sprintf("%s/%d", strings.ReplaceAll(v.name, " ", "-"), v.n)
	var first *reply
	for ctx.Err() == nil {
		run, err := v.s.visit(item)
		if err != nil {
			if _, refused := errors.AsType[*wire.Problem](err); !refused {
				return err
			}
			if err := v.s.settleItem(ctx, item); err != nil {
				return err
			}
			continue
		}
		a := v.mutate(ctx, run, strings.ReplaceAll(item, "/", "-"))
		run.client.CloseIdleConnections()
		switch {
		case a.err != nil:
			return a.err
		case a.status/100 == 2 && first == nil:
			first = &a
			continue
		case a.status/100 == 2 && (a.body != first.body || a.header.Get("Keep-Replayed") != "true"):
			return fmt.Errorf("got %v after %v", a, *first)
		case a.status/100 == 2, strings.Contains(a.body, "urn:keep:problem:skipped"):
			_, err := v.s.api.FinishRun(ctx, run.id, wire.FinishRun{Outcome: "done"})
			return err
		}
		if err := v.s.settleItem(ctx, item); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s isn't settled: %w", item, ctx.Err())
}

// rushes sends mutations one after the other, until one of them is lost or refused.
func (v *visitor) rushes() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	item := fmt.Sprintf("%s/%d", strings.ReplaceAll(v.name, " ", "-"), v.n)
	run, err := v.s.visit(item)
	if err != nil {
		return err
	}
	defer run.client.CloseIdleConnections()
	for i := range soakRush {
		a := v.mutate(ctx, run, fmt.Sprintf("%s-%d", strings.ReplaceAll(item, "/", "-"), i))
		if a.err != nil {
			return a.err
		}
		if a.status/100 != 2 {
			break
		}
	}
	if _, err := v.s.api.EndRun(ctx, run.id, wire.EndRun{Reason: "the rush is over", Actor: "ann"}); err != nil {
		return err
	}
	return v.s.settleItem(ctx, item)
}

// mutate sends a mutation of a kind that depends on the visitor.
func (v *visitor) mutate(ctx context.Context, run *scriptRun, name string) reply {
	switch v.i % 4 {
	case 0:
		return run.try(ctx, http.MethodPost, v.s.probed.URL()+"/transfers", order(name))
	case 1:
		return run.try(ctx, http.MethodPost, v.s.keyed.URL()+"/transfers", order(name))
	case 2:
		return run.try(ctx, http.MethodPost, v.s.mail.URL()+"/send", message(name))
	}
	return run.try(ctx, http.MethodPost, v.s.hooks.URL()+"/hook/bounded/"+name, "hello")
}

// settleItem waits until nothing of an item is unknown any more, and skips as a person
// what can't be asked.
func (s *soak) settleItem(ctx context.Context, item string) error {
	for {
		page, err := s.api.Mutations(ctx, client.Filter{Workflow: "soak", Item: item})
		if err != nil {
			return err
		}
		open := 0
		for _, m := range page.Items {
			switch m.State {
			case "in_flight", "needs_reconcile":
				open++
			case "indeterminate":
				open++
				_, err := s.api.Resolve(ctx, m.ID, wire.Resolve{Action: wire.ActionSkip, Actor: "ann", Reason: "a soak", Version: m.Version})
				if err != nil && !client.IsProblem(err, "version") && !client.IsProblem(err, "not-allowed") {
					return err
				}
			}
		}
		if open == 0 {
			return nil
		}
		if wait(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("%s stays unknown: %w", item, ctx.Err())
		}
	}
}
