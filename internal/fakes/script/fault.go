package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Always as Fault.Times lets a fault handle every matching request until it is
// cleared.
const Always = -1

// Fault is a story for the next matching requests.
type Fault struct {
	// Name appears in the log beside the requests that were handled so.
	Name string `json:"name,omitempty"`
	// Match says which requests are meant. The zero Match means every request
	// that is not a read.
	Match Match `json:"match"`
	// Times is how many requests the fault handles: 0 and 1 mean one, Always
	// means until it is cleared.
	Times int `json:"times,omitempty"`
	// Steps is the story.
	Steps []Step `json:"steps"`
}

// Match selects requests. All fields that are set must agree.
type Match struct {
	// Method is the request's method; "" means any but GET, HEAD and OPTIONS,
	// "*" means any.
	Method string `json:"method,omitempty"`
	// Path is the path, or its beginning if it ends in "*".
	Path string `json:"path,omitempty"`
	// Identity is the identity as the log names it. A fault that begins with
	// early can't name one, since the body is not read yet.
	Identity string `json:"identity,omitempty"`
	// When is asked last. It can only be set in process.
	When func(Subject) bool `json:"-"`
}

// Subject is what a Match looks at.
type Subject struct {
	Method, Path, Identity string
	// Header returns a request field, "" when it is missing.
	Header func(name string) string
	// Body is nil while it was not read.
	Body []byte
}

// Step is one thing that happens.
type Step struct {
	Do      Action            `json:"do"`
	Status  int               `json:"status,omitempty"`
	Header  map[string]string `json:"header,omitempty"`
	Body    string            `json:"body,omitempty"`
	For     Duration          `json:"for,omitempty"`
	Hold    string            `json:"hold,omitempty"`
	Bytes   int64             `json:"bytes,omitempty"`
	Chunked bool              `json:"chunked,omitempty"`
}

// Action is the verb of a step. The zero Action is refused.
type Action string

// The actions; the package comment tells what each does.
const (
	Early  Action = "early"
	Commit Action = "commit"
	Fail   Action = "fail"
	Wait   Action = "wait"
	Gone   Action = "gone"
	Answer Action = "answer"
	Status Action = "status"
	Cut    Action = "cut"
	Slow   Action = "slow"
	Huge   Action = "huge"
	Close  Action = "close"
	Reset  Action = "reset"
	Abort  Action = "abort"
)

// Duration is a time.Duration whose JSON is a string such as "1.5s".
type Duration time.Duration

// MarshalText writes the duration as Go prints it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads; a negative duration is an
// error.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	if v < 0 {
		return fmt.Errorf("negative duration %q", text)
	}
	*d = Duration(v)
	return nil
}

// Decode reads a fault from JSON and validates it. Unknown names are errors. In
// place of steps, "named" takes those of a named fault.
func Decode(data []byte) (Fault, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var in struct {
		Fault
		Named string `json:"named"`
	}
	if err := dec.Decode(&in); err != nil {
		return Fault{}, fmt.Errorf("script: decode fault: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Fault{}, errors.New("script: decode fault: more than one value")
	}
	if in.Named == "" {
		return in.Fault, in.Validate()
	}
	if len(in.Steps) > 0 {
		return Fault{}, errors.New("script: decode fault: named and steps exclude each other")
	}
	f, err := Named(in.Named)
	if err != nil {
		return Fault{}, err
	}
	f.Match, f.Times = in.Match, in.Times
	if in.Name != "" {
		f.Name = in.Name
	}
	return f, f.Validate()
}

// Std returns the duration as the standard library's.
func (d Duration) Std() time.Duration { return time.Duration(d) }
