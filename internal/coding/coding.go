// Package coding undoes content codings (RFC 9110 §8.4.1): gzip, deflate in its two forms, br (RFC 7932) and zstd
// (RFC 8878). There may be several, one around the other.
//
// # Failure
//
// A coding that isn't known is [ErrUnknown]. [Decode] also refuses what goes on behind its first stream, as decoders
// differ on that, and what grows beyond its limit. Windows are bounded: 16 MiB for br, 8 MiB for zstd.
package coding

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Why content can't be decoded.
var (
	ErrUnknown = errors.New("the content coding is not known")
	ErrBroken  = errors.New("the content is not in its coding")
	ErrMore    = errors.New("the content goes on behind the first stream of its coding")
	ErrTooLong = errors.New("the content decodes to more than is allowed")
)

// maxCodings bounds how many codings there may be, one around the other.
const maxCodings = 3

// maxWindow is the longest window that a zstd frame may have on the web (RFC 9659 §3).
const maxWindow = 8 << 20

// Names are the codings of the lines of Content-Encoding, in lower case, the innermost first.
func Names(lines []string) []string {
	return strings.FieldsFunc(strings.ToLower(strings.Join(lines, ",")), func(c rune) bool { return c == ',' || c == ' ' || c == '\t' })
}

// Reader reads content without its codings.
func Reader(content io.Reader, names []string) (io.Reader, error) {
	if len(names) > maxCodings {
		return nil, ErrUnknown
	}
	for _, name := range slices.Backward(names) {
		var err error
		if content, err = reader(name, bufio.NewReader(content)); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// Decode is content without its codings. None of them may make more than limit bytes.
func Decode(content []byte, names []string, limit int64) ([]byte, error) {
	if len(names) > maxCodings {
		return nil, ErrUnknown
	}
	for _, name := range slices.Backward(names) {
		in := bufio.NewReader(bytes.NewReader(content))
		r, err := reader(name, in)
		switch z := r.(type) {
		case *gzip.Reader:
			z.Multistream(false)
		case *zstd.Decoder:
			err = oneFrame(content)
		}
		if err != nil {
			return nil, err
		}
		plain, err := io.ReadAll(io.LimitReader(r, limit+1))
		_, ended := in.Peek(1)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrBroken, err)
		case int64(len(plain)) > limit:
			return nil, ErrTooLong
		case ended == nil:
			return nil, ErrMore
		}
		content = plain
	}
	return content, nil
}

// reader reads one coding.
func reader(name string, in *bufio.Reader) (r io.Reader, err error) {
	switch name {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(in)
	case "deflate":
		// It is zlib, and some send the raw form (RFC 9110 §8.4.1.2).
		if head, _ := in.Peek(2); len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
			r, err = zlib.NewReader(in)
		} else {
			r = flate.NewReader(in)
		}
	case "br":
		r = brotli.NewReader(in)
	case "zstd":
		r, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	default:
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return r, nil
}

// oneFrame refuses what is not one frame of zstd (RFC 8878 §3.1.1). What is in its blocks isn't looked at.
func oneFrame(content []byte) error {
	var h zstd.Header
	if err := h.Decode(content); err != nil || h.Skippable {
		return ErrBroken
	}
	content = content[h.HeaderSize:]
	for last := false; !last && len(content) >= 3; {
		block := int(content[0]) | int(content[1])<<8 | int(content[2])<<16
		last = block&1 != 0
		size := block >> 3
		if block>>1&3 == 1 {
			size = 1 // One byte that is repeated.
		}
		content = content[min(len(content), 3+size):]
	}
	if len(content) > 4 { // Its checksum has four.
		return ErrMore
	}
	return nil
}
