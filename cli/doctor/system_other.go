//go:build !linux

package doctor

import "errors"

func fileSystem(string) (kind string, bad bool, err error) {
	return "", false, errors.New("the kind of a file system can't be told on this system")
}

func clockSynchronised() Finding {
	return unknown("wall clock", "whether it is synchronised can't be told on this system",
		"keep it synchronised: vendors' windows and creation times are compared with it")
}
