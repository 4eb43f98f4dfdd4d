package jobmanager

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// When a job begins to commit, the history gets all data that another worker needs to finish
// the commit: the job's specification, with arguments and graph, and the outcomes of the
// workers. Before that, all rows and text that the job sent to its client are flushed to disk.
// So a job manager that starts again can resume the commit. It pins the job's executable until
// the job has ended.

// persistCommit records a job that is committing.
func (m *Manager) persistCommit(e core.Persist) {
	j := m.jobs[e.Job.ID]
	if j == nil {
		return
	}
	m.recorder.put(entry{then: func(error) {
		c, err := m.commitChange(j, e)
		next := entry{change: &c}
		if err != nil {
			m.log.Error("a job cannot be put on record", "job", j.id, "error", err)
			next.change = nil
		}
		if e.Barrier {
			next.then = func(failed error) {
				if err != nil {
					failed = err
				}
				m.step(core.Persisted{ID: j.id, Err: failed})
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		// The recorder's queue may already have a later state of the job, which this change
		// must not overwrite.
		if info, ok := m.core.Job(j.id); ok && info.State == wire.JobCommitting {
			m.recorder.put(next)
		}
	}})
}

// commitChange flushes to disk all events that a job has sent to its client, and returns the
// change that records the job.
func (m *Manager) commitChange(j *job, e core.Persist) (change, error) {
	events, err := j.spool.sync()
	if err != nil {
		return change{}, err
	}
	c, err := newChange(record{Info: e.Job, Events: events + j.missing, Doubt: j.doubt})
	if err == nil {
		c.spec, err = wire.Marshal(e.Spec)
	}
	if err != nil {
		return change{}, fmt.Errorf("put the commit of job %s on record: %w", j.id, err)
	}
	return c, nil
}

// resumable adds the recorded jobs whose commits must be resumed to m.jobs, and returns the
// data that the core needs to resume them. If a commit cannot be resumed, the reason is logged
// and the job fails.
func (m *Manager) resumable(records []record) map[wire.JobID]core.Resumable {
	all := make(map[wire.JobID]core.Resumable)
	for _, r := range records {
		if r.Info.State != wire.JobCommitting {
			continue
		}
		resume, err := m.revive(r)
		if err != nil {
			m.log.Error("the commit of a job cannot be resumed", "job", r.Info.ID, "error", err)
			continue
		}
		all[r.Info.ID] = resume
	}
	return all
}

// revive adds the job of record r, whose commit must be resumed.
func (m *Manager) revive(r record) (resume core.Resumable, err error) {
	id := r.Info.ID
	spec, err := m.history.spec(id)
	if err != nil {
		return resume, err
	}
	if spec == nil {
		return resume, errors.New("its specification is not on record")
	}
	outcomes, err := m.history.outcomes(id)
	if err != nil {
		return resume, err
	}
	resume = core.Resumable{Spec: *spec, Outcomes: outcomes}
	// The client lost its connection when the job manager stopped. This must not cancel the
	// job.
	resume.Spec.Attached = false
	j := newJob(m.root, id, resume.Spec, nil, &m.config)
	file, err := m.root.OpenFile(spoolName(id), os.O_RDWR, 0)
	if err == nil {
		j.spool, err = resumeSpool(id, m.config.MaxResult, file)
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return resume, err
	}
	if j.logs.workers, err = m.pastLogs(id); err == nil && !spec.Resident {
		err = m.artifacts.pin(spec.Artifact, spec.Platform)
	}
	if err != nil {
		_, sealed := j.spool.seal()
		return resume, errors.Join(err, sealed)
	}
	for _, l := range j.logs.workers {
		l.half = max(m.config.MaxLog/2, 1)
	}
	if events := j.spool.events; events < r.Events {
		j.missing = r.Events - events
		m.log.Error("some of what a job sent to its client is lost", "job", id, "events", j.missing)
	}
	j.saving, j.doubt = true, r.Doubt
	close(j.recorded)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs[id] = j
	return resume, nil
}
