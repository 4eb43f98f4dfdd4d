package jobmanager

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/superstep-ml/superstep/internal/wire"
)

// retention is how much the files of jobs that have ended take. Together they take no
// more than Config.KeepBytes: those of the oldest jobs go first, though the jobs stay
// in the history.
type retention struct {
	sizes map[wire.JobID]int64
	total int64
}

// sizeOf returns what the files of a job take.
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

// retain counts the files of a job that has ended, anew too, and removes those of the oldest if
// all take too much; one job's stay in any case. The caller holds mu.
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
			m.log.Info("the results and logs of a job go, as those of all jobs take too much", "job", old, "bytes", m.files.sizes[old])
			m.remove(old, nil)
		}
	}
}

// removedDir has what is being removed of jobs, under the work directory. What is there
// when a job manager starts, the one before had no time to remove.
const removedDir = "removed"

// remove removes the files of a job that has ended, and then has then called, if it is
// not nil: no file of the job is among those of jobs by then. The caller holds mu.
func (m *Manager) remove(id wire.JobID, then func()) {
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
		if then != nil {
			then()
		}
	}})
}

// forget removes all that is kept of a job that ended long ago: its files first, so that
// files without a record are never those of a job that was forgotten. The caller holds
// mu.
func (m *Manager) forget(id wire.JobID) {
	if j := m.jobs[id]; j != nil { // not that long: it is still being put on record
		j.forgotten = true
		return
	}
	delete(m.past, id)
	m.remove(id, func() { m.recorder.put(entry{change: &change{id: id, forget: true}}) })
}

// sweep counts the files of the jobs on record, and goes on with removing those of jobs
// that were forgotten. Files of other jobs stay: the history that has these may be lost,
// or an older one be in its place.
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
			continue // it goes on, or is no job's
		}
		if _, ok := m.past[id]; ok {
			size := m.sizeOf(id)
			if m.useless(id) {
				freed = append(freed, id)
				size = min(size, 1) // it is counted when its rows are gone, in a moment
			}
			m.retain(id, size)
			continue
		}
		// One that is empty, as where a job manager has just begun it, is removed.
		if err := m.root.Remove(jobDir(id)); err != nil {
			unknown, last = unknown+1, e.Name()
		}
	}
	if unknown > 0 {
		m.log.Warn("there are results and logs of jobs that are not on record, as where "+historyName+" was lost or an older copy put in its place. They stay: stop the job manager and put the "+historyName+" that has these jobs in place, or remove what nobody needs",
			"jobs", unknown, "path", filepath.Join(m.config.Dir, jobsDir), "last", last)
	}
}
