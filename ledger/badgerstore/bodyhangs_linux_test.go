package badgerstore

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// Opening a long content, and reading it, waits for a disk that hangs no longer than writing
// does.
func TestALongContentOfADiskThatHangs(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(t *testing.T, s *Store, b ledger.Body) (io.Reader, error){
		"opening": func(t *testing.T, s *Store, b ledger.Body) (io.Reader, error) {
			t.Helper()
			path := s.config.bodyPath(b.SHA256)
			if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil { // Who opens it goes on.
					_ = f.Close()
				}
			})
			return s.Body(t.Context(), b)
		},
		"reading": func(t *testing.T, s *Store, b ledger.Body) (io.Reader, error) {
			t.Helper()
			r, err := s.Body(t.Context(), b)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = r.Close() })
			long, ok := r.(*bodyReader)
			if !ok {
				t.Fatalf("%T", r)
			}
			never, end, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = end.Close() })
			_ = long.file.Close()
			long.file = never
			return long, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpenOnly(t, testConfig(t.TempDir()))
			fill(t, s, 0, 1, 10)
			b, err := s.WriteBody(t.Context(), strings.NewReader(string(long("h"))))
			if err != nil {
				t.Fatal(err)
			}
			sum, err := bodySum(b)
			if err != nil {
				t.Fatal(err)
			}
			err = s.do(t.Context(), func(t *tx) error { return t.layer.putValue(key(kBody, sum), &bodyHead{Size: b.Size, File: true}) })
			if err != nil {
				t.Fatal(err)
			}
			s.stallsAfter(100 * time.Millisecond)
			r, err := hang(t, s, b)
			if err == nil {
				_, err = io.ReadAll(r)
			}
			if !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, errHangs) || !strings.Contains(err.Error(), "a read") {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
