package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// owner adds a file to what is loaded. Of a late one without settings only the head is read. Compiling takes most of the
// time, and a proxy meets few of the APIs that are known.
func (l *loading) owner(f File) {
	if !f.Late {
		l.file(f)
		return
	}
	d := newDecoder(f.Name, false)
	head, _, cut := bytes.Cut(f.Data, []byte("\noperations:"))
	if root, ok := d.Document(head); cut && ok && root.Given() {
		m, _ := d.Map(root, levelConnector)
		h := d.head(m, l)
		if sum := sha256.Sum256(f.Data); len(d.findings) == 0 && l.settingsFor(h.Name) == nil {
			h.File, h.Hash = f.Name, hex.EncodeToString(sum[:])
			l.owners = append(l.owners, &owner{h, true, sync.OnceValue(func() *Connector { return l.compile(f, h) })})
			return
		}
	}
	l.file(f)
}

// compile loads a late file. One that has errors refuses all that goes to its hosts.
func (l *loading) compile(f File, h Head) *Connector {
	c, findings := l.again(f, nil)
	if c == nil {
		c = &Connector{Head: h, broken: &Finding{Problem: "its file doesn't load", Fix: "see keep-proxy check"}}
		if len(findings) > 0 {
			c.broken = &findings[0]
		}
	}
	return c
}
