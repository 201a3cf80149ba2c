package badgerstore

import (
	"errors"
	"os"
	"sync"
)

// pendingBodies knows the bodies of this process that are stored and that no record
// names yet.
type pendingBodies struct {
	config Config

	mu sync.Mutex
	// uploads are the digests of those that have a value.
	uploads map[string]struct{}
	files   map[string]pendingFile
	// held counts those who are about to name a body that others name already.
	held map[string]int
	// going are the bodies that are being removed: true if the file in bodies/ is still the one to go.
	going map[string]bool
}

// pendingFile is a file in bodies/.
type pendingFile struct {
	size int64
	// holders are those who may still name it in a record.
	holders int
}

func (p *pendingBodies) upload(sha256 string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.uploads[sha256]
	return ok
}

func (p *pendingBodies) add(sha256 string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uploads[sha256] = struct{}{}
}

// file returns the size of a file that no record names yet.
func (p *pendingBodies) file(sha256 string) (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.files[sha256]
	return f.size, ok
}

// place moves a synced file to bodies/. It replaces one of the same name, which has the same content or is damaged.
// Unless a record names it already, the mark comes first.
func (p *pendingBodies) place(path, sha256 string, size int64, named bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !named {
		mark, err := os.OpenFile(p.config.bodyMark(sha256), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if err := mark.Close(); err != nil {
			return err
		}
	}
	if _, going := p.going[sha256]; going {
		p.going[sha256] = false // Also if all who want it are gone before the removal ends.
	}
	f, pending := p.files[sha256]
	if err := rename(path, p.config.bodyPath(sha256)); err != nil {
		if !named && !pending {
			_ = os.Remove(p.config.bodyMark(sha256)) // else the next start does
		}
		return err
	}
	if !named {
		p.files[sha256] = pendingFile{size: size, holders: f.holders + 1}
	}
	return nil
}

// release ends one holder's interest in a file. With the last one the file goes, unless a record names it by then.
func (p *pendingBodies) release(sha256 string, named func() (bool, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.files[sha256]
	if !ok {
		return nil
	}
	if f.holders--; f.holders > 0 {
		p.files[sha256] = f
		return nil
	}
	f.holders = 0
	p.files[sha256] = f
	known, err := named()
	if err != nil {
		// The next start decides.
		return err
	}
	delete(p.files, sha256)
	if !known {
		err = removeIfThere(p.config.bodyPath(sha256))
	}
	return errors.Join(err, removeIfThere(p.config.bodyMark(sha256)))
}

// forget takes out what a record names from now on. A mark that stays behind does no
// harm: the next start sees the record.
func (p *pendingBodies) forget(sha256s []string) {
	if len(sha256s) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range sha256s {
		delete(p.uploads, s)
		if _, ok := p.files[s]; ok {
			delete(p.files, s)
			_ = os.Remove(p.config.bodyMark(s)) // see above
		}
	}
}

// hold keeps a body from being removed, unless that has begun.
func (p *pendingBodies) hold(sha256 string) (going bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[sha256]++
	_, going = p.going[sha256]
	return going
}

func (p *pendingBodies) isGoing(sha256 string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, going := p.going[sha256]
	return going
}

func (p *pendingBodies) letGo(sha256 string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[sha256]--; p.held[sha256] <= 0 {
		delete(p.held, sha256)
	}
}

// wanted reports whether a record may name the body soon.
func (p *pendingBodies) wanted(sha256 string) bool {
	_, uploaded := p.uploads[sha256]
	_, placed := p.files[sha256]
	return uploaded || placed || p.held[sha256] > 0
}

// removing begins the removal of a body that nobody wants.
func (p *pendingBodies) removing(sha256 string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted(sha256) {
		return false
	}
	p.going[sha256] = true
	return true
}

// removed ends the removal, with the file if there is one. The file stays if another was put in its place, or if
// the body is wanted anew.
func (p *pendingBodies) removed(sha256 string, file bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := p.going[sha256]
	delete(p.going, sha256)
	if !file || !same || p.wanted(sha256) {
		return nil
	}
	return removeIfThere(p.config.bodyPath(sha256))
}

// removeOrphan removes a file that nobody wants and no value names.
func (p *pendingBodies) removeOrphan(sha256 string, named func() (bool, error)) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted(sha256) {
		return false, nil
	}
	if known, err := named(); err != nil || known {
		return false, err
	}
	return true, removeIfThere(p.config.bodyPath(sha256))
}
