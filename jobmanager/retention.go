package jobmanager

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/superstep-ml/superstep/internal/wire"
)

// retention has the sizes of the files of ended jobs. If their total exceeds Config.KeepBytes,
// the files of the oldest jobs are removed; the jobs stay in the history.
type retention struct {
	sizes map[wire.JobID]int64
	total int64
}

// sizeOf returns the total size of a job's files.
func (m *Manager) sizeOf(id wire.JobID) (size int64) {
	entries, err := fs.ReadDir(m.root.FS(), jobDir(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Error("the files of a job cannot be listed", "job", id, "error", err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// retain records the size of the files of an ended job, and removes the files of the oldest
// jobs if the total is too large. If only one job has files, it does not remove them. The
// caller holds mu.
func (m *Manager) retain(id wire.JobID, size int64) {
	if m.files.sizes == nil {
		m.files.sizes = make(map[wire.JobID]int64)
	}
	m.files.total += size - m.files.sizes[id]
	if size == 0 {
		delete(m.files.sizes, id)
		return
	}
	m.files.sizes[id] = size
	if m.files.total <= m.config.KeepBytes {
		return
	}
	all := m.core.Jobs() // newest first
	for i := len(all) - 1; i >= 0 && m.files.total > m.config.KeepBytes && len(m.files.sizes) > 1; i-- {
		if old := all[i].ID; m.files.sizes[old] > 0 {
			m.log.Info("the results and logs of a job are removed, as those of all jobs take too much", "job", old, "bytes", m.files.sizes[old])
			m.remove(old, nil)
		}
	}
}

// removedDir, under the work directory, has the files of jobs that are being removed. If it has
// files when a job manager starts, a former job manager did not complete their removal.
const removedDir = "removed"

// remove removes the files of a job that has ended. When no file of the job is left under
// jobsDir, it calls afterwards, if afterwards is not nil. The caller holds
// mu.
func (m *Manager) remove(id wire.JobID, afterwards func()) {
	m.files.total -= m.files.sizes[id]
	delete(m.files.sizes, id)
	m.recorder.put(entry{then: func(error) {
		removed := removedDir + "/" + string(id)
		err := m.root.Mkdir(removedDir, 0o700)
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = m.root.Rename(jobDir(id), removed)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = m.root.RemoveAll(removed)
		} else {
			err = m.root.RemoveAll(jobDir(id))
		}
		if err != nil {
			m.log.Error("the files of an old job cannot be removed", "job", id, "error", err)
		}
		if afterwards != nil {
			afterwards()
		}
	}})
}

// forget removes all data of an old ended job. It removes the files before the record, so that
// a forgotten job never leaves files without a record. The caller holds mu.
func (m *Manager) forget(id wire.JobID) {
	if j := m.jobs[id]; j != nil { // the job has just ended, and its record is still being written
		j.forgotten = true
		return
	}
	delete(m.past, id)
	m.remove(id, func() { m.recorder.put(entry{change: &change{id: id, forget: true}}) })
}

// sweep measures the files of the recorded jobs, and resumes the removal of the files of
// forgotten jobs. It keeps the files of jobs that are not in the history, because the history
// may have been lost or replaced by an older copy.
func (m *Manager) sweep() {
	if err := m.root.RemoveAll(removedDir); err != nil {
		m.log.Error("the files of old jobs cannot be removed", "error", err)
	}
	entries, err := fs.ReadDir(m.root.FS(), jobsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Error("the files of jobs cannot be listed", "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	unknown, last := 0, ""
	var freed []wire.JobID
	defer func() { m.tasks.Go(func() { m.freeAll(freed) }) }()
	for _, e := range entries {
		id := wire.JobID(e.Name())
		if m.jobs[id] != nil || !e.IsDir() {
			continue // the job is taken up again, or the file does not belong to a job
		}
		if _, ok := m.past[id]; ok {
			size := m.sizeOf(id)
			if m.rowsUnneeded(id) {
				freed = append(freed, id)
				size = min(size, 1) // freeAll sets the size after it has freed the rows
			}
			m.retain(id, size)
			continue
		}
		// An empty directory is removed. The job manager may have stopped just after it created
		// the directory.
		if err := m.root.Remove(jobDir(id)); err != nil {
			unknown, last = unknown+1, e.Name()
		}
	}
	if unknown > 0 {
		m.log.Warn("there are results and logs of jobs that are not on record, as where "+historyName+" was lost or an older copy put in its place. They stay: stop the job manager and put the "+historyName+" that has these jobs in place, or remove what nobody needs",
			"jobs", unknown, "path", filepath.Join(m.config.Dir, jobsDir), "last", last)
	}
}
