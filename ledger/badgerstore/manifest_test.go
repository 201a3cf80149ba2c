package badgerstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"

	"keep-proxy/ledger"
)

// manifestRecord encodes one record.
func manifestRecord(t *testing.T, changes ...*pb.ManifestChange) []byte {
	t.Helper()
	content, err := proto.Marshal(&pb.ManifestChangeSet{Changes: changes})
	if err != nil {
		t.Fatal(err)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(content, castagnoli))
	return append(b, content...)
}

// lastRecord is where the last record of a manifest begins.
func lastRecord(b []byte) int {
	at, last := len(manifestHead), 0
	for at < len(b) {
		last = at
		at += recordHead + int(binary.BigEndian.Uint32(b[at:]))
	}
	return last
}

func TestAManifestThatAFailedWriteLeftIsMadeAnew(t *testing.T) {
	t.Parallel()
	origin, keys := crashed(t)
	id, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(tablesOf(t, origin)[0]), ".sst"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	flush := manifestRecord(t, &pb.ManifestChange{Id: 998, Op: pb.ManifestChange_CREATE})
	merge := manifestRecord(t, &pb.ManifestChange{Id: 999, Op: pb.ManifestChange_CREATE, Level: 6},
		&pb.ManifestChange{Id: id, Op: pb.ManifestChange_DELETE})
	for _, c := range []struct {
		name string
		do   func(b []byte) []byte
	}{
		{"a table that was removed as the sync failed", func(b []byte) []byte { return append(b, flush...) }},
		{"one with another behind it", func(b []byte) []byte {
			at := lastRecord(b)
			return bytes.Join([][]byte{b[:at], flush, b[at:]}, nil)
		}},
		{"tables that were merged in vain", func(b []byte) []byte { return append(b, merge...) }},
		{"a torn record before the last one", func(b []byte) []byte {
			at := lastRecord(b)
			return bytes.Join([][]byte{b[:at], flush[:len(flush)-2], b[at:]}, nil)
		}},
		{"a torn head before the last one", func(b []byte) []byte {
			at := lastRecord(b)
			return bytes.Join([][]byte{b[:at], flush[:5], b[at:]}, nil)
		}},
		{"a record whose pages were lost before the last one", func(b []byte) []byte {
			at := lastRecord(b)
			return bytes.Join([][]byte{b[:at], make([]byte, len(flush)), b[at:]}, nil)
		}},
		{"torn records at the end", func(b []byte) []byte {
			return bytes.Join([][]byte{b, flush[:len(flush)-1], merge[:len(merge)-1], flush[:3]}, nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := testConfig(copyFolder(t, origin))
			path := filepath.Join(config.dataDir(), badger.ManifestFilename)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			content = c.do(content)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			other := testConfig(copyFolder(t, config.Dir))
			if _, err := Verify(t.Context(), other, nil); err != nil {
				t.Error(err)
			}
			if err := refusesOrKeeps(t, config, keys); err != nil {
				t.Error(err)
			}
			if _, err := Verify(t.Context(), config, nil); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(config.probeDir()); !errors.Is(err, os.ErrNotExist) {
				t.Error("the folder in which it was tried is left")
			}
		})
	}
}

// What is missing is never taken for what a failed write left.
func TestAManifestIsNotMadeAnewWithoutWhatItHeld(t *testing.T) {
	t.Parallel()
	origin, _ := crashed(t)
	path := filepath.Join(origin, "data", badger.ManifestFilename)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := len(manifestHead); at < len(content); {
		end := at + recordHead + int(binary.BigEndian.Uint32(content[at:]))
		if end == at+recordHead {
			at = end
			continue // It holds nothing.
		}
		damaged := bytes.Clone(content)
		damaged[end-1] ^= 1
		config := testConfig(copyFolder(t, origin))
		path := filepath.Join(config.dataDir(), badger.ManifestFilename)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		before := sizes(t, config.Dir)
		if s, err := Open(context.Background(), config); !errors.Is(err, ledger.ErrDamaged) {
			if err == nil {
				_ = s.Close()
			}
			t.Errorf("without the record at byte %d: %v", at, err)
		}
		if after := sizes(t, config.Dir); len(after) != len(before) {
			t.Errorf("the folder was changed:\n%v\n%v", before, after)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, damaged) {
			t.Errorf("the manifest was changed, %v", err)
		}
		at = end
	}
}

func TestWholeTables(t *testing.T) {
	t.Parallel()
	create := func(id uint64) *pb.ManifestChange {
		return &pb.ManifestChange{Id: id, Op: pb.ManifestChange_CREATE}
	}
	remove := func(id uint64) *pb.ManifestChange {
		return &pb.ManifestChange{Id: id, Op: pb.ManifestChange_DELETE}
	}
	type record = []*pb.ManifestChange
	for _, c := range []struct {
		name    string
		records []record
		there   []uint64
		want    []uint64
	}{
		{"all there", []record{{create(1)}, {create(2), remove(1)}}, []uint64{2}, []uint64{2}},
		{"merged in vain, then again", []record{{create(1)}, {create(2), remove(1)}, {create(3), remove(1)}}, []uint64{3}, []uint64{3}},
		{"of what was merged a part is gone", []record{{create(1)}, {create(2), create(3), remove(1)}}, []uint64{2}, []uint64{}},
		{"of what was merged, and merged on, a part is gone", []record{{create(1)}, {create(2), create(3), remove(1)}, {create(4), remove(3)}}, []uint64{2}, []uint64{}},
		{"what was merged is gone beside others", []record{{create(9)}, {create(1)}, {create(2), remove(1)}}, []uint64{9}, []uint64{}},
		{"a table that was written in vain", []record{{create(9)}, {create(1)}}, []uint64{9}, []uint64{9}},
		{"what was merged has no origin", []record{{create(2)}, {create(3), remove(1)}}, []uint64{2, 3}, []uint64{}},
		{"a number twice", []record{{create(1)}, {create(1)}}, []uint64{1}, []uint64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := []byte(manifestHead)
			for _, r := range c.records {
				b = append(b, manifestRecord(t, r...)...)
			}
			tables, err := wholeTables(b, func(id uint64) (bool, error) { return bytes.Contains(ids64(c.there), ids64([]uint64{id})), nil })
			if refused := c.want != nil && len(c.want) == 0; refused != (err != nil) {
				t.Fatalf("got %v, %v", tables, err)
			}
			for _, id := range c.want {
				if tables[id] == nil {
					t.Errorf("table %d is not named", id)
				}
			}
			if len(tables) != len(c.want) {
				t.Errorf("got %v, want %v", tables, c.want)
			}
		})
	}
}

func ids64(ids []uint64) (b []byte) {
	for _, id := range ids {
		b = binary.BigEndian.AppendUint64(b, id)
	}
	return b
}

func TestWhatTheEngineOnlyLogsIsTold(t *testing.T) {
	t.Parallel()
	var told []error
	l := engineLog{log: zerolog.Nop(), failed: func(err error) { told = append(told, err) }}
	l.Warningf("while merging: %v", errors.New("no space"))
	l.Warningf("MANIFEST delete: table %d has already been removed", 1)
	if len(told) > 0 {
		t.Errorf("told %v", told)
	}
	l.Warningf("while merging: %v", &os.PathError{Op: "sync", Path: "/x/MANIFEST", Err: os.ErrInvalid})
	l.Errorf("error flushing memtable: %v, retrying", os.ErrInvalid)
	if len(told) != 2 {
		t.Errorf("told %v", told)
	}
}
