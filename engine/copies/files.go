package copies

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// Files are files with states of the queues of a job. A process that shares states with no other writes
// them, so that the process of a later attempt on the same machine can continue from them. Only one process
// may use the directory at a time. A file protects against the loss of a process and not of the machine, so
// nothing is synced. Of a queue there are at most two files, the newer of which may be incomplete.
type Files struct {
	Dir     string // exists
	Job     string
	Attempt int // of the job; files of this attempt or a later one are not read
	Logger  hclog.Logger
	failing bool // the last Write failed
	w       *bufio.Writer
}

// partial ends the name of a file that is being written.
const partial = ".partial"

// name returns the name of the file of a state. The names of a queue have the same prefix, and are in the
// order in which the files were written.
func (f *Files) name(s State) string {
	ended := 0
	if s.Ended {
		ended = 1
	}
	return fmt.Sprintf("%s%010d-%d-%010d", prefixOf(s.Queue), f.Attempt, ended, s.Superstep)
}

// prefixOf returns the prefix of the names of the files of a queue.
func prefixOf(queue string) string { return fmt.Sprintf("%016x-", uint64(checksum.Of([]byte(queue)))) }

// prefixBytes is the length of the prefix.
const prefixBytes = 17

// Write writes a state of which the Store holds all pieces, and then counts on its file: of the older files
// of the queue, the newest is left. It logs an error, and no further one until it succeeds, as the next
// state may find room. It is not called concurrently.
func (f *Files) Write(ctx context.Context, store *Store, s State) {
	err := f.write(ctx, store, s)
	if err != nil && !f.failing && ctx.Err() == nil {
		f.Logger.Warn("the state of a queue cannot be written to a file, so it is lost with this process", "queue", s.Queue, "superstep", s.Superstep, "error", err)
	}
	f.failing = err != nil
}

func (f *Files) write(ctx context.Context, store *Store, s State) (err error) {
	names, err := f.list()
	if err != nil {
		return err
	}
	earlier := slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefixOf(s.Queue)) })
	for len(earlier) > 1 {
		if err := f.remove(earlier[0]); err != nil {
			return err
		}
		earlier = earlier[1:]
	}
	path := filepath.Join(f.Dir, f.name(s))
	file, err := os.OpenFile(path+partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if f.w == nil {
		f.w = bufio.NewWriterSize(nil, stepBytes)
	}
	f.w.Reset(file)
	err = store.writeFile(ctx, f.w, fileHead{job: f.Job, attempt: f.Attempt, State: s})
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(path+partial, path)
	}
	if err != nil {
		return errors.Join(err, f.remove(f.name(s)+partial))
	}
	return nil
}

// remove removes a file, if there is one.
func (f *Files) remove(name string) error {
	if err := os.Remove(filepath.Join(f.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// list returns the sorted names of the files that are complete. It removes others, as nobody else writes.
func (f *Files) list() (names []string, err error) {
	entries, err := os.ReadDir(f.Dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), partial) {
			names = append(names, e.Name())
		} else if err == nil {
			err = f.remove(e.Name())
		}
	}
	return names, err
}

// Read puts the newest state of each queue that can be read into an empty Store. A file that is torn,
// damaged, or of another job or attempt is removed with a line in the log, and the one before is read.
func (f *Files) Read(store *Store) {
	names, err := f.list()
	if err != nil {
		f.Logger.Warn("the states of queues that an earlier attempt has left in files cannot be read", "error", err)
		return
	}
	read := ""
	for _, name := range slices.Backward(names) {
		prefix := name[:min(prefixBytes, len(name))]
		if prefix == read {
			continue
		}
		s, err := f.read(store, name)
		switch {
		case err == nil:
			f.Logger.Info("the state of a queue was read from a file of an earlier attempt", "queue", s.Queue, "superstep", s.Superstep)
			read = prefix
		default:
			f.Logger.Warn("a file with the state of a queue is refused, and removed; an older one is read if there is one", "file", filepath.Join(f.Dir, name), "error", err)
			if err := f.remove(name); err != nil {
				f.Logger.Warn("the file cannot be removed", "error", err)
			}
		}
	}
}

// read puts the state of a file into the Store.
func (f *Files) read(store *Store, name string) (State, error) {
	file, err := os.Open(filepath.Join(f.Dir, name))
	if err != nil {
		return State{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return State{}, err
	}
	if !info.Mode().IsRegular() {
		return State{}, errors.New("it is no file")
	}
	r, err := openFile(file, info.Size())
	if err != nil {
		return State{}, err
	}
	switch of := (&Files{Attempt: r.attempt}).name(r.State); {
	case r.job != f.Job:
		return State{}, fmt.Errorf("it is of job %q, and not of %q", r.job, f.Job)
	case r.attempt >= f.Attempt:
		return State{}, fmt.Errorf("it is of attempt %d, and this is attempt %d", r.attempt, f.Attempt)
	case of != name:
		return State{}, fmt.Errorf("it is the file %s", of)
	}
	return r.State, store.readFile(r)
}
