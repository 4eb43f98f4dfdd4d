package operators

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/shared"
)

// The outputs of one run are a set: either all of them are moved to their targets, by one
// rename each, or none. The steps of a commit are:
//
//  1. Each output is completed in its staging directory. A seal beside it records that the
//     output is complete, and which directory will have the journal of the set. The output and
//     the seal are made durable.
//  2. The journal is written into the staging directory of the first output. It records that
//     the set must be finished.
//  3. Each output is moved to its target.
//  4. The staging directories are removed; the directory with the journal is removed last.
//
// If step 3 fails, the journal is rewritten to record that the set must be undone, and then the
// outputs are taken back. The journal has a copy of every seal. The journal is renamed before
// step 4 begins. If an output is found, before this renaming, neither in its staging directory
// nor at the target that its seal names, then something else has removed it, and the set must
// be undone.
//
// A run that begins an output and finds a seal looks for the journal. If there is no journal,
// or only the journal of another set, then either step 2 was not reached or step 4 is complete.
// The staging directory is then removed, unless the function checkUndecided finds that the
// journal has been lost. If there is a journal, the run first finishes or undoes the whole set,
// while it holds the locks of all staging directories that still exist; see output_recovery.go.
//
// A set whose commit the caller has recorded (task.Completion.Recorded) has seals, but no
// journal; see output_resume.go.

const (
	sealFile    = "seal"
	journalFile = "journal"
	endedFile   = "ended" // new name of the journal before step 4
)

// journal records whether a set must be finished or undone.
type journal struct {
	Set     string   `msgpack:"set"`
	Undo    bool     `msgpack:"undo"`
	Members []member `msgpack:"members"` // the staging directory of the first member has the journal

	ended bool // only step 4 remains
}

// member is an output of a set.
type member struct {
	Dir  string `msgpack:"dir"` // the staging directory of the output
	Seal seal   `msgpack:"seal"`
}

var (
	sealCodec    = shared.Msgpack[seal]()
	journalCodec = shared.Msgpack[journal]()
)

// writeRecord writes a seal, receipt or journal atomically. The file has the encoded record,
// preceded by its CRC-32C. It is written to a temporary file in dir, which is then renamed to
// path. The renaming is durable only after the caller has synced the directory of path.
func writeRecord[T any](d outputDisk, codec shared.Codec[T], dir, path string, v T) error {
	data, err := codec.Append(make([]byte, 4), v)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(data, checksum.CRC32C(0, data[4:]))
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

// readRecord reads a record that writeRecord has written. It returns the zero value if the file
// does not exist.
func readRecord[T any](codec shared.Codec[T], path string) (v T, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	if len(data) >= 4 && binary.LittleEndian.Uint32(data) == checksum.CRC32C(0, data[4:]) {
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

// readJournal returns the journal of set in the staging directory dir, or false if dir has no
// journal of this set.
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

// findJournal returns the journal in the staging directory dir, whatever its set, or the zero
// value if there is none.
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

// journalOf returns the journal of the set to which the staging directory dir, with the seal
// sealed, belongs, or the zero value if there is none.
func journalOf(dir string, sealed seal) (journal, error) {
	if sealed.Set == "" {
		return findJournal(dir) // the seal may have been removed before the journal, or may be lost
	}
	j, _, err := readJournal(sealed.Journal, sealed.Set)
	return j, err
}

// decide performs step 2 for the set with the given staging directories.
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

// endJournal renames the journal, which records that only step 4 remains.
func endJournal(d outputDisk, dir string) error {
	err := d.Rename(filepath.Join(dir, journalFile), filepath.Join(dir, endedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the journal has been renamed before
	}
	return err
}

// undo records in the journal that a set must be undone. It must be called before any output is
// taken back.
func undo(d outputDisk, dir, set string) error {
	j, there, err := readJournal(dir, set)
	if err != nil || !there || j.Undo {
		return err
	}
	j.Undo = true
	return writeJournal(d, j)
}

// waitsFor reports whether the journal of set in dir is still needed for other outputs of the
// set.
func waitsFor(dir, set string) bool {
	j, there, err := readJournal(dir, set)
	return err != nil || there && slices.ContainsFunc(j.Members[1:], func(m member) bool {
		sealed, err := readRecord(sealCodec, filepath.Join(m.Dir, sealFile))
		return err != nil || sealed.Set == set
	})
}

// isNoted reports whether the staging directory dir has a journal.
func isNoted(dir string) bool {
	j, err := findJournal(dir)
	return err != nil || j.Set != ""
}
