package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
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
}

func (f *isolateFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.isolate, "isolate", "",
		"give the command a network of its own, in which nothing but the proxy is reached; on Linux.\n"+
			"proxy refuses clients that know no proxy, transparent takes them too")
	cmd.Flags().Lookup("isolate").NoOptDefVal = isolateProxy
	choices(cmd, "isolate", isolateWords...)
}

func (f *isolateFlags) check() error {
	if f.isolate != "" && !slices.Contains(isolateWords, f.isolate) {
		return usage("run: --isolate=%s is unknown; give proxy or transparent", f.isolate)
	}
	return nil
}

// possible reports why the run can't be as it must, before it is opened.
func (f *isolateFlags) possible(config.Config) error {
	if f.isolate == "" {
		return nil
	}
	return netns.Check()
}

// isolation is a command's own network; nil for none.
type isolation struct {
	inside netns.Spec
	front  *isolate.Front
	// proxy is the address of a running proxy, for which own is nil.
	proxy, token string
	own          interface {
		ServeRun(l net.Listener, token string) error
	}
	end  context.CancelFunc
	done chan struct{}
}

// isolation prepares a run's network, and changes the variables to what is there.
func (f *isolateFlags) isolation(h *host, opened *wire.OpenedRun) (*isolation, error) {
	if f.isolate == "" {
		return nil, nil //nolint:nilnil // no network of its own
	}
	at, err := url.Parse(opened.ProxyURL)
	if err != nil {
		return nil, fmt.Errorf("the proxy's address: %w", err)
	}
	i := &isolation{front: isolate.NewFront(), proxy: at.Host, token: opened.Token, done: make(chan struct{})}
	i.front.User = at.User
	if h.own != nil {
		i.own = h.own
	}
	i.inside.Proxy = freePort(at.Port(), i.inside.Ports)
	moveProxy(opened.Env, at, net.JoinHostPort("127.0.0.1", strconv.Itoa(int(i.inside.Proxy))))
	return i, nil
}

// dns is the port of the domain name system.
const dns = 53

// freePort is the proxy's port in the network: the same as outside, unless another listener has that there.
func freePort(outside string, taken []uint16) uint16 {
	n, err := strconv.ParseUint(outside, 10, 16)
	if err != nil || n == 0 {
		n = 8080
	}
	port := uint16(n)
	for slices.Contains(taken, port) || port == dns {
		port++
	}
	return port
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

// spec is what the network offers.
func (i *isolation) spec() *netns.Spec {
	if i == nil {
		return nil
	}
	return &i.inside
}

// serve serves the network until close.
func (i *isolation) serve(n *netns.Network) {
	if i == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	i.end = cancel
	go func() {
		defer close(i.done)
		i.front.Serve(ctx, n)
	}()
	if i.own == nil {
		go isolate.Forward(ctx, i.front, i.proxy)
		return
	}
	go func() {
		if err := i.own.ServeRun(i.front, i.token); err != nil && !errors.Is(err, net.ErrClosed) {
			cancel()
		}
	}()
}

// close ends the network.
func (i *isolation) close() {
	if i != nil && i.end != nil {
		i.end()
		<-i.done
	}
}

// tell says what was refused.
func (i *isolation) tell(func(string, ...any)) {}
