package upstream

import (
	"net"
	"testing"
)

// slowToReturn has sent what it was given before its Write returns.
type slowToReturn struct {
	net.Conn
	sent, goOn chan struct{}
}

func (s *slowToReturn) Write(p []byte) (int, error) {
	close(s.sent)
	<-s.goOn
	return len(p), nil
}

// An upstream may answer before the write that it answers has returned.
func TestWhatIsBeingWrittenCountsAsWritten(t *testing.T) {
	t.Parallel()
	slow := &slowToReturn{sent: make(chan struct{}), goOn: make(chan struct{})}
	c := &plainConn{Conn: slow}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = c.Write(make([]byte, 7))
	}()
	<-slow.sent
	if n := c.count(); n != 7 {
		t.Errorf("%d bytes while they are being written, want 7", n)
	}
	close(slow.goOn)
	c.settle()
	if n := c.count(); n != 7 {
		t.Errorf("%d bytes after that, want 7", n)
	}
	<-written
}
