package script

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Gates that the named faults wait at.
const (
	GateLate = "late" // commit-late, silence-then-late
	GateHang = "hang" // hang, hang-inside
)

// inBandError is a failure inside a 200.
const inBandError = `{"ok":false,"error":"internal_error"}`

func commit() Step { return Step{Do: Commit} }

func status(code int) Step { return Step{Do: Status, Status: code} }

// named holds the common stories. "commit-…" changed something; the others did
// not, unless they say so.
var named = map[string][]Step{
	"answer":               {commit(), {Do: Answer}},
	"commit-close":         {commit(), {Do: Close}},
	"commit-reset":         {commit(), {Do: Reset}},
	"commit-abort":         {commit(), {Do: Abort}},
	"commit-500":           {commit(), status(500)},
	"commit-502":           {commit(), status(502)},
	"commit-503":           {commit(), status(503)},
	"commit-own-500":       {{Do: Commit, Status: 500}, {Do: Answer}},
	"commit-cut":           {commit(), {Do: Cut}},
	"commit-cut-chunked":   {commit(), {Do: Cut, Chunked: true}},
	"commit-silence":       {commit(), {Do: Gone}},
	"commit-twice":         {commit(), commit(), {Do: Answer}},
	"commit-twice-close":   {commit(), commit(), {Do: Close}},
	"commit-error-in-200":  {commit(), {Do: Status, Status: 200, Body: inBandError}},
	"commit-chunked":       {commit(), {Do: Answer, Chunked: true}},
	"commit-slow":          {commit(), {Do: Slow, Bytes: 16, For: Duration(time.Millisecond)}},
	"commit-huge":          {commit(), {Do: Huge, Bytes: 12 << 20}},
	"commit-late":          {{Do: Close}, {Do: Wait, Hold: GateLate}, commit()},
	"silence-then-late":    {{Do: Gone}, {Do: Wait, Hold: GateLate}, commit()},
	"hang":                 {{Do: Wait, Hold: GateHang}, commit(), {Do: Answer}},
	"hang-inside":          {{Do: Commit, Hold: GateHang}, {Do: Answer}},
	"close":                {{Do: Close}},
	"reset":                {{Do: Reset}},
	"abort":                {{Do: Abort}},
	"silence":              {{Do: Gone}},
	"400":                  {status(400)},
	"409":                  {status(409)},
	"429":                  {{Do: Status, Status: 429, Header: map[string]string{"Retry-After": "1"}}},
	"500":                  {status(500)},
	"502":                  {status(502)},
	"503":                  {status(503)},
	"own-500":              {{Do: Fail, Status: 500}, {Do: Answer}},
	"error-in-200":         {{Do: Status, Status: 200, Body: inBandError}},
	"early-413":            {{Do: Early, Status: 413}},
	"early-200-and-commit": {{Do: Early, Status: 200, Body: `{"ok":true}`}, commit()},
}

// Names returns the names that Named knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(named)) }

// Named returns the common story of this name for the next mutation, whatever it is. Set Match and Times to say more.
func Named(name string) (Fault, error) {
	steps, ok := named[name]
	if !ok {
		return Fault{}, fmt.Errorf("script: no fault is named %q; there are %v", name, Names())
	}
	return Fault{Name: name, Steps: slices.Clone(steps)}, nil
}
