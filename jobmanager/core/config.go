package core

import (
	"cmp"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TickEvery is how often the shell must pass a Tick to Step.
const TickEvery = 100 * time.Millisecond

// Bounds of the values that a task manager may report about itself.
const (
	maxSlots  = 1 << 16
	maxText   = 256     // bytes of an identity, of a name, and of a host
	maxAiling = 1 << 10 // bytes of the reason why it takes no work
)

// Config configures a core. Durations that are 0 have their defaults.
type Config struct {
	// Cluster is the job manager's incarnation. Build is its version, which is only shown to
	// users.
	Cluster, Build string
	// Started is the wall-clock time at time zero of the core's clock. It only serves times
	// that are shown to users. Each Submitted.At adjusts it.
	Started time.Time

	// Heartbeat is the interval between two heartbeats of a task manager; default 500 ms.
	Heartbeat time.Duration
	// Detection is how long a task manager may send nothing before it counts as lost; default 4
	// s. Only time in which the core received its ticks is counted.
	Detection time.Duration
	// Reconnect is how long a task manager may take to reconnect after its connection broke,
	// before it counts as lost; default 2 s.
	Reconnect time.Duration
	// Lease is how long a task manager keeps its workers without hearing from the job manager;
	// default four times Detection, so that no job fails if the job manager does not run for
	// some seconds.
	Lease time.Duration
	// Slack bounds, together with Detection, the wait for the cause after a worker reported
	// that it lost contact with another worker: the wait lasts at most Detection + Slack;
	// default 500 ms.
	Slack time.Duration

	// DeployTimeout bounds the time from the choice of slots until all workers run, including
	// the time for fetching the executable; default 2 min.
	DeployTimeout time.Duration
	// ResolveTimeout bounds the time in which a worker resolves a graph. To resolve it, the
	// worker may have to read inputs; default 10 min.
	ResolveTimeout time.Duration
	// ResumeTimeout bounds how long a job whose commit another worker must finish waits for a
	// slot for that worker; default 5 min.
	ResumeTimeout time.Duration
	// KillAfter is how long a worker may take to end after it was told to end, before it is
	// killed; default 12 s. Of these the worker waits up to 10 s for user code to return.
	KillAfter time.Duration

	// Policy says how slots are chosen among the free ones; default Pack.
	Policy Policy
	// Keep is the maximum number of ended jobs that are kept; default 1000.
	Keep int

	// History has the recorded jobs. Jobs that had not ended by their record fail, because the
	// job manager stopped, unless Resume has them.
	History []wire.JobInfo
	// Resume has the data that is needed to finish the commits of jobs recorded as committing.
	// A job recorded as committing that is not in Resume fails, and its failure says that
	// nobody knows which of its results are visible.
	Resume map[wire.JobID]Resumable
	// Doubts has jobs of History that may have progressed further than their record says, each
	// with the reason for this. The reason becomes part of the message with which the job ends.
	Doubts map[wire.JobID]string
}

// Resumable has the data, besides its record, that is needed to finish the commit of a job.
type Resumable struct {
	Spec     wire.JobSpec // as sent to the workers, with the graph
	Outcomes [][]byte     // of all workers of the attempt that ran, by number
}

func (c Config) withDefaults() Config {
	c.Heartbeat = cmp.Or(c.Heartbeat, 500*time.Millisecond)
	c.Detection = cmp.Or(c.Detection, 4*time.Second)
	c.Reconnect = cmp.Or(c.Reconnect, 2*time.Second)
	c.Lease = cmp.Or(c.Lease, 4*c.Detection)
	c.Slack = cmp.Or(c.Slack, 500*time.Millisecond)
	c.DeployTimeout = cmp.Or(c.DeployTimeout, 2*time.Minute)
	c.ResolveTimeout = cmp.Or(c.ResolveTimeout, 10*time.Minute)
	c.ResumeTimeout = cmp.Or(c.ResumeTimeout, 5*time.Minute)
	c.KillAfter = cmp.Or(c.KillAfter, 12*time.Second)
	c.Keep = max(0, cmp.Or(c.Keep, 1000))
	return c
}
