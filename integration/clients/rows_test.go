package clients

import (
	"strings"
	"testing"

	"keep-proxy/internal/fakes/script"
)

// result is a row of the table.
type result struct {
	client

	version string
	notRun  string
	// done are the cases that went as they must, in the order of cases.
	done []string
	bad  bool
}

// check notes how a case went.
func (r *result) check(t *testing.T, what string, ok bool, d ...done) {
	t.Helper()
	if ok {
		r.done = append(r.done, what)
		return
	}
	r.bad = true
	t.Errorf("%s:", what)
	for _, one := range d {
		t.Logf("exit %d:\n%s", one.code, one.text)
	}
}

// way is how a client is put into a run of an item: by keep-proxy run, each time anew, or
// by the variables that keep-proxy env gave once.
type way struct {
	name string
	open func(w *world, t *testing.T, c client, workflow, item string) sending
}

// sending does an errand. A forged one has another token.
type sending func(e errand, forged bool) done

var ways = []way{{"run", (*world).underRun}, {"env", (*world).underEnv}}

// try plays the cases with one client.
func (w *world) try(t *testing.T, r *result) {
	t.Helper()
	c := r.client
	if missing := c.missing(); missing != "" {
		r.notRun = missing
		t.Skipf("not run: %s is not on this machine", missing)
	}
	if c.trade == nil {
		c.trade = calling{}
	}
	r.version = version(c)
	if c.around != nil && c.around() {
		e := c.trade.change(t, w, "around")
		d := w.underRun(t, c, c.name, "around")(e, false)
		r.check(t, "around", !c.trade.content(d, "change") || w.sends(t, e) > 0, d)
		return
	}
	for _, by := range ways {
		w.tryBy(t, r, c, by)
	}
	for _, one := range c.more {
		r.check(t, one.name, one.play(t, w, c))
	}
}

// tryBy plays the five cases: a read, a mutation whose answer is lost and its replay
// when the script is run again, a wrong token, and a stop.
func (w *world) tryBy(t *testing.T, r *result, c client, by way) {
	t.Helper()
	word := strings.ToLower(strings.NewReplacer(" ", "-", "'", "", "/", "-").Replace(c.name + "-" + by.name))
	workflow := c.name + " by " + by.name
	open := func(item string) sending { t.Helper(); return by.open(w, t, c, workflow, item) }
	check := func(what string, ok bool, d ...done) { t.Helper(); r.check(t, by.name+": "+what, ok, d...) }

	d := open("read")(c.trade.read(t, w), false)
	check("read", c.trade.content(d, "read"), d)

	e := c.trade.change(t, w, word)
	lose(t, e, "commit-close")
	d = open("change")(e, false)
	check("mutation", c.trade.content(d, "change") && w.effects(t, e) == 1 && w.sends(t, e) == 1, d)

	e = c.trade.change(t, w, word)
	d = open("change")(e, false)
	check("replay", c.trade.content(d, "replay") && w.effects(t, e) == 1 && w.sends(t, e) == 1, d)

	// A wrong token gets nowhere.
	e = c.trade.change(t, w, word+"-token")
	d = open("token")(e, true)
	check("wrong token", !c.trade.content(d, "change") && w.sends(t, e) == 0, d)

	// What can't be known stops the run; whoever goes on gets nothing through.
	e = c.trade.halt(t, w, word+"-stop")
	after := c.trade.halt(t, w, word+"-after")
	lose(t, e, "close")
	send := open("stop")
	d = send(e, false)
	again := send(after, false)
	check("stop", stopped(c, by, d, again) && w.sends(t, e) == 1 && w.sends(t, after) == 0, d, again)
}

// How keep-proxy run ends when it was stopped by an unknown outcome, and when no run
// could be opened.
const (
	codeUnknown = 75
	codeNoRun   = 78
)

// stopped reports whether both errands were refused. Under run the command may be ended
// before it says so, and isn't started again.
func stopped(c client, by way, d, again done) bool {
	if by.name == "run" {
		return d.code == codeUnknown && again.code == codeNoRun
	}
	return c.trade.refused(d) && c.trade.refused(again)
}

// lose makes the upstream do as the fault's name says, with this errand alone.
func lose(t *testing.T, e errand, name string) {
	t.Helper()
	fault, err := script.Named(name)
	must(t, err)
	fault.Match.Identity = e.counts
	must(t, e.on.Arm(fault))
}

// effects and sends are the upstream's own counts for an errand.
func (w *world) effects(t *testing.T, e errand) int {
	t.Helper()
	tally, err := e.on.Tally()
	must(t, err)
	return tally.Effects(e.counts)
}

func (w *world) sends(t *testing.T, e errand) int {
	t.Helper()
	tally, err := e.on.Tally()
	must(t, err)
	return tally.Sends(e.counts)
}
