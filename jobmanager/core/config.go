package core

import (
	"cmp"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TickEvery is how often the core is to be given a Tick.
const TickEvery = 100 * time.Millisecond

// Bounds of what a task manager may report about itself.
const (
	maxSlots  = 1 << 16
	maxText   = 256     // bytes of an identity, a name, a host
	maxAiling = 1 << 10 // bytes of why it takes no work
)

// Config is what the core is given once.
type Config struct {
	// Cluster is the job manager's incarnation, and Build its version, for people.
	Cluster, Build string
	// Started is the wall clock at time zero, for people. A submission's own wall clock
	// sets it anew.
	Started time.Time

	// Heartbeat is how often task managers say that they are alive; default 500 ms.
	Heartbeat time.Duration
	// Detection is how long a task manager may be silent before it is lost; default 4 s. Only
	// time in which the core got its ticks counts.
	Detection time.Duration
	// Reconnect is how long a task manager whose connection broke may take to come back
	// before it is lost; default 2 s.
	Reconnect time.Duration
	// Lease is how long a task manager goes on without hearing the job manager; default four
	// times Detection, so that no job ends when a job manager stands still for some seconds.
	Lease time.Duration
	// Slack is added to Detection to bound the wait for the reason when a worker says that it
	// lost another one; default 500 ms.
	Slack time.Duration

	// DeployTimeout bounds the time from the choice of slots until all workers run,
	// fetching the executable included; default 2 min.
	DeployTimeout time.Duration
	// ResolveTimeout bounds the time in which a worker learns the facts of a graph, for
	// which it may have to read inputs; default 10 min.
	ResolveTimeout time.Duration
	// ResumeTimeout bounds the wait for a slot of a job whose commit another worker is to
	// finish; default 5 min.
	ResumeTimeout time.Duration
	// KillAfter is how long a worker that was told to end may take before it is killed;
	// default 12 s, which leaves it 10 s to abandon user code that does not return.
	KillAfter time.Duration

	// Policy chooses among free slots; Pack by default.
	Policy Policy
	// Keep is how many jobs that have ended are kept; default 1000.
	Keep int

	// History is the jobs on record. Those that have not ended failed because the job
	// manager stopped.
	History []wire.JobInfo
	// Resume has what is needed to finish the commits of jobs recorded as committing. Such a
	// job that is not in it fails, and its failure says that nobody knows which of its results
	// are visible.
	Resume map[wire.JobID]Resumable
	// Doubts lists jobs in History that may have come further than their record says, with the
	// reason. The reason becomes part of how the job ends.
	Doubts map[wire.JobID]string
}

// Resumable is what is needed to finish the commit of a job, besides its record.
type Resumable struct {
	Spec     wire.JobSpec // as the workers got it, with the graph
	Outcomes [][]byte     // of the workers
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
