package jobmanager

import (
	"errors"
	"fmt"
	"os"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// The history has, from the submission of a job to its end, what another job manager needs to take
// the job up again: its specification, with arguments and graph, and the continuation of the
// core. When the job begins to commit, the outcomes of the workers are added. A job manager that
// starts again pins the executables of these jobs, and continues the files with the rows and text
// that they sent to their clients. What a worker has been told to be stored is on disk
// (confirm.go). So either all rows of an attempt that goes on are there, or its workers still have
// them, or the attempt is lost.

// persistCommit records a job that is committing. All rows and text that it sent to its client are
// flushed to disk before.
func (m *Manager) persistCommit(e core.Persist) {
	j := m.jobs[e.Job.ID]
	if j == nil {
		return
	}
	j.last = nil
	m.recorder.put(entry{then: func(error) {
		c, err := m.commitChange(j, e)
		next := m.entryOf(e, &c, err)
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
	c, err := newChange(record{Info: e.Job, Continuation: e.Continuation, Events: events + j.missing, Doubt: j.doubt})
	if err != nil {
		return change{}, fmt.Errorf("put the commit of job %s on record: %w", j.id, err)
	}
	return c, nil
}

// resumable adds the recorded jobs that are taken up again to m.jobs, and returns the data that
// the core needs for them. If a job cannot be taken up, the reason is logged and the job fails.
// So does a job whose record may be too old, unless it is committing: it may have come further,
// and must not begin again.
func (m *Manager) resumable(records []record) map[wire.JobID]core.Resumable {
	all := make(map[wire.JobID]core.Resumable)
	for _, r := range records {
		if r.Doubt != "" && r.Info.State != wire.JobCommitting || !core.TakesUp(r.Info, r.continuation()) {
			continue
		}
		resume, err := m.revive(r)
		if err != nil {
			m.log.Error("a job cannot be taken up again", "job", r.Info.ID, "state", r.Info.State, "error", err)
			continue
		}
		m.log.Info("a job is taken up again", "job", r.Info.ID, "state", r.Info.State, "attempt", r.Info.Attempt)
		all[r.Info.ID] = resume
	}
	return all
}

// continuation returns the continuation of a job that has not ended. Records of earlier versions
// have none.
func (r *record) continuation() (k core.Continuation) {
	if r.Continuation != nil {
		k = *r.Continuation
	}
	return k
}

// revive adds the job of record r, which is taken up again.
func (m *Manager) revive(r record) (resume core.Resumable, err error) {
	id, commits := r.Info.ID, r.Info.State == wire.JobCommitting
	spec, err := m.history.spec(id)
	switch {
	case err != nil:
	case spec == nil:
		err = errors.New("its specification is not on record")
	case len(spec.Graph) == 0 && r.Info.State != wire.JobResolving:
		err = errors.New("its graph is not on record")
	}
	if err != nil {
		return resume, err
	}
	resume = core.Resumable{Spec: *spec, Continuation: r.continuation()}
	if commits {
		if resume.Outcomes, err = m.history.outcomes(id); err != nil {
			return resume, err
		}
		// The client lost its connection when the job manager stopped. This must not cancel the
		// commit.
		resume.Spec.Attached = false
	}
	j := newJob(m.root, id, resume.Spec, nil, &m.config)
	j.size = int64(len(spec.Args) + len(spec.Graph))
	spool, kept, err := m.resumeSpool(id)
	if err != nil {
		return resume, err
	}
	j.spool = spool
	if j.logs.workers, err = m.pastLogs(id); err == nil && !spec.Resident {
		err = m.hold(spec, commits)
	}
	if err != nil {
		_, sealed := j.spool.seal()
		return resume, errors.Join(err, sealed)
	}
	for _, l := range j.logs.workers {
		l.half = max(m.config.MaxLog/2, 1)
	}
	if j.confirmed = min(r.Events, kept); kept < r.Events {
		resume.RowsLost = "some of the rows and text that it had stored are lost"
		m.log.Error("some of what a job sent to its client is lost", "job", id, "events", r.Events-kept)
		if commits {
			j.missing = r.Events - kept
		}
	}
	j.saving, j.doubt = true, r.Doubt
	// Clients have waited longer and longer between their attempts to reach the job manager, so
	// they get twice the usual time.
	j.unattached = -m.config.AttachGrace
	close(j.recorded)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs[id] = j
	return resume, nil
}

// resumeSpool opens the spool of a job that is taken up again, and returns the number of the last
// event in it. If its file is missing, there is none.
func (m *Manager) resumeSpool(id wire.JobID) (s *spool, kept uint64, err error) {
	if err := m.root.MkdirAll(jobDir(id), 0o700); err != nil {
		return nil, 0, fmt.Errorf("go on with a job's events: %w", err)
	}
	file, err := m.root.OpenFile(spoolName(id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("go on with a job's events: %w", err)
	}
	if s, kept, err = resumeSpool(id, m.config.MaxResult, file); err != nil {
		err = errors.Join(err, file.Close())
	}
	return s, kept, err
}

// hold pins the executable of a job that is taken up again. A commit can only be finished with
// the executable; a job that runs may not need it any more, and otherwise the next attempt fails
// with an error that says that it is missing.
func (m *Manager) hold(spec *wire.JobSpec, needed bool) error {
	if needed {
		return m.artifacts.pin(spec.Artifact, spec.Platform)
	}
	if err := programs.CheckHash(spec.Artifact); err != nil {
		return err
	}
	m.artifacts.keep(spec.Artifact)
	return nil
}
