package badgerstore

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"keep-proxy/ledger"
)

// identity is the content of ledger.id, and of the meta value inside.
type identity struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`
	Version string    `json:"version,omitempty"`
	Created time.Time `json:"created"`
}

const identityTitle = "keep-proxy ledger"

func (c Config) identityPath() string { return filepath.Join(c.Dir, "ledger.id") }

// text is the file's content: readable lines, the last one their checksum.
func (i identity) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nformat %d\nid %s\nneeds keep-proxy %s\ncreated %s\n",
		identityTitle, i.Format, i.ID, i.Version, i.Created.UTC().Format(time.RFC3339Nano))
	fmt.Fprintf(&b, "check %08x\n", crc32.Checksum(b.Bytes(), castagnoli))
	return b.Bytes()
}

func parseIdentity(text []byte) (identity, error) {
	var i identity
	bad := func(why string) (identity, error) {
		return identity{}, fmt.Errorf("%w: ledger.id: %s", ledger.ErrDamaged, why)
	}
	body, check, ok := strings.Cut(string(text), "check ")
	if !ok || check != fmt.Sprintf("%08x\n", crc32.Checksum([]byte(body), castagnoli)) {
		return bad("the checksum doesn't match")
	}
	lines := strings.Split(body, "\n")
	if len(lines) != 6 || lines[0] != identityTitle {
		return bad("the lines are not those of a ledger")
	}
	format, err := strconv.Atoi(strings.TrimPrefix(lines[1], "format "))
	if err != nil {
		return bad("the format is no number")
	}
	created, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(lines[4], "created "))
	if err != nil {
		return bad("the time is none")
	}
	i.Format, i.Created = format, created
	i.ID = strings.TrimPrefix(lines[2], "id ")
	i.Version = strings.TrimPrefix(lines[3], "needs keep-proxy ")
	return i, nil
}

// readIdentity reads ledger.id and refuses another format.
func readIdentity(path string) (identity, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return identity{}, fmt.Errorf("ledger.id: %w", err)
	}
	i, err := parseIdentity(b)
	if err != nil {
		return i, err
	}
	if i.Format != format {
		return i, wrongFormat("ledger.id", i.Format, "keep-proxy "+i.Version)
	}
	return i, nil
}
