package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Role is what the holder of a token may do. The zero value may do nothing.
type Role string

const (
	// RoleViewer reads, contents of requests and answers included.
	RoleViewer Role = "viewer"
	// RoleHost opens, keeps and ends runs, and reads what became of them, without
	// contents: a scheduler's role.
	RoleHost Role = "host"
	// RoleOperator reads, runs and decides.
	RoleOperator Role = "operator"
)

// Who may use a route.
var (
	operators = []Role{RoleOperator}
	hosts     = []Role{RoleHost, RoleOperator}
	readers   = []Role{RoleViewer, RoleOperator}
	everybody = []Role{RoleViewer, RoleHost, RoleOperator}
)

// may reports whether a holder of r may use what one of the roles may. An unknown role
// may do nothing.
func (r Role) may(one []Role) bool { return slices.Contains(everybody, r) && slices.Contains(one, r) }

// Token is a configured bearer token, known by its digest alone.
type Token struct {
	// Name is who holds it; it is recorded with what its holder decides.
	Name string
	Role Role
	// SHA256 is the hex digest of the token's text.
	SHA256 string
}

// operatorName is the holder of the token in the operator's file.
const operatorName = "operator"

// caller is who asks.
type caller struct {
	name string
	role Role
}

// holder is a token's digest and who holds it.
type holder struct {
	digest [sha256.Size]byte
	caller
}

// holders prepares the tokens for lookup, and reports each that nobody, or anybody, could use. One
// token, or one name, doesn't stand for two holders: who decided what could not be told.
func holders(c Config) (list []holder, err error) {
	list = []holder{{sha256.Sum256([]byte(c.OperatorToken)), caller{operatorName, RoleOperator}}}
	for _, t := range c.Tokens {
		h := holder{caller: caller{t.Name, t.Role}}
		sum, bad := hex.DecodeString(t.SHA256)
		copy(h.digest[:], sum)
		switch {
		case t.Name == "" || t.Name == operatorName:
			err = errors.Join(err, fmt.Errorf("admin: a token needs a name of its own, not %q", t.Name))
		case !t.Role.may(everybody):
			err = errors.Join(err, fmt.Errorf("admin: token %s: unknown role %q (want viewer, host or operator)", t.Name, t.Role))
		case bad != nil || len(sum) != sha256.Size:
			err = errors.Join(err, fmt.Errorf("admin: token %s: sha256 wants 64 hex digits", t.Name))
		}
		for _, other := range list {
			if bad == nil && other.digest == h.digest {
				err = errors.Join(err, fmt.Errorf("admin: token %s is the one of %s too; make another", t.Name, other.name))
			}
			if other.name == t.Name && t.Name != operatorName {
				err = errors.Join(err, fmt.Errorf("admin: two tokens are named %s", t.Name))
			}
		}
		list = append(list, h)
	}
	return list, err
}

// identify returns who holds the token. Its time depends on the number of
// tokens alone: digests are compared in constant time, and all of them.
func identify(list []holder, token string) (caller, bool) {
	digest := sha256.Sum256([]byte(token))
	var found caller
	ok := false
	for i := range list {
		if subtle.ConstantTimeCompare(list[i].digest[:], digest[:]) == 1 {
			found, ok = list[i].caller, true
		}
	}
	return found, ok && token != ""
}

// OperatorToken reads the operator's token from a file, white space at its end ignored. If there is no
// file, it makes one of mode 0600 with a new token of 256 random bits. Then minted is true. A file
// that other users can read, or that holds less than 32 bytes or several words, is refused.
func OperatorToken(path string, random io.Reader) (token string, minted bool, err error) {
	if token, err = readToken(path); errors.Is(err, fs.ErrNotExist) {
		if token, err = newToken(random); err == nil {
			err = writeToken(path, token)
		}
		if minted = err == nil; errors.Is(err, fs.ErrExist) {
			token, err = readToken(path)
		}
	}
	if err != nil {
		return "", false, fmt.Errorf("token file %s: %w", path, err)
	}
	return token, minted, nil
}

// readToken reads and checks a token file.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("it can be read by others (mode %#o): run chmod 600 %s", info.Mode().Perm(), path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimRight(string(content), " \t\r\n")
	switch {
	case len(token) < minToken:
		return "", fmt.Errorf("it holds fewer than %d characters: remove it to have a new token made", minToken)
	case strings.ContainsAny(token, " \t\r\n"):
		return "", errors.New("it holds more than one word: a token is one line without spaces")
	}
	return token, nil
}

// writeToken puts the token in place in one step, so that no reader finds half of it. It never
// overwrites a file that appeared meanwhile.
func writeToken(path, token string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*")
	if err != nil {
		return err
	}
	// The link below is another name of the same file; this one goes either way.
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// newToken makes a token of 256 random bits: 43 characters that need no escape
// in a URL.
func newToken(random io.Reader) (string, error) {
	var bits [32]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", fmt.Errorf("new token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(bits[:]), nil
}

// digestOf is the hex SHA-256 of a text; of a token it is what the ledger keeps.
func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
