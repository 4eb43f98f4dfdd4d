package jobmanager

import (
	"cmp"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// Stats has the statistics of the job manager at one moment. Counters begin at 0 when the
// process starts.
type Stats struct {
	// Jobs has, for each state, the number of jobs in that state, including jobs that have
	// ended.
	Jobs map[wire.JobState]int
	// Ended has, for each final state, a counter of the jobs that have ended in that state.
	Ended map[wire.JobState]uint64
	// TaskManagers has the known task managers, with the ages of their heartbeats.
	TaskManagers []wire.TaskManagerInfo
	Slots, Free  int
	Cordoned     int // number of slots of cordoned task managers

	// Supersteps counts the supersteps of all queues of all jobs. Compute counts the seconds
	// that subtask 0 spent in stages that compute, and Communicate the seconds that it spent in
	// stages that communicate.
	Supersteps           uint64
	Compute, Communicate float64
	// Rows counts the rows that the vertices of all jobs have received.
	Rows uint64
	// ExchangeRows and ExchangeBytes count the rows and bytes that all jobs sent over
	// exchanges. Exchanges has both numbers for each exchange of the jobs that have not ended.
	ExchangeRows, ExchangeBytes uint64
	Exchanges                   []ExchangeStats
	// Counters has counters of checkpoints, restarts and lost attempts of all jobs.
	core.Counters
	// CheckpointAges has the age of the newest checkpoint of each job that runs and has
	// checkpoints.
	CheckpointAges map[wire.JobID]time.Duration
	// ResultBytes counts the bytes of collected rows and printed text that jobs sent to their
	// clients.
	ResultBytes uint64

	// ArtifactBytes is the total size of all stored executables; ArtifactCache is the limit of
	// that size.
	ArtifactBytes, ArtifactCache int64
	// DiskFree is the number of bytes that can still be written to the disk of the work
	// directory, or -1 if it is unknown. TakesJobs reports whether jobs are accepted.
	DiskFree  int64
	TakesJobs bool
	// Followers is the number of open streams of clients to which jobs are attached.
	Followers int
}

// ExchangeStats has the numbers of rows and bytes that were sent over one exchange of a job
// that has not ended.
type ExchangeStats struct {
	Job         wire.JobID
	Edge        int // index of the exchange among the edges of the job's plan
	Rows, Bytes int64
}

// totals has the sums over jobs that have ended.
type totals struct {
	ended  map[wire.JobState]uint64
	result uint64
	work   work
}

// work has the sums of a job's progress over its vertices, queues and exchanges.
type work struct {
	supersteps           uint64
	compute, communicate float64
	rows                 uint64
	sentRows, sentBytes  uint64 // rows and bytes sent over exchanges
}

func (w *work) add(p *wire.Progress) {
	if p == nil {
		return
	}
	for _, v := range p.Vertices {
		w.rows += uint64(max(0, v.Rows))
	}
	for _, e := range p.Edges {
		w.sentRows += uint64(max(0, e.Rows))
		w.sentBytes += uint64(max(0, e.Bytes))
	}
	for _, q := range p.Queues {
		w.supersteps += uint64(max(0, q.Superstep))
		w.compute += q.Compute
		w.communicate += q.Communicate
	}
}

// add adds a job that has ended to the sums.
func (t *totals) add(j *job, info *wire.JobInfo) {
	if t.ended == nil {
		t.ended = make(map[wire.JobState]uint64)
	}
	t.ended[info.State]++
	t.result += uint64(j.spool.sent())
	t.work.add(info.Progress)
}

// Stats returns the current statistics of the job manager.
func (m *Manager) Stats() Stats {
	kept := m.artifacts.bytes() // outside the lock, because these calls may wait for a disk
	free, ready := m.space.Read().Free, m.reasonNotReady() == ""
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.core.Overview()
	s := Stats{
		Jobs: make(map[wire.JobState]int), Ended: make(map[wire.JobState]uint64),
		TaskManagers: m.core.TaskManagers(m.clock()), Slots: o.Slots, Free: o.Free, Cordoned: o.Cordoned,
		Counters: m.core.Counters(), CheckpointAges: m.core.CheckpointAges(m.clock()),
		ResultBytes:   m.totals.result,
		ArtifactBytes: kept, ArtifactCache: m.config.ArtifactCache,
		DiskFree: free, TakesJobs: ready,
	}
	for name, n := range o.Jobs {
		if state, err := wire.ParseJobState(name); err == nil {
			s.Jobs[state] = n
		}
	}
	for state, n := range m.totals.ended {
		s.Ended[state] = n
	}
	w := m.totals.work
	for _, j := range m.jobs {
		s.Followers += j.attached
		if j.final == nil {
			p := m.core.Progress(j.id)
			w.add(p)
			s.Exchanges = append(s.Exchanges, exchangesOf(j.id, p)...)
			s.ResultBytes += uint64(j.spool.sent())
		}
	}
	s.Supersteps, s.Compute, s.Communicate, s.Rows = w.supersteps, w.compute, w.communicate, w.rows
	s.ExchangeRows, s.ExchangeBytes = w.sentRows, w.sentBytes
	slices.SortFunc(s.Exchanges, func(a, b ExchangeStats) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Edge, b.Edge))
	})
	return s
}

// exchangesOf returns the exchanges over which rows were sent.
func exchangesOf(id wire.JobID, p *wire.Progress) []ExchangeStats {
	if p == nil {
		return nil
	}
	var all []ExchangeStats
	for i, e := range p.Edges {
		if e.Rows > 0 {
			all = append(all, ExchangeStats{Job: id, Edge: i, Rows: e.Rows, Bytes: e.Bytes})
		}
	}
	return all
}
