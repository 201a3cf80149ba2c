package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
	"keep-proxy/cli/doctor"
	"keep-proxy/cli/isolate"
	"keep-proxy/cli/netns"
	"keep-proxy/config"
)

// What --isolate takes; left out it is empty.
const (
	isolateProxy       = "proxy"
	isolateTransparent = "transparent"
)

var isolateWords = []string{isolateProxy, isolateTransparent}

// isolateFlags say whether the command has a network of its own.
type isolateFlags struct {
	isolate string
	reach   []string
	// checked takes what look found.
	checked chan error
}

func (f *isolateFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.isolate, "isolate", "",
		"give the command a network of its own, from which only the proxy is reached; on Linux.\n"+
			"proxy (the default with --isolate alone) refuses clients that don't go by the variables,\ntransparent takes them too")
	cmd.Flags().Lookup("isolate").NoOptDefVal = isolateProxy
	cmd.Flags().StringSliceVar(&f.reach, "reach", nil,
		"HOST:PORT that the isolated command reaches past the proxy, such as a database's;\nadds to isolate.reach")
	choices(cmd, "isolate", isolateWords...)
}

func (f *isolateFlags) check() error {
	switch {
	case f.isolate != "" && !slices.Contains(isolateWords, f.isolate):
		return usage("run: --isolate=%s is unknown; give proxy or transparent", f.isolate)
	case f.isolate == "" && len(f.reach) > 0:
		return usage("run: --reach is for an isolated command; give --isolate too, or leave it out")
	}
	return nil
}

// look asks whether a namespace can be had here, while a proxy is made ready.
func (f *isolateFlags) look() {
	f.checked = make(chan error, 1)
	go func() {
		var err error
		if f.isolate != "" {
			err = netns.Check(f.isolate == isolateTransparent)
		}
		f.checked <- err
	}()
}

// possible says why the run can't be as it must, before it is opened.
func (f *isolateFlags) possible(c config.Config) error {
	if f.isolate == "" && c.Isolate.Required {
		return errors.New("run: isolate.required is true; give --isolate or --isolate=transparent")
	}
	return <-f.checked
}

// isolating tells which of the two ways work here. Without the first, no run that isolate.required asks for is opened.
func isolating(required bool) doctor.Finding {
	const name = "isolation"
	verdict, said, err := doctor.Advice, "run --isolate doesn't work here: ", netns.Check(false)
	if err != nil && required {
		verdict = doctor.Broken
	}
	if err == nil {
		said, err = "run --isolate works here, --isolate=transparent doesn't: ", netns.Check(true)
	}
	if err == nil {
		return doctor.Sound.Of(name, "run --isolate and --isolate=transparent work here", "")
	}
	detail, fix := err.Error(), "let the network of commands reach nothing but the proxy by other means"
	if e, ok := errors.AsType[*netns.Error](err); ok {
		detail, fix = e.What+": "+e.Err.Error(), cmp.Or(e.Fix(), fix)
	}
	return verdict.Of(name, said+detail, fix)
}

// targets are what the run reaches past the proxy.
func (f *isolateFlags) targets(c config.Config) []string {
	if f.isolate == "" {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.Isolate.Reach, f.reach))))
}

// isolation is a command's own network; nil for none.
type isolation struct {
	inside netns.Spec
	front  *isolate.Front
	// java says that every Java shall find the roots.
	java bool
	// carry brings what the front gives to the proxy.
	carry func(context.Context) error
	end   context.CancelFunc
	open  sync.WaitGroup
}

// isolation prepares a run's network, and changes the variables to what is there.
func (f *isolateFlags) isolation(cmd *cobra.Command, h *host, opened *wire.OpenedRun) (*isolation, error) {
	if f.isolate == "" {
		return nil, nil //nolint:nilnil // no network of its own
	}
	at, err := url.Parse(opened.ProxyURL)
	if err != nil || at.Port() == "" {
		return nil, cmp.Or(err, errors.New("run: the proxy listens on unix sockets alone; give it a host:port in proxy.listen, or --listener"))
	}
	resolve := func(ctx context.Context, name string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	}
	reach := isolate.NewReach(f.targets(h.config), (&net.Dialer{}).DialContext, resolve)
	i := &isolation{front: isolate.NewFront(), java: f.isolate == isolateTransparent}
	if i.java {
		i.front.Transparent = append([]uint16{80, 443}, opened.ConnectorPorts...)
	}
	ports := slices.Compact(slices.Sorted(slices.Values(slices.Concat(reach.Ports(), i.front.Transparent))))
	i.front.User, i.front.Reach, i.front.Log = at.User, reach, quietLog(h.config.Log, cmd.ErrOrStderr())
	i.front.Names = isolate.NewNames(func(ctx context.Context, name string) (bool, error) {
		switch past := reach.Names(name); {
		case !past && f.isolate == isolateProxy:
			return false, nil
		case !past && h.config.Proxy.UpstreamProxy.URL != "":
			return true, nil // That proxy knows names that aren't known here.
		}
		return exists(resolve(ctx, name+".")) // No search domain is added outside.
	})
	i.carry = func(ctx context.Context) error { isolate.Forward(ctx, i.front, at.Host); return nil }
	if h.own != nil {
		//nolint:contextcheck // A request ends with its connection.
		i.carry = func(context.Context) error { return h.own.ServeRun(i.front, opened.Token) }
	}
	inside := freePort(at.Port(), ports)
	i.inside = isolate.Spec(inside, ports)
	moveProxy(opened.Env, at, net.JoinHostPort("127.0.0.1", strconv.Itoa(int(inside))))
	return i, nil
}

// exists reports whether a name was found.
func exists(found []netip.Addr, err error) (bool, error) {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return false, nil
	}
	return len(found) > 0, err
}

// freePort is the proxy's port in the network: the same as outside, unless another listener has that there.
func freePort(outside string, taken []uint16) uint16 {
	n, _ := strconv.ParseUint(outside, 10, 16)
	for slices.Contains(taken, uint16(n)) || n == 53 {
		n++
	}
	return uint16(n)
}

// moveProxy puts the proxy's address in the network into the variables.
func moveProxy(env map[string]string, from *url.URL, to string) {
	for name, value := range env {
		if u, err := url.Parse(value); err == nil && u.Host == from.Host && u.Scheme == from.Scheme {
			env[name] = strings.Replace(value, from.Host, to, 1)
		}
	}
	if env["CLOUDSDK_PROXY_ADDRESS"] != "" {
		env["CLOUDSDK_PROXY_ADDRESS"], env["CLOUDSDK_PROXY_PORT"], _ = net.SplitHostPort(to)
	}
}

// begin serves the network until close.
func (i *isolation) begin(n *netns.Network) {
	if i == nil {
		return
	}
	var ctx context.Context
	ctx, i.end = context.WithCancel(context.Background())
	i.open.Go(func() { i.front.Serve(ctx, n) })
	i.open.Go(func() {
		if err := i.carry(ctx); err != nil {
			i.front.Log.Error().Err(err).Msg("the command's network leads to the proxy no more")
		}
	})
}

// close ends the network.
func (i *isolation) close() {
	if i != nil && i.end != nil {
		i.end()
		i.open.Wait()
	}
}

// mostTargets bounds the targets that a sentence names.
const mostTargets = 8

// tell says what was refused.
func (i *isolation) tell(say func(string, ...any)) {
	if i == nil {
		return
	}
	var told []string
	total, list := 0, i.front.Refused.List()
	for n, r := range list {
		if total += r.Count; n < mostTargets {
			told = append(told, fmt.Sprintf("%s (%s, %s)", r.Target, r.Network, counted(r.Count, "time")))
		}
	}
	if more := len(list) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("%d more", more))
	}
	if total > 0 {
		say("the command's own network refused what didn't go to the proxy, %s: %s", counted(total, "time"), strings.Join(told, ", "))
	}
}
