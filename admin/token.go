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

// validate refuses a token that nobody, or anybody, could use.
func (t Token) validate() error {
	switch sum, err := hex.DecodeString(t.SHA256); {
	case t.Name == "" || t.Name == operatorName:
		return fmt.Errorf("admin: a token needs a name of its own, not %q", t.Name)
	case !t.Role.may(everybody):
		return fmt.Errorf("admin: token %s: unknown role %q (want viewer, host or operator)", t.Name, t.Role)
	case err != nil || len(sum) != sha256.Size:
		return fmt.Errorf("admin: token %s: sha256 wants 64 hex digits", t.Name)
	}
	return nil
}

// distinctTokens refuses a token, or a name, that stands for two holders: who decided
// what could not be told.
func (c Config) distinctTokens() error {
	operator := sha256.Sum256([]byte(c.OperatorToken))
	digests, names := map[string]string{hex.EncodeToString(operator[:]): operatorName}, map[string]bool{}
	var errs []error
	for _, t := range c.Tokens {
		digest := strings.ToLower(t.SHA256)
		if other, twice := digests[digest]; twice {
			errs = append(errs, fmt.Errorf("admin: token %s is the one of %s too; make another", t.Name, other))
		}
		if names[t.Name] {
			errs = append(errs, fmt.Errorf("admin: two tokens are named %s", t.Name))
		}
		digests[digest], names[t.Name] = t.Name, true
	}
	return errors.Join(errs...)
}

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

// holders prepares the tokens of a valid Config for lookup.
func holders(c Config) []holder {
	list := []holder{{sha256.Sum256([]byte(c.OperatorToken)), caller{operatorName, RoleOperator}}}
	for _, t := range c.Tokens {
		h := holder{caller: caller{t.Name, t.Role}}
		// validate has refused anything that isn't a digest.
		if _, err := hex.Decode(h.digest[:], []byte(t.SHA256)); err == nil {
			list = append(list, h)
		}
	}
	return list
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

// OperatorToken reads the operator's token from a file, white space at its end
// ignored. If there is no file, it makes one of mode 0600 with a new token of 256
// random bits and a newline, and minted is true. A file that other users can
// read, or that holds less than 32 bytes or several words, is refused.
func OperatorToken(path string, random io.Reader) (token string, minted bool, err error) {
	token, err = readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, false, err
	}
	token, err = newToken(random)
	if err != nil {
		return "", false, err
	}
	err = writeToken(path, token)
	if errors.Is(err, fs.ErrExist) {
		token, err = readToken(path)
		return token, false, err
	}
	return token, err == nil, err
}

// readToken reads and checks a token file.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("token file %s can be read by others (mode %#o): run chmod 600 %s", path, info.Mode().Perm(), path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	token := strings.TrimRight(string(content), " \t\r\n")
	switch {
	case len(token) < minToken:
		return "", fmt.Errorf("token file %s holds fewer than %d characters: remove it to have a new token made", path, minToken)
	case strings.ContainsAny(token, " \t\r\n"):
		return "", fmt.Errorf("token file %s holds more than one word: a token is one line without spaces", path)
	}
	return token, nil
}

// writeToken puts the token in place in one step, so that no reader finds half
// of it, and never over a file that appeared meanwhile.
func writeToken(path, token string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*")
	if err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	// The link below is another name of the same file; this one goes either way.
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	if err := os.Link(f.Name(), path); err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	return nil
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

// tokenDigest is what the ledger keeps of a token: the hex SHA-256 of its text.
func tokenDigest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
