package badgerstore

import (
	"errors"
	"fmt"
	"os"
)

// dropEmptyLogs removes empty files of Badger's WAL and of its value log. A kill leaves one before the new file has
// its length, and Badger then refuses the whole folder. If one ever held a batch, the tail has that too, or its
// fold record is missing.
func dropEmptyLogs(dir string) error {
	empty, err := emptyLogs(dir)
	for _, path := range empty {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("empty files of Badger: %w", err)
	}
	return nil
}

// emptyLogs lists the files of Badger's WAL without a byte.
func emptyLogs(dir string) (empty []string, err error) {
	logs, err := filesIn(dir, ".vlog", walSuffix)
	for _, path := range logs {
		info, errStat := os.Stat(path)
		if errStat == nil && info.Size() == 0 {
			empty = append(empty, path)
		}
		err = errors.Join(err, errStat)
	}
	return empty, err
}

// walSuffix ends the name of a file of Badger's WAL.
const walSuffix = ".mem"
