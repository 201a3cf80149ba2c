//go:build !linux

package badgerstore

import "os"

// fdatasync syncs f.
func fdatasync(f *os.File) error { return f.Sync() }

// allocate fills f with size zero bytes.
func allocate(f *os.File, size int64) error {
	_, err := f.Write(make([]byte, size))
	return err
}
