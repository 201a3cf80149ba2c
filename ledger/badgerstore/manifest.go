package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"google.golang.org/protobuf/proto"

	"keep-proxy/ledger"
)

// A write or a sync of the engine's manifest that fails leaves what the next start would take for
// damage, although nothing is lost: a record of a table that was removed at once, since the engine
// makes it anew under another number, or a torn record with others behind it. Such a manifest is
// made anew without either, if what it names then is proven to be the whole ledger.

// errManifest says that no whole set of tables follows from a manifest.
var errManifest = errors.New("no whole set of tables follows from the manifest")

// probeDir is where a manifest that was made anew is tried.
func (c Config) probeDir() string { return filepath.Join(c.Dir, "probe") }

// checkManifest is checkTables for a start, which changes nothing either unless the manifest
// is to be made anew, and can be.
func checkManifest(c Config, opt badger.Options) error {
	refusal := checkTables(opt)
	if !errors.Is(refusal, ledger.ErrDamaged) {
		return refusal
	}
	path := filepath.Join(opt.Dir, badger.ManifestFilename)
	was, err := os.ReadFile(path)
	if err != nil {
		return refusal
	}
	tables, err := wholeTables(was, func(id uint64) (bool, error) { return exists(filepath.Join(opt.Dir, tableName(id))) })
	if err != nil {
		return refusal
	}
	if named, err := listedTables(opt); err == nil && maps.Equal(named, tableNames(tables)) {
		return refusal // It isn't the manifest that is wrong.
	}
	anew, err := manifestOf(tables)
	if err == nil {
		err = proveManifest(c, tables, anew)
	}
	if err == nil {
		err = writeSynced(path, anew)
	}
	if err != nil {
		c.Logger.Warn().Err(err).Msg("the ledger's list of tables can't be made anew")
		return refusal
	}
	c.Logger.Warn().Str("was", refusal.Error()).
		Msg("the ledger's list of tables was left unfinished by a failed write and was made anew; nothing is lost")
	return nil
}

func tableNames(tables map[uint64]*pb.ManifestChange) map[string]bool {
	out := make(map[string]bool, len(tables))
	for id := range tables {
		out[tableName(id)] = true
	}
	return out
}

// tableSuffix ends the name of a table.
const tableSuffix = ".sst"

func tableName(id uint64) string { return fmt.Sprintf("%06d%s", id, tableSuffix) }

// manifestHead begins a manifest: magic, the number of who uses the engine, version.
const manifestHead = "Bdgr\x00\x00\x00\x08"

// recordHead is the length of what is before each record: its length and checksum.
const recordHead = 8

// manifestRecords returns the whole records. What lies between them is torn.
func manifestRecords(b []byte) (records []*pb.ManifestChangeSet, err error) {
	rest, ok := strings.CutPrefix(string(b), manifestHead)
	if !ok {
		return nil, errManifest
	}
	b = []byte(rest)
	for len(b) > recordHead {
		n := binary.BigEndian.Uint32(b)
		if n == 0 || uint64(n) > uint64(len(b)-recordHead) ||
			crc32.Checksum(b[recordHead:recordHead+n], castagnoli) != binary.BigEndian.Uint32(b[4:]) {
			b = b[1:]
			continue
		}
		record := new(pb.ManifestChangeSet)
		if err := proto.Unmarshal(b[recordHead:recordHead+n], record); err != nil {
			return nil, fmt.Errorf("%w: %w", errManifest, err)
		}
		records, b = append(records, record), b[recordHead+n:]
	}
	return records, nil
}

// wholeTables returns the tables that a manifest names, all of which are there. A record that made
// one which isn't there, nor was taken away by a later one, counts for nothing, with all that it
// says: the engine went on without it, and with what it took away. None may take away what isn't
// named: then another one is missing, that counted.
func wholeTables(b []byte, there func(id uint64) (bool, error)) (map[uint64]*pb.ManifestChange, error) {
	records, err := manifestRecords(b)
	if err != nil {
		return nil, err
	}
	for {
		tables, by, wrong := tablesAfter(records)
		failed := map[int]bool{}
		for id := range tables {
			ok, err := there(id)
			if err != nil {
				return nil, err
			}
			if !ok {
				failed[by[id]] = true
			}
		}
		switch {
		case len(failed) > 0:
		case wrong != nil:
			return nil, wrong
		default:
			return tables, nil
		}
		for i := range failed {
			if err := keptInputs(records, i, there); err != nil {
				return nil, err
			}
		}
		for i := range failed {
			records[i] = nil
		}
	}
}

// keptInputs refuses to leave out a record that took tables away which are gone, and by no later one:
// the engine removes these only once the record counted, so that what it made is what is missing.
func keptInputs(records []*pb.ManifestChangeSet, at int, there func(id uint64) (bool, error)) error {
	for _, change := range records[at].GetChanges() {
		if change.GetOp() != pb.ManifestChange_DELETE || removes(records[at+1:], change.GetId()) {
			continue
		}
		switch ok, err := there(change.GetId()); {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("%w: table %d and what was made of it are gone", errManifest, change.GetId())
		}
	}
	return nil
}

func removes(records []*pb.ManifestChangeSet, id uint64) bool {
	return slices.ContainsFunc(records, func(r *pb.ManifestChangeSet) bool {
		return slices.ContainsFunc(r.GetChanges(), func(c *pb.ManifestChange) bool {
			return c.GetId() == id && c.GetOp() == pb.ManifestChange_DELETE
		})
	})
}

// tablesAfter returns what is named after all records, and by which of them, and whether each of them
// made only what wasn't there, and took away only what was.
func tablesAfter(records []*pb.ManifestChangeSet) (tables map[uint64]*pb.ManifestChange, by map[uint64]int, wrong error) {
	tables, by = map[uint64]*pb.ManifestChange{}, map[uint64]int{}
	for i, record := range records {
		for _, change := range record.GetChanges() {
			id, removes := change.GetId(), change.GetOp() == pb.ManifestChange_DELETE
			if _, named := tables[id]; named != removes {
				wrong = fmt.Errorf("%w: table %d", errManifest, id)
			}
			if delete(tables, id); !removes {
				tables[id], by[id] = change, i
			}
		}
	}
	return tables, by, wrong
}

// manifestOf encodes a manifest of one record.
func manifestOf(tables map[uint64]*pb.ManifestChange) ([]byte, error) {
	record := new(pb.ManifestChangeSet)
	for _, id := range slices.Sorted(maps.Keys(tables)) {
		record.Changes = append(record.Changes, tables[id])
	}
	content, err := proto.Marshal(record)
	if err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint32([]byte(manifestHead), uint32(len(content)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(content, castagnoli))
	return append(b, content...), nil
}

// proveManifest opens the tables with a manifest that was made anew, and a copy of the logs, in a folder
// beside them, puts back what the journal holds, and checks all: the folder itself is changed only once
// nothing is found to be missing.
func proveManifest(c Config, tables map[uint64]*pb.ManifestChange, manifest []byte) (err error) {
	if err := errors.Join(os.RemoveAll(c.probeDir()), os.Mkdir(c.probeDir(), 0o700)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.probeDir())) }()
	if err := fillProbe(c, tables, manifest); err != nil {
		return err
	}
	opt := engineOptions(c.probeDir(), c.Logger)
	if err := checkTables(opt); err != nil {
		return err
	}
	s := &Store{config: c}
	if s.identity, err = readIdentity(c.identityPath()); err != nil {
		return err
	}
	if s.db, err = openChecked(opt); err != nil {
		return err
	}
	defer func() {
		_, late := c.closeEngine(s.db)
		err = errors.Join(err, late)
	}()
	if err := s.putBackLost(false); err != nil {
		return err
	}
	if err := s.load(false); err != nil {
		return err
	}
	return s.db.View(func(txn *badger.Txn) error {
		src := snapshot{txn}
		if err := ringWhole(src, s.tip); err != nil {
			return err
		}
		if !isWhole(src, s.tip) {
			return fmt.Errorf("%w: the rest isn't whole", ledger.ErrDamaged)
		}
		return nil
	})
}

// fillProbe makes the engine's folder as it would be with the manifest.
func fillProbe(c Config, tables map[uint64]*pb.ManifestChange, manifest []byte) error {
	for id := range tables {
		from, to := filepath.Join(c.dataDir(), tableName(id)), filepath.Join(c.probeDir(), tableName(id))
		// The engine never writes to a table.
		if os.Link(from, to) == nil {
			continue
		}
		if err := copyFile(from, to); err != nil {
			return err
		}
	}
	all, err := os.ReadDir(c.dataDir())
	if err != nil {
		return err
	}
	for _, f := range all {
		if !f.Type().IsRegular() || strings.HasSuffix(f.Name(), tableSuffix) || f.Name() == badger.ManifestFilename {
			continue
		}
		if err := copyFile(filepath.Join(c.dataDir(), f.Name()), filepath.Join(c.probeDir(), f.Name())); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(c.probeDir(), badger.ManifestFilename), manifest, 0o600)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// ringWhole finds all commits that are kept since the baseline, each behind the one before. Open
// looks back less far, which is enough where no table is gone.
func ringWhole(src snapshot, end tip) error {
	base, err := readBaseline(src)
	if err != nil {
		return err
	}
	first := base.Before.Commit + 1
	if end.Commit > commitRing {
		first = max(first, end.Commit-commitRing+1)
	}
	c, err := readCommit(src, first)
	if err != nil {
		return required(err, fmt.Sprintf("commit %d", first))
	}
	last, err := walkCommits(src, c.Tip)
	if err == nil && last != end {
		err = fmt.Errorf("%w: commit %d is missing", ledger.ErrDamaged, last.Commit+1)
	}
	return err
}
