// Package doctor examines an installation, and a sandbox from inside.
//
// Every examination ends in findings, and changes nothing that lasts. It sends only to the proxy. Targets that must
// not be reached past it get a TCP connection without a byte.
//
// # Failure
//
// What can't be found out is said to be unknown, with the reason, and never sound. One
// examination that fails leaves the others as they are.
package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Verdict is what an examination came to. The zero value is none and counts as Broken.
type Verdict string

const (
	// Sound needs nothing.
	Sound Verdict = "sound"
	// Advice works, and could be safer.
	Advice Verdict = "advice"
	// Unknown could not be found out here.
	Unknown Verdict = "unknown"
	// Broken breaks a promise, or keeps the proxy from working.
	Broken Verdict = "broken"
)

// Finding is what one examination found.
type Finding struct {
	// Name is what was examined, in a few words.
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Detail says what was seen.
	Detail string `json:"detail"`
	// Fix says what to do; empty for what is sound.
	Fix string `json:"fix,omitempty"`
}

// Failed reports whether anything is broken.
func Failed(findings []Finding) bool {
	for _, f := range findings {
		switch f.Verdict {
		case Sound, Advice, Unknown:
		default:
			return true
		}
	}
	return false
}

// Of makes a finding of the verdict.
func (v Verdict) Of(name, detail, fix string) Finding { return Finding{name, v, detail, fix} }

func sound(name, detail string) Finding        { return Sound.Of(name, detail, "") }
func advice(name, detail, fix string) Finding  { return Advice.Of(name, detail, fix) }
func unknown(name, detail, fix string) Finding { return Unknown.Of(name, detail, fix) }
func broken(name, detail, fix string) Finding  { return Broken.Of(name, detail, fix) }

// Installation is what is examined. Paths are absolute.
type Installation struct {
	// Dir is the data folder.
	Dir string
	// MinFree is ledger.min_free, in bytes.
	MinFree uint64
	// LedgerID and HighWaterFile are the configured ones, empty if they are not.
	LedgerID, HighWaterFile string
	// CertFile and KeyFile are the CA's, TokenFile the operator's token.
	CertFile, KeyFile, TokenFile string
	// Descriptors is how many the most connections would take; 0 for no examination.
	Descriptors uint64
	// Now is the wall clock.
	Now time.Time
}

// Examine looks at everything of an installation that can be seen without its proxy.
func (i Installation) Examine() []Finding {
	findings := []Finding{i.folder()}
	if findings[0].Verdict == Sound || findings[0].Verdict == Advice {
		findings = append(findings, i.disk(), i.space(), i.syncs())
	}
	return append(findings, i.identity(), i.mark(), i.authority(), i.token(), clockSynchronised(), i.descriptors())
}

// folder wants the data folder to be there, and ours alone.
func (i Installation) folder() Finding {
	const name = "data folder"
	info, err := os.Stat(i.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unknown(name, i.Dir+" isn't there yet", "serve makes it; if it should be there, mount the volume")
	case err != nil:
		return broken(name, err.Error(), "give the user that runs keep-proxy access to it")
	case !info.IsDir():
		return broken(name, i.Dir+" is no folder", "name another with ledger.dir")
	case unix.Access(i.Dir, unix.W_OK|unix.X_OK) != nil:
		return broken(name, i.Dir+" can't be written to", "give it to the user that runs keep-proxy")
	case info.Mode().Perm()&0o022 != 0:
		return broken(name, fmt.Sprintf("%s has mode %#o: others can change it", i.Dir, info.Mode().Perm()), "chmod 0700 "+i.Dir)
	case info.Mode().Perm()&0o077 != 0:
		return advice(name, fmt.Sprintf("%s has mode %#o: others can look into it", i.Dir, info.Mode().Perm()), "chmod 0700 "+i.Dir)
	}
	return sound(name, i.Dir)
}

// keepsNothing says what is wrong with a file system that can't keep the ledger.
const keepsNothing = " is shared over a network or lives in memory: locks and syncs may not hold, or nothing is kept"

// disk wants a local file system that keeps what it synced.
func (i Installation) disk() Finding {
	const name = "file system"
	kind, network, err := fileSystem(i.Dir)
	switch {
	case err != nil:
		return unknown(name, err.Error(), "make sure that it is a local disk which keeps what it synced")
	case network:
		return broken(name, kind+keepsNothing, "put ledger.dir on a local disk")
	case kind == "":
		return unknown(name, "of a kind that isn't known here", "make sure that it is a local disk which keeps what it synced")
	}
	return sound(name, kind)
}

func (i Installation) space() Finding {
	const name = "free space"
	var s unix.Statfs_t
	if err := unix.Statfs(i.Dir, &s); err != nil {
		return unknown(name, err.Error(), "make sure that ledger.min_free is left")
	}
	free := s.Bavail * uint64(s.Bsize) //nolint:gosec,unconvert,nolintlint // The block size is signed on some systems, and never negative.
	text := fmt.Sprintf("%d MiB, of which ledger.min_free keeps %d MiB", free>>20, i.MinFree>>20)
	switch {
	case free < i.MinFree:
		return broken(name, text+": mutations are refused", "free some space, or lower ledger.min_free")
	case free < 4*i.MinFree:
		return advice(name, text, "free some space before mutations are refused")
	}
	return sound(name, text)
}

// syncs measures what each mutation waits for. The fastest of a few is shown: others
// may use the disk too.
func (i Installation) syncs() Finding {
	const name, tries = "syncing", 5
	f, err := os.CreateTemp(i.Dir, ".doctor-*")
	if err != nil {
		return broken(name, err.Error(), "make "+i.Dir+" writable")
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
	var best time.Duration
	for n := range tries {
		started := time.Now()
		_, err := f.WriteAt(make([]byte, 4096), int64(n)*4096)
		if err = errors.Join(err, f.Sync()); err != nil {
			return broken(name, err.Error(), "look at the disk: nothing can be recorded on it")
		}
		if took := time.Since(started); best == 0 || took < best {
			best = took
		}
	}
	return sound(name, fmt.Sprintf("one takes %s in %s; a mutation waits for two", best.Round(time.Microsecond), i.Dir))
}

// identity and mark are what finds a missing and an older ledger.
func (i Installation) identity() Finding {
	const name = "ledger.id"
	if i.LedgerID == "" {
		return advice(name, "not set: an empty or missing folder counts as a first start, and everything would be done again",
			"set ledger.id to what serve prints")
	}
	return sound(name, i.LedgerID)
}

func (i Installation) mark() Finding {
	const name = "ledger.high_water_file"
	if i.HighWaterFile == "" {
		return advice(name, "not set: a restored older copy of the ledger isn't noticed", "set it to a file on another volume")
	}
	if rel, err := filepath.Rel(i.Dir, i.HighWaterFile); err == nil && filepath.IsLocal(rel) {
		return advice(name, i.HighWaterFile+" is in the data folder and is restored together with it", "put it on another volume")
	}
	if kind, bad, err := fileSystem(filepath.Dir(i.HighWaterFile)); err == nil && bad {
		return broken(name, i.HighWaterFile+" is on "+kind+", which"+keepsNothing, "put it on another local disk")
	}
	return sound(name, i.HighWaterFile)
}

func (i Installation) authority() Finding {
	const name = "CA"
	pair, err := tls.LoadX509KeyPair(i.CertFile, i.KeyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unknown(name, "there is none yet", "serve makes one")
	case err != nil:
		return broken(name, err.Error(), "restore both files, or remove both: the next start makes new ones")
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	switch {
	case err != nil:
		return broken(name, err.Error(), "remove "+i.CertFile+" and "+i.KeyFile+": the next start makes new ones")
	case i.Now.After(cert.NotAfter) || i.Now.Before(cert.NotBefore):
		return broken(name, fmt.Sprintf("valid from %s to %s", cert.NotBefore.Format(time.DateOnly), cert.NotAfter.Format(time.DateOnly)),
			"set the clock, or make a new CA")
	case cert.NotAfter.Sub(i.Now) < 30*24*time.Hour:
		return advice(name, "ends on "+cert.NotAfter.Format(time.DateOnly), "make a new CA, and give it to long-lived sandboxes")
	}
	if finding, bad := secret(name, i.KeyFile); bad {
		return finding
	}
	return sound(name, i.CertFile+", until "+cert.NotAfter.Format(time.DateOnly))
}

func (i Installation) token() Finding {
	const name = tokenName
	if _, err := os.Stat(i.TokenFile); errors.Is(err, fs.ErrNotExist) {
		return unknown(name, "there is none yet", "serve makes one")
	}
	if finding, bad := secret(name, i.TokenFile); bad {
		return finding
	}
	return advice(name, i.TokenFile+" can be read by every process of this user: a script that runs as the same user can answer its own unknowns",
		"run scripts as another user (keep-proxy run --user), in a sandbox, or where they don't see the file")
}

// secret finds a file that others can read.
func secret(name, file string) (Finding, bool) {
	info, err := os.Stat(file)
	if err != nil {
		return broken(name, err.Error(), "make it readable for the user that runs keep-proxy"), true
	}
	if info.Mode().Perm()&0o077 != 0 {
		return broken(name, fmt.Sprintf("%s has mode %#o: others can read it", file, info.Mode().Perm()), "chmod 0600 "+file), true
	}
	return Finding{}, false
}

// descriptors wants two for each connection: the client's and the upstream's.
func (i Installation) descriptors() Finding {
	const name = "open files"
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return unknown(name, err.Error(), "allow "+fmt.Sprint(i.Descriptors))
	}
	if limit.Max < i.Descriptors {
		return advice(name, fmt.Sprintf("at most %d, and all connections together could take %d", limit.Max, i.Descriptors),
			"raise the limit (LimitNOFILE= of systemd, ulimit -n), or lower proxy.max_connections")
	}
	return sound(name, fmt.Sprintf("at most %d", limit.Max))
}
