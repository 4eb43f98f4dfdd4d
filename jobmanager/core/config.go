package core

import (
	"cmp"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TickEvery is how often the shell must pass a Tick to Step.
const TickEvery = 100 * time.Millisecond

// DefaultDetection is the default of Config.Detection.
const DefaultDetection = 1500 * time.Millisecond

// These constants bound the values that a task manager reports about itself.
const (
	maxSlots  = 1 << 16
	maxText   = 256     // bytes of an identity, of a name, and of a host
	maxAiling = 1 << 10 // bytes of the reason why it takes no new work
)

// Config configures a core. A duration of 0 means the default.
type Config struct {
	// Cluster identifies the job manager's process. Build is its version, which is only shown
	// to users.
	Cluster, Build string
	// Started is the wall-clock time at time zero of the core's clock. It is used only for
	// times that are shown to users. Each Submitted.At adjusts it.
	Started time.Time

	// Heartbeat is the interval between two heartbeats of a task manager; default a sixth of
	// Detection, but at most 500 ms.
	Heartbeat time.Duration
	// Detection is how long a task manager or a worker may send nothing before it counts as lost; default
	// DefaultDetection. Time in which the core received no ticks is not counted.
	Detection time.Duration
	// Reconnect is how long a task manager may take to reconnect after its connection broke,
	// before it counts as lost; default Detection. Ended is the same for a task manager whose
	// process is known to have ended; default 500 ms.
	Reconnect, Ended time.Duration
	// Lease is how long a task manager keeps its workers after the last message from the job
	// manager; default 16 s, or four times Detection if that is longer, so that no job fails if
	// the job manager does not run for some seconds or is restarted.
	Lease time.Duration
	// If a worker reports that it lost contact with another worker, the core waits for the report
	// of the cause, at most for Slack and the longer of Detection and Reconnect. The default of
	// Slack is 500 ms.
	Slack time.Duration

	// DeployTimeout bounds the time from the choice of slots until all workers run, including
	// the time for fetching the executable; default 2 min.
	DeployTimeout time.Duration
	// ResolveTimeout bounds the time in which a worker resolves a graph, for which it may have
	// to read inputs; default 10 min.
	ResolveTimeout time.Duration
	// If another worker must finish the commit of a job, ResumeTimeout bounds how long the job
	// waits for a slot for that worker; default 5 min.
	ResumeTimeout time.Duration
	// KillAfter is how long a worker may take to end after it got the command to end, before it
	// is killed; default 12 s. During this time, the worker waits up to 10 s for user code to
	// return.
	KillAfter time.Duration

	// Settle is how long the slots and the waiting jobs must not have changed before the core
	// changes the number of slots of running elastic jobs; default 5 s.
	Settle time.Duration
	// ScaleInterval is the shortest time from the start of an attempt of an elastic job to the next
	// attempt with more slots; default 30 s.
	ScaleInterval time.Duration

	// Ageing is how much earlier a job must have been submitted to come before a job whose priority is
	// higher by one; default 10 min.
	Ageing time.Duration

	// Policy determines which of the free slots a job gets; default Pack.
	Policy Policy
	// Keep is the maximum number of ended jobs that are kept; default 1000.
	Keep int

	// History has the recorded jobs. A job whose record says that it had not ended ends, because
	// the job manager stopped, unless Resume has the job.
	History []wire.JobInfo
	// Resume has the jobs that are taken up again, with the data that this needs. A job that is
	// recorded as committing and is not in Resume fails, and its failure says that it is unknown
	// which of its results are visible.
	Resume map[wire.JobID]Resumable
	// Doubts has those jobs of History that may have progressed further than their records say.
	// The value is the reason for this doubt, which becomes part of the job's final message.
	Doubts map[wire.JobID]string
	// Cordons has the recorded cordons, by the names of task managers.
	Cordons map[string]wire.Cordon
}

// Resumable has the data that is needed, besides the JobInfo of a job, to take the job up again
// after a restart of the job manager.
type Resumable struct {
	Spec         wire.JobSpec // specification as it is sent to the workers, with the graph
	Continuation Continuation
	Outcomes     [][]byte // outcomes of all workers of the attempt that ran, indexed by worker number; only of a job that commits
	// RowsLost is not empty if rows or text of the current attempt, which its workers do not
	// send again, are lost. It says so to users. The attempt is lost then.
	RowsLost string
}

func (c Config) withDefaults() Config {
	c.Detection = cmp.Or(c.Detection, DefaultDetection)
	c.Heartbeat = cmp.Or(c.Heartbeat, min(c.Detection/6, 500*time.Millisecond))
	c.Reconnect = cmp.Or(c.Reconnect, c.Detection)
	c.Ended = cmp.Or(c.Ended, 500*time.Millisecond)
	c.Lease = cmp.Or(c.Lease, max(4*c.Detection, 16*time.Second))
	c.Slack = cmp.Or(c.Slack, 500*time.Millisecond)
	c.DeployTimeout = cmp.Or(c.DeployTimeout, 2*time.Minute)
	c.ResolveTimeout = cmp.Or(c.ResolveTimeout, 10*time.Minute)
	c.ResumeTimeout = cmp.Or(c.ResumeTimeout, 5*time.Minute)
	c.KillAfter = cmp.Or(c.KillAfter, 12*time.Second)
	c.Settle = cmp.Or(c.Settle, defaultSettle)
	c.ScaleInterval = cmp.Or(c.ScaleInterval, defaultScaleInterval)
	c.Ageing = cmp.Or(c.Ageing, defaultAgeing)
	c.Keep = max(0, cmp.Or(c.Keep, 1000))
	return c
}
