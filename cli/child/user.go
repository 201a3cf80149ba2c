package child

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// User is another user as whom a command can be run.
type User struct {
	Name, Home string
	UID, GID   uint32
	// Groups are the user's groups; the command is in no other.
	Groups []uint32
}

// LookupUser finds a user by name or number, or takes the numbers UID:GID as they are:
// that one has no name, no home and no further group. Our own user and root are refused:
// they can read whatever we can.
func LookupUser(name string) (*User, error) {
	u, err := lookupUser(name)
	if err != nil {
		return nil, err
	}
	if uid := uint32(os.Getuid()); u.UID == uid || u.UID == 0 {
		return nil, fmt.Errorf("user %s can read whatever keep-proxy can; name one that can't", name)
	}
	return u, nil
}

func lookupUser(name string) (*User, error) {
	if uid, gid, ok := strings.Cut(name, ":"); ok {
		ids, err := numbers(uid, gid)
		if err != nil {
			return nil, fmt.Errorf("user %q: %w; give a name, a number, or UID:GID", name, err)
		}
		return &User{UID: ids[0], GID: ids[1], Groups: ids[1:]}, nil
	}
	found, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		found, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("user %q is not known here: %w; give a name, a number, or UID:GID", name, err)
	}
	groups, err := found.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of user %s: %w", name, err)
	}
	ids, err := numbers(slices.Concat([]string{found.Uid, found.Gid}, groups)...)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	return &User{Name: found.Username, Home: found.HomeDir, UID: ids[0], GID: ids[1], Groups: ids[2:]}, nil
}

func numbers(words ...string) ([]uint32, error) {
	out := make([]uint32, len(words))
	for i, word := range words {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil || n == 1<<32-1 {
			return nil, fmt.Errorf("%q is no user's or group's number", word)
		}
		out[i] = uint32(n)
	}
	return out, nil
}
