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
	"runtime"
	"slices"
	"sync"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"

	"keep-proxy/ledger"
)

// checkTables verifies the tables that the manifest names, whole, before Badger looks at them. Badger would begin a
// new WAL beside a damaged table before it refuses that. The next start would then find another reason. On some
// damage it panics in a goroutine of its own. Nothing is changed here.
func checkTables(opt badger.Options) error {
	tables, err := listedTables(opt)
	if err != nil {
		return err
	}
	names := make(chan string)
	var workers sync.WaitGroup
	var mu sync.Mutex
	found := map[string]error{}
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for name := range names {
				if err := checkTable(filepath.Join(opt.Dir, name)); err != nil {
					mu.Lock()
					found[name] = err
					mu.Unlock()
				}
			}
		})
	}
	for name := range tables {
		names <- name
	}
	close(names)
	workers.Wait()
	// The same one is named at each start.
	for _, name := range slices.Sorted(maps.Keys(found)) {
		return found[name]
	}
	return nil
}

// checkTable verifies a table. It ends with the index, its length, its checksum (a protocol buffer), and the length
// of that. Before lie blocks that end likewise.
func checkTable(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: table %s is missing", ledger.ErrDamaged, path)
	}
	if err != nil {
		return tableError(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	st, err := f.Stat()
	if err != nil {
		return tableError(err)
	}
	index, err := readIndex(f, st.Size())
	if err == nil {
		err = checkBlocks(f, index)
	}
	switch pathError := (*os.PathError)(nil); {
	case err == nil:
		return nil
	case errors.As(err, &pathError):
		return tableError(err)
	}
	return fmt.Errorf("%w: table %s: %w", ledger.ErrDamaged, path, err)
}

// tableError is that of a disk, which may pass.
func tableError(err error) error {
	return fmt.Errorf("%w: ledger table: %w", ledger.ErrUnavailable, err)
}

// checkBlocks holds each block that the index names against its checksum.
func checkBlocks(f io.ReaderAt, index []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its index can't be read: %v", p)
		}
	}()
	table := fb.GetRootAsTableIndex(index, 0)
	buffer := make([]byte, 2*blockSize)
	for i := range table.OffsetsLength() {
		var at fb.BlockOffset
		if !table.Offsets(&at, i) {
			return errFooter
		}
		n := int(at.Len())
		if n > maxBlock {
			return fmt.Errorf("block %d has %d bytes", i, n)
		}
		buffer = slices.Grow(buffer[:0], n)[:n]
		if _, err := f.ReadAt(buffer, int64(at.Offset())); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		if err := checkBlock(buffer); err != nil {
			return fmt.Errorf("block %d at byte %d: %w", i, at.Offset(), err)
		}
	}
	return nil
}

// maxBlock is longer than any block: the longest value and what surrounds it.
const maxBlock = 4 << 20

// checkBlock verifies content, checksum, length of the checksum.
func checkBlock(block []byte) error {
	end := len(block) - 4
	if end < 0 {
		return errFooter
	}
	sum := end - int(binary.BigEndian.Uint32(block[end:]))
	if sum < 0 || sum >= end {
		return errFooter
	}
	return verifySum(block[:sum], block[sum:end])
}

var errFooter = errors.New("a part of it is cut or overwritten")

// readIndex reads the index from the table's end and verifies it.
func readIndex(f io.ReaderAt, size int64) ([]byte, error) {
	end := size
	take := func(n int64) ([]byte, error) {
		if n <= 0 || n > end {
			return nil, errFooter
		}
		b := make([]byte, n)
		_, err := f.ReadAt(b, end-n)
		end -= n
		return b, err
	}
	takeLength := func() (int64, error) {
		b, err := take(4)
		if err != nil {
			return 0, err
		}
		return int64(binary.BigEndian.Uint32(b)), nil
	}
	n, err := takeLength()
	if err != nil {
		return nil, err
	}
	sum, err := take(n)
	if err != nil {
		return nil, err
	}
	if n, err = takeLength(); err != nil {
		return nil, err
	}
	index, err := take(n)
	if err != nil {
		return nil, err
	}
	return index, verifySum(index, sum)
}

// sumField is the tag of the checksum's second field. The first, the algorithm, is absent for CRC-32C: this store's
// tables use only that.
const sumField = 0x10

// verifySum holds content against its checksum.
func verifySum(content, sum []byte) error {
	want, n := binary.Uvarint(sum[1:])
	if sum[0] != sumField || n != len(sum)-1 {
		return errFooter
	}
	if uint64(crc32.Checksum(content, castagnoli)) != want {
		return errors.New("the content doesn't match its checksum")
	}
	return nil
}

// listedTables reads the manifest and returns the file names of its tables.
func listedTables(opt badger.Options) (map[string]bool, error) {
	f, err := os.Open(filepath.Join(opt.Dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: the manifest is missing", ledger.ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("ledger manifest: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	manifest, _, err := badger.ReplayManifestFile(f, 0, opt)
	if err != nil {
		return nil, fmt.Errorf("%w: the manifest: %w", ledger.ErrDamaged, err)
	}
	named := make(map[string]bool, len(manifest.Tables))
	for id := range manifest.Tables {
		named[tableName(id)] = true
	}
	return named, nil
}

// tableSuffix ends the name of a table.
const tableSuffix = ".sst"

func tableName(id uint64) string { return fmt.Sprintf("%06d%s", id, tableSuffix) }
