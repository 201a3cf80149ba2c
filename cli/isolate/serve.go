package isolate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
)

// ServePackets answers queries until ctx ends or the socket is closed. An answer comes from the address that was asked.
func (n *Names) ServePackets(ctx context.Context, c *net.UDPConn) error {
	packet, control := make([]byte, 4096), make([]byte, 256)
	return serve(ctx, c, func(ctx context.Context) (func(), error) {
		size, told, _, client, err := c.ReadMsgUDPAddrPort(packet, control)
		query, asked := bytes.Clone(packet[:max(size, 0)]), bytes.Clone(control[:max(told, 0)])
		return func() {
			if reply := n.answer(ctx, query); reply != nil {
				_, _, _ = c.WriteMsgUDPAddrPort(reply, asked, client)
			}
		}, err
	})
}

// ServeStreams answers queries over TCP until ctx ends or the listener is closed.
func (n *Names) ServeStreams(ctx context.Context, l net.Listener) error {
	return serve(ctx, l, func(ctx context.Context) (func(), error) {
		c, err := accept(l)
		return func() { n.serveStream(ctx, c) }, err
	})
}

func (n *Names) serveStream(ctx context.Context, c net.Conn) {
	_ = serve(ctx, c, func(ctx context.Context) (func(), error) {
		var size uint16
		err := errors.Join(c.SetDeadline(time.Now().Add(30*time.Second)), binary.Read(c, binary.BigEndian, &size))
		query, failed := io.ReadAll(io.LimitReader(c, int64(size)))
		return func() {
			if reply := n.answer(ctx, query); reply != nil {
				_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
			}
		}, errors.Join(err, failed)
	})
}

// serve does what next brings, at most 256 at once, and closes the socket at its end. More waits in the socket.
func serve(ctx context.Context, socket io.Closer, next func(ctx context.Context) (func(), error)) error {
	var jobs errgroup.Group
	jobs.SetLimit(256)
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); _ = jobs.Wait() }()
	context.AfterFunc(ctx, func() { _ = socket.Close() })
	for {
		switch job, err := next(ctx); {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		default:
			jobs.Go(func() error { job(); return nil })
		}
	}
}
