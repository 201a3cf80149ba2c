package isolate

import "strings"

// Agree reports whether the name that a client says agrees with the name that its address stands for. The latter may be
// longer: the client's resolver appends search domains to short names.
func Agree(said, found string) bool {
	said, ok := hostName(said)
	found, known := hostName(found)
	return ok && known && strings.HasPrefix(found+".", said+".")
}
