package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/zeebo/xxh3"
)

// fileState describes a file or directory, so that a change can be detected. It does not
// contain the path.
type fileState struct {
	There bool        `msgpack:"there"`
	Type  fs.FileMode `msgpack:"type"`
	ID    uint64      `msgpack:"id"`
	Size  int64       `msgpack:"size"`  // of a file: number of bytes; of a directory: number of entries
	Time  int64       `msgpack:"time"`  // of a file: time of its last modification, in ns
	Names uint64      `msgpack:"names"` // of a directory: a hash of its entries
}

// fileStateAt returns the state of the file or directory at path. It does not read the content
// of files.
func fileStateAt(path string) (fileState, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileState{}, nil
	}
	if err != nil {
		return fileState{}, err
	}
	s := fileState{There: true, Type: info.Mode().Type(), ID: fileID(info)}
	if !info.IsDir() {
		s.Size, s.Time = info.Size(), info.ModTime().UnixNano()
		return s, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fileState{}, err
	}
	if len(entries) == 0 {
		s.ID = 0 // so that the states of all empty directories are equal
	}
	names := xxh3.New()
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return fileState{}, err
		}
		fmt.Fprintf(names, "%q %v %d %d %d\n", e.Name(), info.Mode().Type(), fileID(info), info.Size(), info.ModTime().UnixNano())
	}
	s.Size, s.Names = int64(len(entries)), names.Sum64()
	return s, nil
}

// isEmptyDir reports whether s is the state of an empty directory.
func (s fileState) isEmptyDir() bool { return s.There && s.Type == fs.ModeDir && s.Size == 0 }

// takeBack undoes as much of place as was done: it moves the old output back to the target, and
// the complete output back to the staging directory. If something else has replaced or changed
// the complete output since place, takeBack does not move what is at the target. If something
// else has removed the complete output, the target stays empty. If the old output cannot be
// moved back, it is kept beside the target. left describes all differences from the state
// before place.
func (p *placement) takeBack() (left, err error) {
	at, _, err := p.where()
	if err != nil {
		return nil, err
	}
	ours := false
	if at == inPlace {
		info, err := os.Lstat(p.Target)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		// If another program has written a file with the same bytes to the target, the file
		// must not be removed.
		ours = err == nil && (p.ID == 0 || fileID(info) == p.ID)
	}
	if ours {
		left, err = p.undoMove()
	} else {
		left, err = p.restoreOrKeepOld()
	}
	if err == nil && !p.Replace && p.Before.isEmptyDir() {
		if there, _ := exists(p.Target); !there {
			err = p.disk.Mkdir(p.Target)
		}
	}
	if err != nil {
		return left, err
	}
	return left, p.disk.SyncDir(filepath.Dir(p.Target))
}

// undoMove undoes move. The output must be at its target.
func (p *placement) undoMove() (left, err error) {
	was, err := p.replaced()
	switch {
	case err != nil:
		return nil, err
	case was == p.from():
		return nil, p.disk.Exchange(was, p.Target)
	case was == "" && p.Replace && p.Before.There:
		return fmt.Errorf("%s stays as that run made it, as what it replaced is not in %s any more", p.Target, p.stage), nil
	case was != "" && p.disk.Link(p.Target, p.from()) == nil:
		return nil, p.disk.Rename(was, p.Target)
	}
	if err := p.disk.Rename(p.Target, p.from()); err != nil {
		return nil, err
	}
	return p.restoreOrKeepOld()
}

// replaced returns the path of the old output: the path to which it was moved or exchanged, or
// the path of the hard link to an old file that is no longer at the target. It returns "" if
// there is none.
func (p *placement) replaced() (string, error) {
	info, err := os.Lstat(p.old())
	if err == nil {
		if stands, err := os.Lstat(p.Target); err == nil && os.SameFile(info, stands) {
			return "", nil // the old file is still at the target, besides its hard link
		}
		return p.old(), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	info, err = os.Lstat(p.from())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || !p.Replace || p.ID == 0 || fileID(info) == p.ID {
		return "", err
	}
	return p.from(), nil
}

// restoreOld moves the old output back to the target. If something else is at the target, it
// does nothing and returns the path of the old output.
func (p *placement) restoreOld() (kept string, err error) {
	was, err := p.replaced()
	if err != nil || was == "" {
		return "", err
	}
	stands, err := os.Lstat(p.Target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err = p.disk.RenameNew(was, p.Target); errors.Is(err, fs.ErrExist) {
			return was, nil
		}
		return "", err
	case err != nil:
		return "", err
	}
	// An interrupted undoMove can leave the complete output with two hard links, one of them at
	// the target.
	if complete, err := os.Lstat(p.from()); err == nil && was != p.from() && os.SameFile(complete, stands) {
		return "", p.disk.Rename(was, p.Target)
	}
	return was, nil
}

// restore moves the old output back to the target, so that replace can start again.
func (p *placement) restore() error {
	kept, err := p.restoreOld()
	if err == nil && kept != "" {
		err = p.taken(errChanged)
	}
	return err
}

// restoreOrKeepOld moves the old output back to the target, or to a path beside it if something
// else is at the target.
func (p *placement) restoreOrKeepOld() (left, err error) {
	was, err := p.restoreOld()
	if err != nil || was == "" {
		return nil, err
	}
	for n := 1; ; n++ {
		kind := "kept"
		if n > 1 {
			kind += strconv.Itoa(n)
		}
		kept := siblingPath(p.stage, kind)
		err := p.disk.RenameNew(was, kept)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return fmt.Errorf("something else has changed or replaced %s since, and it is left as it is; what stood there before that run is kept as %s: move it to where you want it, or remove it", p.Target, kept), nil
	}
}
