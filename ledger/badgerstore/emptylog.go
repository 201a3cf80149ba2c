package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// dropEmptyLogs removes logs without a byte. A process that is killed between
// making a log and giving it its length leaves one, and Badger, which expects only
// files that it knows, then refuses the whole folder. Nothing is lost by it: should
// an empty file be what is left of a log that held something, then the ledger is
// shorter than the high-water mark says, and refuses to start by that.
func dropEmptyLogs(dir string) error {
	var problems []error
	for _, pattern := range []string{"*.vlog", "*.mem"} {
		logs, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range logs {
			info, err := os.Stat(path)
			if err == nil && info.Size() == 0 {
				err = os.Remove(path)
			}
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("empty logs of the ledger: %w", err)
	}
	return nil
}
