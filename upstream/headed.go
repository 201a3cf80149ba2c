package upstream

import (
	"net"
	"net/http"
	"sync"
)

// headed is a connection of net/http's transport that speaks HTTP/1, with an eye on the heads of
// answers: of those that say close the transport takes the Connection field out with what else
// it says.
type headed struct {
	net.Conn
	mu   sync.Mutex
	head headWatch
}

// Read implements io.Reader.
func (c *headed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.see(p[:n])
	return n, err
}

// begin lets the next head be that of an answer.
func (c *headed) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.reset()
}

// restore puts back what the head of resp said. It reports whether the head can be believed.
func (c *headed) restore(resp *http.Response) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if said := c.head.connection; resp.Close && len(said) > 0 && len(resp.Header["Connection"]) == 0 {
		resp.Header["Connection"] = said
	}
	return !c.head.faulty()
}
