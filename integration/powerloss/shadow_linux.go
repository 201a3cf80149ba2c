package powerloss

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Shadow keeps what is durable of the files below a folder. It is for one caller at a time.
type Shadow struct {
	// Dir is where it is kept.
	Dir string
}

// entry is what a name in a folder stands for.
type entry struct {
	ID     string `json:"id"`
	Folder bool   `json:"folder,omitempty"`
}

// Sync keeps the content of a file. One that was removed meanwhile has no name to keep
// it for.
func (s Shadow) Sync(path string) error {
	id, err := fileID(path)
	if err == nil {
		err = copyData(path, filepath.Join(s.Dir, id))
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Name keeps a file's own name in its folder, and no other one. The usual file systems of Linux
// make that name durable with the content.
func (s Shadow) Name(path string) error {
	dir, base := filepath.Split(path)
	id, err := fileID(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	folder, err := fileID(dir)
	if err != nil {
		return err
	}
	names, err := s.names(folder)
	if err != nil {
		return err
	}
	maps.DeleteFunc(names, func(_ string, e entry) bool { return e.ID == id })
	names[base] = entry{ID: id}
	return s.keep(folder, names)
}

// SyncDir keeps the names in a folder.
func (s Shadow) SyncDir(dir string) error {
	id, err := fileID(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	return s.keep(id, names)
}

// Keep takes all below a folder for durable as it is.
func (s Shadow) Keep(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return s.SyncDir(path)
		case e.Type().IsRegular():
			return s.Sync(path)
		}
		return nil
	})
}

// names are those of a folder that are durable.
func (s Shadow) names(folder string) (map[string]entry, error) {
	names := map[string]entry{}
	text, err := os.ReadFile(filepath.Join(s.Dir, "names-"+folder))
	if errors.Is(err, os.ErrNotExist) {
		return names, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &names)
	}
	return names, err
}

func (s Shadow) keep(folder string, names map[string]entry) error {
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	path := filepath.Join(s.Dir, "names-"+folder)
	return errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path))
}

// namesIn are the files and folders in a folder.
func namesIn(dir string) (map[string]entry, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := map[string]entry{}
	for _, e := range entries {
		if !e.Type().IsRegular() && !e.IsDir() {
			continue
		}
		id, err := fileID(filepath.Join(dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // Removed meanwhile.
		}
		if err != nil {
			return nil, err
		}
		names[e.Name()] = entry{ID: id, Folder: e.IsDir()}
	}
	return names, nil
}

// fileID tells a file from every other, whatever its name. A later file with the same inode
// differs, too.
func fileID(path string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", &os.PathError{Op: "statx", Path: path, Err: err}
	}
	return fmt.Sprintf("file-%d-%d-%d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}

// copyData copies a file that may be mostly holes.
func copyData(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // It was only read.
	_ = os.Remove(to)                 // What is longer now, or a hole, isn't left from before.
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	st, err := in.Stat()
	if err == nil {
		err = out.Truncate(st.Size())
	}
	for at := int64(0); err == nil && at < st.Size(); {
		var begin, end int64
		begin, err = unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			err = nil
			break
		}
		if err == nil {
			end, err = unix.Seek(int(in.Fd()), begin, unix.SEEK_HOLE)
		}
		if err == nil {
			_, err = io.Copy(io.NewOffsetWriter(out, begin), io.NewSectionReader(in, begin, end-begin))
		}
		at = end
	}
	return errors.Join(err, out.Close())
}
