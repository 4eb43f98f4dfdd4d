package taskmanager

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A worker that has all slots of its job writes the states of queues to files in a directory of the job, as
// no other worker can hold copies (engine/copies). If its process is lost, the next worker of the job here
// reads them. The task manager names these jobs in its heartbeats, and removes the directory of a job when
// the job manager answers that the job gets no further attempt. It also removes those of a task manager that
// was killed, as states of jobs that nobody names any more would stay for ever.

// stateDirs has the directories for states of queues, by job.
type stateDirs struct {
	root string

	mu  sync.Mutex
	dir map[wire.JobID]string
}

// openStateDirs makes an empty directory at root, in place of what is there.
func openStateDirs(root string) (*stateDirs, error) {
	if err := os.RemoveAll(root); err != nil {
		return nil, err
	}
	return &stateDirs{root: root, dir: make(map[wire.JobID]string)}, os.Mkdir(root, 0o700)
}

// close removes all directories.
func (d *stateDirs) close() error { return os.RemoveAll(d.root) }

// forJob returns the directory of a job, or "" if it has none and add is false.
func (d *stateDirs) forJob(job wire.JobID, add bool) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if path := d.dir[job]; path != "" || !add {
		return path, nil
	}
	path, err := os.MkdirTemp(d.root, fileName(job)+"-")
	if err == nil {
		d.dir[job] = path
	}
	return path, err
}

// jobs returns the sorted jobs that have a directory.
func (d *stateDirs) jobs() []wire.JobID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.dir))
}

// remove removes the directory of a job, if it has one. If that fails, the job still counts as one that has it.
func (d *stateDirs) remove(job wire.JobID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := d.dir[job]
	if path == "" {
		return nil
	}
	err := os.RemoveAll(path)
	if err == nil {
		delete(d.dir, job)
	}
	return err
}

// fileName returns a name of files for a job, which other jobs may share.
func fileName(job wire.JobID) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, string(job[:min(len(job), 80)]))
}

// stateDir returns the directory for states of the worker's job: a new one only if this is the only worker
// with slots, and another attempt may need the states.
func (w *worker) stateDir() string {
	d := &w.deployment
	if d.Mode != wire.RunMode {
		return ""
	}
	others := slices.ContainsFunc(d.Slots[min(1, len(d.Slots)):], func(s wire.SlotRange) bool { return s.Hi > s.Lo })
	alone := d.Worker == 0 && !others && d.Keep && d.Spec.Run.NumberOfCopies() > 0
	path, err := w.dir.states.forJob(w.ref.Job, alone)
	if err != nil {
		w.log.Warn("there is no directory for the states of queues, so they are lost if the worker is lost", "error", err)
		return ""
	}
	return path
}

// forgetStates removes the states of jobs that get no further attempt. A job that still has a worker here is
// left for later.
func (m *manager) forgetStates(jobs []wire.JobID) {
	for _, job := range jobs {
		m.mu.Lock()
		used := false
		for ref := range m.workers {
			used = used || ref.Job == job
		}
		m.mu.Unlock()
		if used {
			continue
		}
		if err := m.dir.states.remove(job); err != nil {
			m.Logger.Warn("the states of a job that is over cannot be removed", "job", string(job), "error", err)
		}
	}
}
