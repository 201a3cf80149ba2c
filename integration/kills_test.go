package integration

import (
	"os"
	"strconv"
)

// killsVar says how often the program is killed at random moments.
const killsVar = "KEEP_TEST_KILLS"

// thorough is the number of kills from which on the crash points are gone through
// more closely too.
const thorough = 200

func kills() int {
	if n, err := strconv.Atoi(os.Getenv(killsVar)); err == nil && n >= 0 {
		return n
	}
	return 40
}
