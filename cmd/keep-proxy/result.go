package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"keep-proxy/cli/managed"
)

// writeResult writes the file of --result, whole or not at all.
func (f *runFlags) writeResult(v managed.Verdict) error {
	if f.result == "" {
		return nil
	}
	var content bytes.Buffer
	if err := writeJSON(&content, v); err != nil {
		return err
	}
	if err := replaceFile(f.result, content.Bytes()); err != nil {
		return fmt.Errorf("--result: %w", err)
	}
	return nil
}

// replaceFile writes a file that only its owner reads, whole or not at all.
func replaceFile(name string, content []byte) error {
	t, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = t.Write(content)
	err = errors.Join(err, t.Close())
	if err == nil {
		err = os.Rename(t.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}
