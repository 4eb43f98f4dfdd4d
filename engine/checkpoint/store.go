package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/filelock"
	"github.com/superstep-ml/superstep/internal/wholefile"
)

// Store holds blobs by name. One run uses it at a time.
type Store interface {
	// Put stores a blob durably. A reader gets the whole blob or none. data is not kept.
	Put(ctx context.Context, name string, data []byte) error
	// Publish stores a blob like Put, unless there is a blob of that name, or another run has taken
	// over the store, or what says that this run has it was removed. Then the error matches fs.ErrExist,
	// ErrTaken or ErrGone. It may fail because of itself, if a request was sent twice.
	Publish(ctx context.Context, name string, data []byte) error
	// Get returns a blob. If there is no blob of that name, the error matches fs.ErrNotExist. If the
	// blob has more than most bytes, or is known to be damaged, the error has a method Damaged() bool
	// that returns true.
	Get(ctx context.Context, name string, most int64) ([]byte, error)
	// List returns the names of all blobs, in any order.
	List(ctx context.Context) ([]string, error)
	// Delete removes a blob. It does not fail if there is no blob of that name.
	Delete(ctx context.Context, name string) error
	// String returns the place of the store for messages, such as the path of a directory.
	String() string
	// Close ends the use of the store by this run.
	Close() error
}

// ErrTaken is the error of a Store that a later attempt of the same job has taken over.
var ErrTaken = errors.New("a later attempt of the job writes its checkpoints there now")

// ErrGone is the error if the files that say whose a Store is were removed, and no later attempt of the job
// is found there. Either somebody has removed them, or a later attempt has ended and removed what was there.
// So nothing more may be written, but another attempt of the job can begin.
var ErrGone = errors.New("the files of the checkpoints were removed while the job ran")

// dir is a Store whose blobs are files of a directory.
type dir struct {
	fs   disk.FS
	path string
	lock *filelock.Lock // nil if the directory is not locked
}

// These are names of files that a run locks: lockName while it uses a directory, and turnName while
// the lock changes hands.
const (
	lockName = ".superstep.checkpoint-lock"
	turnName = ".superstep.checkpoint-turn"
)

// partial is the end of the names of temporary files.
const partial = ".partial"

// OpenDir returns a Store in a directory, which it makes if it does not exist. The directory is
// locked until the store is closed or the process ends.
func OpenDir(on disk.FS, path string) (Store, error) { return OpenDirOf(on, path, "", 0) }

// OpenDirOf is like OpenDir, for an attempt of a job on a cluster. It takes the directory over from
// an earlier attempt of the job. A process of that attempt may still run then, and write blobs, but
// no further checkpoint.
func OpenDirOf(on disk.FS, path, job string, attempt int) (Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	lock, err := filelock.Take(filepath.Join(path, lockName), filepath.Join(path, turnName), filelock.Owner{Job: job, Attempt: attempt})
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another run writes its checkpoints into %s: give each run a directory of its own", path)
	}
	if err != nil {
		return nil, taken(err)
	}
	d := &dir{fs: on, path: path, lock: lock}
	if err := lock.Do(d.sweep); err != nil {
		return nil, errors.Join(taken(err), d.Close())
	}
	return d, nil
}

// taken returns ErrTaken for the error of a lock that was taken over, ErrGone for that of one that was removed,
// and other errors as they are.
func taken(err error) error {
	if errors.Is(err, filelock.ErrGone) {
		return ErrGone
	}
	if errors.Is(err, filelock.ErrTaken) {
		return ErrTaken
	}
	return err
}

// JoinDir returns a Store in a directory that another process of the same run has opened with
// OpenDir. It does not lock the directory.
func JoinDir(on disk.FS, path string) (Store, error) {
	path, err := existingDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w, but worker 0 has it: the checkpoints of several machines need a directory that all of them share, or an S3-compatible store", err)
	}
	if err != nil {
		return nil, err
	}
	return &joinedDir{dir{fs: on, path: path}}, nil
}

// existingDir returns the absolute path of a directory, which must be readable.
func existingDir(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.ReadDir(path)
	}
	return path, err
}

// joinedDir is a dir without a lock.
type joinedDir struct{ dir }

func (d *joinedDir) Close() error { return nil }

// ReadDir returns a Store that reads the blobs of a directory, which a run may be using. It writes
// and deletes nothing.
func ReadDir(on disk.FS, path string) (Store, error) {
	path, err := existingDir(path)
	if err != nil {
		return nil, err
	}
	return &readDir{dir{fs: on, path: path}}, nil
}

// readDir is a dir that is only read.
type readDir struct{ dir }

var errReadOnly = errors.New("the store was opened for reading only")

func (d *readDir) Put(context.Context, string, []byte) error     { return errReadOnly }
func (d *readDir) Publish(context.Context, string, []byte) error { return errReadOnly }
func (d *readDir) Delete(context.Context, string) error          { return errReadOnly }
func (d *readDir) Close() error                                  { return nil }

// sweep removes temporary files that a killed process has left.
func (d *dir) sweep() error {
	names, err := d.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, ".") && strings.HasSuffix(name, partial) {
			if err := disk.RemoveIfThere(d.fs, filepath.Join(d.path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Put implements Store. It writes a temporary file and renames it.
func (d *dir) Put(_ context.Context, name string, data []byte) error {
	return d.write(name, data, func(from, to string) error { return d.fs.Rename(from, to) })
}

// Publish implements Store.
func (d *dir) Publish(_ context.Context, name string, data []byte) error {
	return d.write(name, data, func(from, to string) error {
		rename := func() error {
			if _, err := os.Lstat(to); err == nil {
				return &fs.PathError{Op: "publish", Path: to, Err: fs.ErrExist}
			}
			return d.fs.Rename(from, to)
		}
		if d.lock == nil {
			return rename()
		}
		return taken(d.lock.Do(rename))
	})
}

// write writes a temporary file, and moves it to its name by the function move.
func (d *dir) write(name string, data []byte, move func(from, to string) error) error {
	f, err := d.fs.CreateTemp(d.path, "."+name+".*"+partial)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = move(f.Name(), filepath.Join(d.path, name))
	}
	if err != nil {
		return errors.Join(err, disk.RemoveIfThere(d.fs, f.Name()))
	}
	return wholefile.SyncDir(d.path)
}

// Get implements Store.
func (d *dir) Get(_ context.Context, name string, most int64) ([]byte, error) {
	path := filepath.Join(d.path, name)
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, &damagedError{fmt.Errorf("%s is no regular file", path)}
	}
	f, err := d.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = &damagedError{fmt.Errorf("%s has more than %d bytes", path, most)}
	}
	return data, err
}

// List implements Store.
func (d *dir) List(context.Context) ([]string, error) { return d.names() }

func (d *dir) names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Delete implements Store.
func (d *dir) Delete(_ context.Context, name string) error {
	return disk.RemoveIfThere(d.fs, filepath.Join(d.path, name))
}

func (d *dir) String() string { return d.path }

// Close implements Store. It releases the lock.
func (d *dir) Close() error { return d.lock.Release(os.Remove) }
