package jobmanager

import (
	"errors"
	"io/fs"

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

// retain counts the files of a job that has ended, and removes those of the oldest if
// all take too much; one job's stay in any case. The caller holds mu.
func (m *Manager) retain(id wire.JobID, size int64) {
	if m.files.sizes == nil {
		m.files.sizes = make(map[wire.JobID]int64)
	}
	if size == 0 {
		return
	}
	m.files.sizes[id] = size
	m.files.total += size
	if m.files.total <= m.config.KeepBytes {
		return
	}
	all := m.core.Jobs() // newest first
	for i := len(all) - 1; i >= 0 && m.files.total > m.config.KeepBytes && len(m.files.sizes) > 1; i-- {
		if old := all[i].ID; m.files.sizes[old] > 0 {
			m.log.Info("the results and logs of a job go, as those of all jobs take too much", "job", old, "bytes", m.files.sizes[old])
			m.remove(old)
		}
	}
}

// remove removes the files of a job that has ended. The caller holds mu.
func (m *Manager) remove(id wire.JobID) {
	m.files.total -= m.files.sizes[id]
	delete(m.files.sizes, id)
	m.recorder.put(entry{then: func(error) {
		if err := m.root.RemoveAll(jobDir(id)); err != nil {
			m.log.Error("the files of an old job cannot be removed", "job", id, "error", err)
		}
	}})
}

// forget removes all that is kept of a job that ended long ago. The caller holds mu.
func (m *Manager) forget(id wire.JobID) {
	if j := m.jobs[id]; j != nil { // not that long: it is still being put on record
		j.forgotten = true
		return
	}
	delete(m.past, id)
	m.recorder.put(entry{change: &change{id: id, forget: true}})
	m.remove(id)
}

// sweep removes the files of jobs that are not on record, as the job manager stopped
// before they were, or while it forgot them; and counts the others.
func (m *Manager) sweep() {
	entries, err := fs.ReadDir(m.root.FS(), jobsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Error("the files of jobs cannot be listed", "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		id := wire.JobID(e.Name())
		if m.jobs[id] != nil {
			continue // it goes on
		}
		if _, ok := m.past[id]; ok {
			m.retain(id, m.sizeOf(id))
			continue
		}
		if err := m.root.RemoveAll(jobDir(id)); err != nil {
			m.log.Error("the files of a job that is not on record cannot be removed", "job", id, "error", err)
		}
	}
}
