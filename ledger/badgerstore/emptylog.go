package badgerstore

import (
	"errors"
	"fmt"
	"os"
)

// dropEmptyLogs removes logs without a byte. A process that is killed between
// making a log and giving it its length leaves one, and Badger, which expects only
// files that it knows, then refuses the whole folder. Nothing is lost by it: should
// an empty file be what is left of a log that held something, then the log of ours has it still.
func dropEmptyLogs(dir string) error {
	empty, err := emptyLogs(dir)
	for _, path := range empty {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("empty logs of the ledger: %w", err)
	}
	return nil
}

// emptyLogs lists the logs without a byte.
func emptyLogs(dir string) (empty []string, err error) {
	logs, err := filesIn(dir, ".vlog", logSuffix)
	for _, path := range logs {
		info, errStat := os.Stat(path)
		if errStat == nil && info.Size() == 0 {
			empty = append(empty, path)
		}
		err = errors.Join(err, errStat)
	}
	return empty, err
}

// logSuffix ends the name of a log of Badger.
const logSuffix = ".mem"
