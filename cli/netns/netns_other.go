//go:build !linux

package netns

import (
	"errors"
	"os"
)

var errElsewhere = &Error{"this system", errors.New("it takes Linux")}

// Start fails, as there are no namespaces here.
func Start(Spec, string, []string, *os.ProcAttr) (int, *Network, error) {
	return 0, nil, errElsewhere
}

// Check says why no namespace can be had here.
func Check(bool) error { return errElsewhere }

// Fix is empty: nothing helps here.
func (*Error) Fix() string { return "" }

// Stage fails, as nothing starts one.
func Stage() int { return 1 }
