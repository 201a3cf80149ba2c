package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// step does one thing of the story.
func (x *exchange) step(step script.Step) error {
	switch step.Do {
	case script.Commit, script.Fail:
		return x.commit(step)
	case script.Wait:
		return x.wait(x.s.life, step)
	case script.Gone:
		return x.awaitGone()
	case script.Answer:
		return x.send(x.hand, step.Chunked)
	case script.Status:
		return x.send(stepAnswer(step), false)
	case script.Cut:
		return x.cut(step)
	case script.Slow:
		return x.slow(step)
	case script.Huge:
		return x.huge(step)
	case script.Close, script.Reset, script.Abort:
		return x.hangUp(step.Do)
	case script.Early:
		// Validate lets it pass only as the first step, which beforeBody takes.
	}
	return fmt.Errorf("server: step %q has no place here", step.Do)
}

// stepAnswer is the answer that a step spells out. Its default body is a JSON
// error.
func stepAnswer(step script.Step) *Answer {
	a := &Answer{Status: step.Status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(step.Body)}
	if step.Body == "" && step.Status != http.StatusNoContent && step.Status != http.StatusNotModified {
		a.Body = fmt.Appendf(nil, `{"error":{"code":"status_%d","message":%q}}`, step.Status, http.StatusText(step.Status))
	}
	for name, value := range step.Header {
		a.Header.Set(name, value)
	}
	return a
}

// send answers, and notes it once everything was handed to the connection. An answer that could not be written isn't
// noted and is no error: the client may leave.
func (x *exchange) send(a *Answer, chunked bool) error {
	x.over = true
	if a.Stream != nil {
		return x.stream(a)
	}
	length := int64(len(a.Body))
	if chunked {
		length = -1
	}
	x.head(a, length)
	if !x.write(a.Body) {
		return nil
	}
	return x.answered(a.Status)
}

func (x *exchange) answered(status int) error {
	return x.note(oracle.Event{Kind: oracle.KindAnswered, Status: status})
}

func (x *exchange) stream(a *Answer) error {
	x.head(a, -1)
	if !x.write(nil) {
		return nil
	}
	err := a.Stream(x.r.Context(), func(data []byte) error {
		if !x.write(data) {
			return net.ErrClosed
		}
		return x.r.Context().Err()
	})
	if err != nil {
		return nil //nolint:nilerr // a reader that leaves a stream is no failure of the service
	}
	return x.answered(a.Status)
}

// head writes status and fields; length -1 leaves Content-Length out.
func (x *exchange) head(a *Answer, length int64) {
	h := x.w.Header()
	for name, values := range a.Header {
		h[name] = append([]string(nil), values...)
	}
	h.Set("Date", x.s.cfg.Now().UTC().Format(http.TimeFormat))
	bodiless := a.Status == http.StatusNoContent || a.Status == http.StatusNotModified
	if length >= 0 && !bodiless {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	x.w.WriteHeader(a.Status)
}

// write sends the bytes at once and reports whether that worked.
func (x *exchange) write(data []byte) bool {
	if len(data) > 0 && x.r.Method != http.MethodHead {
		if _, err := x.w.Write(data); err != nil {
			return false
		}
	}
	return http.NewResponseController(x.w).Flush() == nil
}

// cut sends the whole head and, by default, half of the body.
func (x *exchange) cut(step script.Step) error {
	part := int64(len(x.hand.Body) / 2)
	if step.Bytes > 0 {
		part = min(step.Bytes, int64(len(x.hand.Body)))
	}
	length := int64(len(x.hand.Body))
	if step.Chunked {
		length = -1
	}
	x.over = true
	x.head(x.hand, length)
	x.write(x.hand.Body[:part])
	return x.hangUp(script.Abort)
}

// slow sends a few bytes (default 1), waits, and so on.
func (x *exchange) slow(step script.Step) error {
	pace := int(max(step.Bytes, 1))
	x.over = true
	x.head(x.hand, int64(len(x.hand.Body)))
	for rest := x.hand.Body; len(rest) > 0; {
		n := min(pace, len(rest))
		if !x.write(rest[:n]) {
			return nil
		}
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
		if err := x.wait(x.s.life, step); err != nil {
			return err
		}
	}
	return x.answered(x.hand.Status)
}

// huge sends Bytes spaces under the head in hand, or under a 200.
func (x *exchange) huge(step script.Step) error {
	a := x.hand
	if a == nil {
		a = JSON(http.StatusOK, nil)
	}
	x.over = true
	x.head(a, step.Bytes)
	block := make([]byte, 64<<10)
	for i := range block {
		block[i] = ' '
	}
	for left := step.Bytes; left > 0; {
		n := min(left, int64(len(block)))
		if !x.write(block[:n]) {
			return nil
		}
		left -= n
	}
	return x.answered(a.Status)
}

// awaitGone returns when the client has left, or the server is closed.
func (x *exchange) awaitGone() error {
	x.over, x.lost = true, true
	if x.s.rest.end(x) {
		defer x.s.rest.begin(x)
	}
	<-x.r.Context().Done()
	return x.s.life.Err()
}

// hangUp ends the connection, for h2 with every other stream on it; Abort ends
// an h2 stream alone, which the handler's end does.
func (x *exchange) hangUp(how script.Action) error {
	x.over, x.lost = true, true
	if how == script.Abort && x.r.ProtoMajor >= 2 {
		return nil
	}
	conn, ok := x.r.Context().Value(connKey{}).(net.Conn)
	if !ok {
		return fmt.Errorf("server: request %s has no connection", x.id)
	}
	if how == script.Close {
		_ = conn.Close() // TLS says goodbye first; the peer may have gone already
		return nil
	}
	raw := conn
	if t, ok := conn.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	if tcp, ok := raw.(*net.TCPConn); ok && how == script.Reset {
		if err := tcp.SetLinger(0); err != nil && context.Cause(x.s.life) == nil {
			_ = raw.Close() // already closed by the peer
			return nil
		}
	}
	_ = raw.Close()
	return nil
}
