package operators

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/superstep-ml/superstep/shared"
)

// The outputs of one run become visible by one rename each, all of them or none:
//
//  1. Each is complete in its staging directory, and its seal beside it says so and where
//     the journal of the set will be. All of that is durable before
//  2. the journal is written, into the staging directory of the first: from here on the
//     set is to be finished.
//  3. Each takes its place.
//  4. The staging directories are removed, that with the journal last.
//
// Where a step of 3 fails, the journal is rewritten to say that the set is to be undone
// before anything is.
//
// Whoever begins an output and finds a seal there looks for the journal. There is none,
// or it is of another set: then the set was not decided, or all is done, and what is in
// the staging directory goes. There is one: then the whole set is finished, or undone,
// under the locks of all that is left of it, before anything else.
//
// A set that somebody else decides upon (task.Completion.Recorded) has seals, but no
// journal; see output_resume.go.

const (
	sealFile    = "seal"
	journalFile = "journal"
)

// journal is what is decided of a set.
type journal struct {
	Set  string   `msgpack:"set"`
	Undo bool     `msgpack:"undo"`
	Dirs []string `msgpack:"dirs"` // the staging directories, that of the journal first
}

var (
	sealCodec    = shared.Msgpack[seal]()
	journalCodec = shared.Msgpack[journal]()
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

// writeRecord writes a seal, receipt or journal, which is there whole or not at all: its
// bytes with their CRC-32C before them. It is made under another name in dir, its own or
// one beside it; that it is there at path lasts when the directory of path is synced.
func writeRecord[T any](d outputDisk, codec shared.Codec[T], dir, path string, v T) error {
	data, err := codec.Append(make([]byte, 4), v)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(data, crc32.Checksum(data[4:], castagnoli))
	made := filepath.Join(dir, filepath.Base(path)+".new")
	file, err := d.Create(made)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = d.Sync(file)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return d.Rename(made, path)
}

// readRecord reads what writeRecord has written, the zero value where there is none.
func readRecord[T any](codec shared.Codec[T], path string) (v T, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	if len(data) >= 4 && binary.LittleEndian.Uint32(data) == crc32.Checksum(data[4:], castagnoli) {
		v, err = codec.Decode(data[4:])
	} else {
		err = errors.New("its checksum is wrong")
	}
	if err != nil {
		return v, fmt.Errorf("%s, by which an earlier run that was cut off can be finished or undone, is damaged (%w): look whether its outputs are as you want them, and remove %s then",
			path, err, filepath.Dir(path))
	}
	return v, nil
}

// readJournal returns the journal of a set, and whether there is one.
func readJournal(dir, set string) (journal, bool, error) {
	if there, err := exists(filepath.Dir(dir)); err != nil || !there {
		return journal{}, false, errors.Join(err, fmt.Errorf("an earlier run was cut off while it made several outputs visible, and %s, where it kept whether they are to be, is not there: "+
			"bring that directory back", filepath.Dir(dir)))
	}
	j, err := readRecord(journalCodec, filepath.Join(dir, journalFile))
	if err != nil || j.Set != set || len(j.Dirs) == 0 {
		return journal{}, false, err
	}
	return j, true, nil
}

// decide is step 2, for the set of the given staging directories.
func decide(d outputDisk, set string, dirs []string) error {
	synced := map[string]bool{}
	for _, dir := range dirs {
		for _, dir := range []string{dir, filepath.Dir(dir)} {
			if synced[dir] {
				continue
			}
			synced[dir] = true
			if err := d.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	return writeJournal(d, journal{Set: set, Dirs: dirs})
}

func writeJournal(d outputDisk, j journal) error {
	dir := j.Dirs[0]
	if err := writeRecord(d, journalCodec, dir, filepath.Join(dir, journalFile), j); err != nil {
		return err
	}
	return d.SyncDir(dir)
}

// endSet finishes or undoes the set of a run that was cut off, and removes what is left
// of it. It reports whether it was finished.
func endSet(d outputDisk, dir, set string) (finished bool, err error) {
	keeper, err := holdStaging(d, dir)
	if err != nil {
		return false, err
	}
	defer func() {
		if keeper != nil {
			err = errors.Join(err, keeper.leave())
		}
	}()
	j, there, err := readJournal(dir, set)
	if err != nil || !there {
		return false, err // somebody else has ended it meanwhile
	}
	var left []*staging // of the set, that of the journal not among them
	defer func() {
		for _, s := range left {
			err = errors.Join(err, s.leave())
		}
	}()
	var all []*placement
	for i, dir := range j.Dirs {
		sealed, err := readRecord(sealCodec, filepath.Join(dir, sealFile))
		if err != nil {
			return false, err
		}
		if sealed.Set != set { // it is done with
			if i > 0 {
				if err := sweepStaging(d, dir); err != nil {
					return false, err
				}
			}
			continue
		}
		all = append(all, &placement{seal: sealed, stage: dir, disk: d})
		if i > 0 {
			s, err := holdStaging(d, dir)
			if err != nil {
				return false, err
			}
			left = append(left, s)
		}
	}
	if !j.Undo {
		for _, p := range all {
			if err = p.place(); err != nil {
				break
			}
		}
		finished = err == nil
		if err != nil {
			j.Undo = true
			if more := writeJournal(d, j); more != nil {
				return false, errors.Join(err, more)
			}
		}
	}
	if j.Undo {
		for _, p := range all {
			if back := p.takeBack(); back != nil {
				return false, errors.Join(err, back)
			}
		}
	}
	for len(left) > 0 {
		s := left[len(left)-1]
		left = left[:len(left)-1]
		if err := s.remove(); err != nil {
			return finished, err
		}
	}
	k := keeper
	keeper = nil
	return finished, k.remove()
}

// sweepStaging removes what is left when all in a staging directory is: it, being empty,
// and its lock.
func sweepStaging(d outputDisk, dir string) error {
	lock, err := lockFile(lockPath(dir))
	if err != nil {
		if errors.Is(err, errLocked) {
			err = nil // somebody else has it
		}
		return err
	}
	s := &staging{dir: dir, lock: lock, disk: d}
	_ = d.Remove(dir) // which fails where it is not empty
	return s.leave()
}

// undo is called before anything of a decided set is undone.
func undo(d outputDisk, dir, set string) error {
	j, there, err := readJournal(dir, set)
	if err != nil || !there || j.Undo {
		return err
	}
	j.Undo = true
	return writeJournal(d, j)
}

// waitsFor reports whether outputs of a set are left that the journal says what to do with.
func waitsFor(dir, set string) bool {
	j, there, err := readJournal(dir, set)
	return err != nil || there && slices.ContainsFunc(j.Dirs[1:], func(dir string) bool {
		sealed, err := readRecord(sealCodec, filepath.Join(dir, sealFile))
		return err != nil || sealed.Set == set
	})
}
