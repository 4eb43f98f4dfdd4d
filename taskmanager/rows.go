package taskmanager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// Rows of queues that lie in files outlive a worker of which another attempt may follow. Each job has a
// directory for them, in which processes of its workers have directories of their own. A process that ends
// by itself removes its own and those that it has taken over. What processes that were killed have left stays
// for the next worker of the job on this task manager. The task manager removes the directory of a job of
// which it has no processes any more:
//
//   - at once, if nothing is in it, or if the job has ended or will not have another attempt;
//   - if no worker of the job comes within Config.KeepFor;
//   - if there are more than maxLeftJobs of them: the one that was left first;
//   - if the disk is nearly full;
//   - when it stops, and when it starts, in case it was killed.

// maxLeftJobs is the number of jobs without processes here whose rows may be left in files.
const maxLeftJobs = 8

// leftRows has the directories of jobs for rows in files.
type leftRows struct {
	dir string
	log hclog.Logger

	mu   sync.Mutex
	jobs map[wire.JobID]*leftJob
}

// leftJob is the directory of a job.
type leftJob struct {
	path string
	over bool          // no worker of the job will come
	idle time.Duration // for how long the job has had no processes here
}

// openLeftRows returns a leftRows whose directories are in dir.
func openLeftRows(dir string, log hclog.Logger) *leftRows {
	return &leftRows{dir: dir, log: log, jobs: make(map[wire.JobID]*leftJob)}
}

// use returns the directory of a job, and makes it if it does not exist.
func (l *leftRows) use(job wire.JobID) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := sha256.Sum256([]byte(job))
	path := filepath.Join(l.dir, hex.EncodeToString(sum[:12]))
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	l.jobs[job] = &leftJob{path: path}
	return path, nil
}

// end notes that no further worker of a job will come, unless one does.
func (l *leftRows) end(job wire.JobID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j := l.jobs[job]; j != nil {
		j.over = true
	}
}

// sweep removes directories of jobs that have no processes here. processes returns the jobs that have some: a
// job is among them before use is called for it. passed is the time since the last sweep, and full says that
// the disk is nearly full.
func (l *leftRows) sweep(processes func() []wire.JobID, passed, keepFor time.Duration, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	running := processes()
	var left []wire.JobID
	for job, j := range l.jobs {
		if slices.Contains(running, job) {
			j.idle = 0
			continue
		}
		if os.Remove(j.path) == nil { // nothing was in it
			delete(l.jobs, job)
			continue
		}
		if j.idle += passed; j.over || full || j.idle >= keepFor {
			l.remove(job)
			continue
		}
		left = append(left, job)
	}
	slices.SortFunc(left, func(a, b wire.JobID) int { return int(l.jobs[b].idle - l.jobs[a].idle) })
	for len(left) > maxLeftJobs {
		l.remove(left[0])
		left = left[1:]
	}
}

// remove removes the directory of a job. If that fails, it is tried again. mu is held.
func (l *leftRows) remove(job wire.JobID) {
	if err := os.RemoveAll(l.jobs[job].path); err != nil {
		l.log.Error("cannot remove rows that workers have left in files", "job", string(job), "error", err)
		return
	}
	l.log.Info("removed rows that workers have left in files", "job", string(job))
	delete(l.jobs, job)
}

// sweepRows sweeps until the context is done: often, and when a worker or a kept process has ended.
func (m *manager) sweepRows(ctx context.Context) {
	begin := time.Now()
	turns := core.NewTurns(m.KeepFor, 0)
	ticks := time.NewTicker(max(turns.Period, time.Millisecond))
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-m.ended:
		case <-ctx.Done():
			return
		}
		m.rows.sweep(m.jobs, turns.Tick(time.Since(begin)), m.KeepFor, m.space.Full() != "")
	}
}

// jobs returns the jobs that have processes here.
func (m *manager) jobs() []wire.JobID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []wire.JobID
	for _, ref := range m.kept.refs() {
		all = append(all, ref.Job)
	}
	for ref := range m.workers {
		all = append(all, ref.Job)
	}
	return all
}
