package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"keep-proxy/ledger"
)

// checkFooter verifies the end of a Badger table: index, length of the index,
// checksum of the index (a protocol buffer), length of the checksum. Blocks are
// verified by Badger itself, which trusts these places.
func checkFooter(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: table %s is missing", ledger.ErrDamaged, path)
	}
	if err != nil {
		return fmt.Errorf("ledger table: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("ledger table: %w", err)
	}
	if err := verifyFooter(f, st.Size()); err != nil {
		return fmt.Errorf("%w: table %s: %w", ledger.ErrDamaged, path, err)
	}
	return nil
}

var errFooter = errors.New("its end is cut or overwritten")

func verifyFooter(f io.ReaderAt, size int64) error {
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
		return err
	}
	sum, err := take(n)
	if err != nil {
		return err
	}
	if n, err = takeLength(); err != nil {
		return err
	}
	index, err := take(n)
	if err != nil {
		return err
	}
	return verifyIndex(index, sum)
}

// sumField is the tag of the checksum's second field; the first, the algorithm, is
// absent for CRC-32C, the only one that this store's tables use.
const sumField = 0x10

func verifyIndex(index, sum []byte) error {
	want, n := binary.Uvarint(sum[1:])
	if sum[0] != sumField || n != len(sum)-1 {
		return errFooter
	}
	if uint64(crc32.Checksum(index, castagnoli)) != want {
		return errors.New("the index doesn't match its checksum")
	}
	return nil
}
