package badgerstore

import (
	"cmp"
	"errors"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
)

// Config says where the ledger is and what the store may ask of its surroundings.
type Config struct {
	// Dir is the ledger's folder. It is made, with mode 0700, at a first start.
	Dir string
	// ID is the id that the ledger must have; "" takes any. With an ID an absent
	// ledger is ledger.ErrMissing, never a first start.
	ID string
	// HighWaterFile is the path of the witness, outside of Dir; "" for none. It finds a restored older copy
	// of Dir.
	HighWaterFile string
	// Restored says that Dir is an older copy that was put back on purpose. Then it isn't refused for ending before
	// what was acknowledged. The caller must open a gap (ledger.Ledger.RestoredBehind, by what Store.Behind says),
	// then call Store.GapNoted.
	Restored bool
	// MinFree is the free disk space, in bytes, below which new mutations are
	// refused. 0 turns the guard off.
	MinFree int64
	// Version is the program's version. It is written into a new ledger, so that
	// an older program can name the version to use.
	Version string
	// Now stamps the process and the commits; required.
	Now func() ledger.Stamp
	// NewID makes ledger and process ids, [a-z0-9]; required.
	NewID func() string
	// Logger gets Badger's warnings and the store's own; the zero value drops them.
	Logger zerolog.Logger

	// unmerged gives every command a commit of its own, for comparison in benchmarks.
	unmerged bool
	// synced is told the path of each file that was synced for commits: the log and the witness. Its error counts
	// as that of the sync.
	synced func(path string) error
	// ring is logSize, and memtable is badgerMemtable, where they are not 0.
	ring, memtable int64
	// stall is stallAfter, and calm restAfter, where they are not 0.
	stall, calm time.Duration
	// statfs measures free space; nil asks the operating system.
	statfs func(dir string) (uint64, error)
}

// Limits, in bytes unless said otherwise.
const (
	// badgerMemtable is the size of a memtable of Badger's.
	badgerMemtable = 12 << 20
	// fullBatch and fullCommands end the merging of further commands.
	fullBatch    = 384 << 10
	fullCommands = 1024
	// maxCommand is what one command may change: with a batch that isn't full it fits into a frame.
	maxCommand = 4 << 20
	// partSize is the longest single value; a longer record is split.
	partSize = 512 << 10
	// smallBody is the longest body that is sooner written again than looked for.
	smallBody = 4 << 10
	// blockSize is how long the blocks of Badger's tables are. A body that is kept in Badger fits into one. For a
	// longer value Badger takes three times its size while it builds the block.
	blockSize = 64 << 10
	// tableSize is the size of Badger's tables below the newest level, the same in each level. Building one takes a
	// buffer of twice as much, and always 3 MiB for its index. Several are built at a time.
	tableSize = 2 << 20
	// baseLevelSize is how large the level may be into which Badger merges what it flushed. That comes as five of
	// its memtables at once, so much smaller levels only copy it once more.
	baseLevelSize = 64 << 20
	// entryOverhead is what an entry costs a memtable beyond its key and value.
	entryOverhead = 128
)

// noteDelay is the longest time that a Note waits for company before its sync.
const noteDelay = 20 * time.Millisecond

const (
	// restAfter is how long the committer waits for a command before it folds what there is.
	restAfter = 3 * time.Second
)

func (c Config) validate() error {
	switch {
	case c.Dir == "":
		return errors.New("ledger: no folder given")
	case c.Now == nil:
		return errors.New("ledger: no clock given")
	case c.NewID == nil:
		return errors.New("ledger: no source of ids given")
	case c.MinFree < 0:
		return errors.New("ledger: negative minimum of free space")
	}
	return nil
}

// ringSize is the length of the log in a new ledger, in bytes.
func (c Config) ringSize() int64 { return cmp.Or(c.ring, logSize) }

// restAfter is how long the committer waits for a command before it rests.
func (c Config) restAfter() time.Duration { return cmp.Or(c.calm, restAfter) }

// maxBatch is what one of Badger's transactions may hold, in bytes. Its limit is 15 % of a memtable, whose size is
// badgerMemtable for 0; the rest is a margin for its own bookkeeping.
func maxBatch(memtable int64) int { return int(cmp.Or(memtable, badgerMemtable)*15/100 - 128<<10) }

func (c Config) dataDir() string { return filepath.Join(c.Dir, "data") }
