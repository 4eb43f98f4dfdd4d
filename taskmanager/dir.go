package taskmanager

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

// workDir is the work directory of one task manager. No other task manager can use it while it
// is open. It contains:
//
//	lock          locked by the task manager; has its PID
//	id            the task manager's identity, which never changes
//	artifacts/    executables by hash
//	workers/      a directory for each worker, removed with it
//	states/       states of queues, see states.go
//	rows/         a directory for each job, for rows in files that outlive a worker (rows.go)
type workDir struct {
	path   string
	id     string
	lock   *os.File
	states *stateDirs
}

// openWorkDir opens the directory, and makes it if it does not exist. It removes files of
// workers, and of states, that a killed task manager left in it.
func openWorkDir(path string, log hclog.Logger) (*workDir, error) {
	fail := func(err error) error { return fmt.Errorf("work directory %s: %w", path, err) }
	repaired := func(what string) { log.Warn("the work directory was repaired", "what", what) }
	if err := security.PrivateFolder(path, repaired); err != nil {
		return nil, fail(err)
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, fail(err)
	}
	d := &workDir{path: path, lock: lock}
	if d.id, err = identity(filepath.Join(path, "id")); err == nil {
		err = errors.Join(os.RemoveAll(d.workers()), os.RemoveAll(d.rows()))
	}
	if err == nil {
		err = errors.Join(os.Mkdir(d.workers(), 0o700), os.Mkdir(d.rows(), 0o700))
	}
	if err == nil {
		d.states, err = openStateDirs(filepath.Join(path, "states"))
	}
	if err != nil {
		return nil, errors.Join(fail(err), lock.Close())
	}
	return d, nil
}

// close releases the directory, so that another task manager can open it.
func (d *workDir) close() error {
	return errors.Join(os.Remove(d.workers()), os.RemoveAll(d.rows()), d.states.close(), d.lock.Close())
}

func (d *workDir) workers() string   { return filepath.Join(d.path, "workers") }
func (d *workDir) rows() string      { return filepath.Join(d.path, "rows") }
func (d *workDir) artifacts() string { return filepath.Join(d.path, "artifacts") }

// lockDir takes the lock of the directory. The system releases the lock when the process ends,
// even if it is killed.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ours, err := lockFile(f)
	switch {
	case err != nil:
		err = fmt.Errorf("lock: %w", err)
	case !ours:
		holder := make([]byte, 20)
		n, _ := f.ReadAt(holder, 0)
		err = fmt.Errorf("another task manager uses it (process %s): give this one a directory of its own", strings.TrimSpace(string(holder[:n])))
	default:
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// identity reads the task manager's identity from the file at path. If there is no such file,
// it makes an identity and writes it to the file.
func identity(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		id := strings.ToLower(rand.Text())
		part := path + programs.Partial
		if err := os.WriteFile(part, []byte(id+"\n"), 0o600); err != nil {
			return "", err
		}
		return id, os.Rename(part, path)
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	odd := strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-")
	if odd != "" || len(id) < 8 || len(id) > 64 {
		return "", fmt.Errorf("%s does not hold an identity (8 to 64 letters and digits): remove it to get a new one", path)
	}
	return id, nil
}

// forWorker makes a directory for a worker and returns its path.
func (d *workDir) forWorker(ref wire.WorkerRef) (string, error) {
	return os.MkdirTemp(d.workers(), fmt.Sprintf("%s-%d-%d-", fileName(ref.Job), ref.Attempt, ref.Worker))
}
