package integration

import (
	"bufio"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// websocketRules let a connection change to WebSocket on one path alone.
const websocketRules = `apiVersion: keep/v1
connector: live
version: 1
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: events
    match: {method: GET, path: /events}
    effect: read
    upgrade: [websocket]
`

// websocket is a WebSocket server (RFC 6455) that says what it is told, and keeps it. It
// takes what its own client library would: unfragmented messages of up to 64 KiB.
type websocket struct {
	address string

	mu    sync.Mutex
	paths []string
	texts []string
}

func (w *world) websocket() *websocket {
	w.t.Helper()
	leaf, err := w.ca.Leaf("127.0.0.1")
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12})
	if err != nil {
		w.t.Fatal(err)
	}
	s := &websocket{address: l.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(c) })
		}
	})
	w.t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return s
}

func (s *websocket) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	s.note(&s.paths, r.URL.Path)
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+
		base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n")
	for {
		head, payload, err := frame(in)
		if err != nil {
			return
		}
		if head&0x0f == 1 {
			s.note(&s.texts, string(payload))
		}
		out := []byte{head, 126, 0, 0}
		binary.BigEndian.PutUint16(out[2:], uint16(len(payload)))
		if len(payload) < 126 {
			out = []byte{head, byte(len(payload))}
		}
		_, _ = c.Write(append(out, payload...))
		if head&0x0f == 8 {
			return
		}
	}
}

// frame reads one masked frame (RFC 6455 §5.2).
func frame(in io.Reader) (head byte, payload []byte, err error) {
	var start [2]byte
	if _, err := io.ReadFull(in, start[:]); err != nil {
		return 0, nil, err
	}
	length := int(start[1] & 0x7f)
	if length == 126 {
		var long [2]byte
		if _, err := io.ReadFull(in, long[:]); err != nil {
			return 0, nil, err
		}
		length = int(binary.BigEndian.Uint16(long[:]))
	}
	var mask [4]byte
	if _, err := io.ReadFull(in, mask[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, length)
	_, err = io.ReadFull(in, payload)
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return start[0], payload, err
}

func (s *websocket) note(list *[]string, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, what)
}

// aiohttp speaks WebSocket with nothing but the run's environment.
const aiohttp = `
import asyncio, sys, aiohttp
async def main(host):
    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.ws_connect(f"wss://{host}/events", compress=0) as ws:
            for text in ["one", "x" * 60000, "three"]:
                await ws.send_str(text)
                print("echoed" if await ws.receive_str() == text else "other")
        print("closed", ws.close_code)
        try:
            async with session.ws_connect(f"wss://{host}/commands"):
                print("let through")
        except aiohttp.WSServerHandshakeError as e:
            print("refused", e.status)
asyncio.run(main(sys.argv[1]))
`

func TestAWebSocketPassesWhereItsRuleSaysSo(t *testing.T) {
	t.Parallel()
	interpreter := "/usr/bin/python3"
	if err := exec.CommandContext(t.Context(), interpreter, "-c", "import aiohttp").Run(); err != nil {
		t.Skip("not run: aiohttp (python3-aiohttp) is not on this machine")
	}
	w := prepare(t)
	server := w.websocket()
	dir := filepath.Join(w.settings.Dir, "connectors")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	rewriteConnectors(t, w.settings.Connectors, dir, strings.NewReplacer())
	if err := os.WriteFile(filepath.Join(dir, "live.yaml"), []byte(strings.Replace(websocketRules, "HOST", server.address, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.settings.Connectors = dir
	w.start()
	said, err := w.open("a").command(t.Context(), []string{interpreter, "-c", aiohttp, server.address}, "").CombinedOutput()
	if want := "echoed\nechoed\nechoed\nclosed 1000\nrefused 403\n"; string(said) != want || err != nil {
		t.Errorf("the client said %s%v, want %s", said, err, want)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if got := strings.Join(server.paths, " "); got != "/events" {
		t.Errorf("the upstream was asked for %s", got)
	}
	if len(server.texts) != 3 || server.texts[0] != "one" || len(server.texts[1]) != 60000 || server.texts[2] != "three" {
		t.Errorf("the upstream got %d messages", len(server.texts))
	}
	w.poll("the line is there", func() bool { return strings.Contains(w.output.String(), `"upgrade":"websocket"`) })
}
