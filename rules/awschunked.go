package rules

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// awsChunked is the coding in which AWS's clients stream what they upload: chunks that
// may each be signed, and then trailers with a digest. It stays as it is when the request
// is sent; what is judged is the content without it.
const awsChunked = "aws-chunked"

// errAWSChunked says nothing of the bytes, which may be secret.
var errAWSChunked = errors.New("malformed aws-chunked content")

// maxChunkLine bounds a chunk's size and signature, and a trailer.
const maxChunkLine = 1 << 10

// undoAWSChunked returns the content, if body is exactly one such stream and as long as
// X-Amz-Decoded-Content-Length says.
func undoAWSChunked(declared []string, body []byte) ([]byte, error) {
	if len(declared) != 1 {
		return nil, errAWSChunked
	}
	plain := make([]byte, 0, len(body))
	for {
		line, rest, ok := chunkLine(body)
		size, sized := chunkSize(line)
		if !ok || !sized || size > len(rest) {
			return nil, errAWSChunked
		}
		if size == 0 {
			body = rest
			break
		}
		plain = append(plain, rest[:size]...)
		if body, ok = bytes.CutPrefix(rest[size:], []byte("\r\n")); !ok {
			return nil, errAWSChunked
		}
	}
	if !onlyTrailers(body) || strconv.Itoa(len(plain)) != declared[0] {
		return nil, errAWSChunked
	}
	return plain, nil
}

// chunkLine cuts a line that ends in CRLF off.
func chunkLine(body []byte) (line string, rest []byte, ok bool) {
	end := bytes.Index(body[:min(len(body), maxChunkLine)], []byte("\r\n"))
	if end < 0 || bytes.ContainsAny(body[:end], "\r\n") {
		return "", nil, false
	}
	return string(body[:end]), body[end+2:], true
}

// chunkSize reads the beginning of a chunk: its size in hex, and its signature, if there
// is one.
func chunkSize(line string) (int, bool) {
	digits, signature, signed := strings.Cut(line, ";")
	if signed {
		value, ok := strings.CutPrefix(signature, "chunk-signature=")
		if !ok || len(value) == 0 || strings.Trim(value, "0123456789abcdef") != "" {
			return 0, false
		}
	}
	if strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return 0, false
	}
	size, err := strconv.ParseUint(digits, 16, 31)
	return int(size), err == nil
}

// onlyTrailers reports whether what follows the last chunk is trailers of AWS's own and
// the line that ends them.
func onlyTrailers(body []byte) bool {
	for {
		line, rest, ok := chunkLine(body)
		if !ok {
			return false
		}
		if line == "" {
			return len(rest) == 0
		}
		name, _, ok := strings.Cut(line, ":")
		if !ok || !strings.HasPrefix(strings.ToLower(name), "x-amz-") || strings.ContainsAny(name, " \t") {
			return false
		}
		body = rest
	}
}
