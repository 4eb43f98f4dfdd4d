package operators

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/shared"
)

// The outputs of one run become visible by one rename each, all of them or none:
//
//  1. Each output is complete in its staging directory. A seal beside it says so, and where the
//     journal of the set will be. All of that is durable before
//  2. the journal is written, into the staging directory of the first output: from here on the
//     set is to be finished.
//  3. Each output takes its place.
//  4. The staging directories are removed, the one with the journal last.
//
// If step 3 fails, the journal is first rewritten to say that the set is to be undone. The
// journal has a copy of every seal. It gets another name before step 4 begins. Until then, if
// an output is neither in its staging directory nor in the place that its seal names, something
// else has removed it, and the set is to be undone.
//
// A run that begins an output and finds a seal looks for the journal. If there is none, or it
// is of another set, then the set was not decided, or all is done. The staging directory is
// then removed, unless checkUndecided finds signs of a lost journal. If there is one, the whole set
// is first finished or undone, under the locks of all staging directories that remain; see
// output_recovery.go.
//
// A set whose commit the caller has recorded (task.Completion.Recorded) has seals, but no
// journal; see output_resume.go.

const (
	sealFile    = "seal"
	journalFile = "journal"
	endedFile   = "ended" // name of the journal when only step 4 is left
)

// journal is the decision about a set.
type journal struct {
	Set     string   `msgpack:"set"`
	Undo    bool     `msgpack:"undo"`
	Members []member `msgpack:"members"` // the one with the journal first

	ended bool // only step 4 is left
}

// member is an output of a set.
type member struct {
	Dir  string `msgpack:"dir"` // its staging directory
	Seal seal   `msgpack:"seal"`
}

var (
	sealCodec    = shared.Msgpack[seal]()
	journalCodec = shared.Msgpack[journal]()
)

// writeRecord writes a seal, receipt or journal atomically: its bytes, preceded by their
// CRC-32C. It is written under another name in dir, and then renamed to path. The rename is
// durable once the directory of path is synced.
func writeRecord[T any](d outputDisk, codec shared.Codec[T], dir, path string, v T) error {
	data, err := codec.Append(make([]byte, 4), v)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(data, disk.Checksum(0, data[4:]))
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

// readRecord reads what writeRecord has written. It returns the zero value if there is none.
func readRecord[T any](codec shared.Codec[T], path string) (v T, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	if len(data) >= 4 && binary.LittleEndian.Uint32(data) == disk.Checksum(0, data[4:]) {
		v, err = codec.Decode(data[4:])
	} else {
		err = errors.New("its checksum is wrong")
	}
	if err != nil {
		return v, fmt.Errorf("%s, by which an earlier run that was interrupted can be finished or undone, is damaged (%w): look whether its outputs are as you want them, and remove %s then",
			path, err, filepath.Dir(path))
	}
	return v, nil
}

// readJournal returns the journal of a set, and whether there is one.
func readJournal(dir, set string) (journal, bool, error) {
	if there, err := exists(filepath.Dir(dir)); err != nil || !there {
		return journal{}, false, errors.Join(err, fmt.Errorf("an earlier run was interrupted while it made several outputs visible, and %s, where it kept whether they are to be, is not there: "+
			"bring that directory back, or, if it is gone for good, look whether its outputs are as you want them, and remove the hidden directory of this one", filepath.Dir(dir)))
	}
	j, err := findJournal(dir)
	if err != nil || j.Set != set {
		return journal{}, false, err
	}
	return j, j.Set != "", nil
}

// findJournal returns the journal in a staging directory, of any set, or the zero value if
// there is none.
func findJournal(dir string) (journal, error) {
	j, err := readRecord(journalCodec, filepath.Join(dir, journalFile))
	if err == nil && j.Set == "" {
		j, err = readRecord(journalCodec, filepath.Join(dir, endedFile))
		j.ended = true
	}
	if err != nil || len(j.Members) == 0 || j.Members[0].Dir != dir {
		return journal{}, err
	}
	return j, nil
}

// journalOf returns the journal that decides about a staging directory with a given seal, or
// the zero value if there is none.
func journalOf(dir string, sealed seal) (journal, error) {
	if sealed.Set == "" {
		return findJournal(dir) // only the journal may be left, or the seal may be lost
	}
	j, _, err := readJournal(sealed.Journal, sealed.Set)
	return j, err
}

// decide is step 2, for the set of the given staging directories.
func decide(d outputDisk, set string, dirs []string) error {
	j := journal{Set: set}
	synced := map[string]bool{}
	for _, dir := range dirs {
		sealed, err := readRecord(sealCodec, filepath.Join(dir, sealFile))
		if err == nil && sealed.Set != set {
			err = fmt.Errorf("%s, which describes an output, no longer exists; nothing has become visible: look for what removed it, and run the job again", filepath.Join(dir, sealFile))
		}
		if err != nil {
			return err
		}
		j.Members = append(j.Members, member{dir, sealed})
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
	return writeJournal(d, j)
}

func writeJournal(d outputDisk, j journal) error {
	dir := j.Members[0].Dir
	if err := writeRecord(d, journalCodec, dir, filepath.Join(dir, journalFile), j); err != nil {
		return err
	}
	return d.SyncDir(dir)
}

// endJournal records that only step 4 is left for a set.
func endJournal(d outputDisk, dir string) error {
	err := d.Rename(filepath.Join(dir, journalFile), filepath.Join(dir, endedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was recorded before
	}
	return err
}

// undo records that a decided set is to be undone. It is called before anything is undone.
func undo(d outputDisk, dir, set string) error {
	j, there, err := readJournal(dir, set)
	if err != nil || !there || j.Undo {
		return err
	}
	j.Undo = true
	return writeJournal(d, j)
}

// waitsFor reports whether a journal still decides about outputs of a set.
func waitsFor(dir, set string) bool {
	j, there, err := readJournal(dir, set)
	return err != nil || there && slices.ContainsFunc(j.Members[1:], func(m member) bool {
		sealed, err := readRecord(sealCodec, filepath.Join(m.Dir, sealFile))
		return err != nil || sealed.Set == set
	})
}

// isNoted reports whether a staging directory has a journal.
func isNoted(dir string) bool {
	j, err := findJournal(dir)
	return err != nil || j.Set != ""
}
