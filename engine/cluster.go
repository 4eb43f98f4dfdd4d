package engine

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/client"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

// clusterConfig holds the options about the cluster on which a job is to run.
type clusterConfig struct {
	address      string // "" runs the job in this process
	tokenFile    string
	tls          security.TLSFiles
	insecure     bool
	detach       bool
	workerBinary string
	waitTimeout  time.Duration
	priority     int
	prioritySet  bool
	restart      wire.Restart
	restarts     bool // restart was set
	copies       int
	copiesSet    bool // copies was set
	hooks        clusterHooks
}

// clusterHooks are functions of the command line that are called on events and to ask questions.
// Each of them may be nil.
type clusterHooks struct {
	// began is called after the last question and before anything is sent.
	began func()
	// planned is called with the plan that the cluster runs. It is never called at the same
	// time as the function of OnProgress.
	planned func(*plan.Plan)
	// confirm asks the user a question that is answered with yes or no.
	confirm func(question string) bool
	// cancelling is called when the job is being cancelled because the context has ended.
	cancelling func(job string)
	// say shows a line to the user.
	say func(line string)
	// getenv reads the environment; nil means os.Getenv.
	getenv func(string) string
}

// Cluster runs the job on a cluster. address is the address of its job manager: "host:port", or
// "host", which means port 6123. The program is sent there, unless the cluster already has the
// same bytes. So all functions run in processes of this build, whatever the builds of the task
// managers are. The results are the same as in this process, bit for bit. Run stays attached
// unless Detach is given: the job is cancelled when ctx ends, or when this process ends.
//
// The token is read from the file of ClusterTokenFile, from the environment variable
// SUPERSTEP_TOKEN_FILE or SUPERSTEP_TOKEN, or from the file to which a job manager of the same
// user has written it. The connection to a job manager on another machine needs TLS, see
// ClusterTLS.
//
// A program that has its own main function and does not use Main must call WorkerMain first.
// Paths that a job reads and writes are paths on the cluster's machines.
//
// Without Parallelism a job gets all slots of the cluster, but at most one per shard; no result
// depends on this. BatchRows, IfExists, CheckBroadcasts and CheckState apply on the cluster too.
// MemoryBudget is the budget of each slot on the cluster, and of the collected results in this
// process. SpillDir does not apply, as each task manager has its own directory.
func Cluster(address string) Option { return func(c *config) { c.cluster.address = address } }

// ClusterTokenFile sets the path of the file that has the cluster's token.
func ClusterTokenFile(path string) Option { return func(c *config) { c.cluster.tokenFile = path } }

// ClusterTLS encrypts the connection to the job manager. ca is the file with the certificate of
// the authority that signed the job manager's certificate. cert and key are the files with this
// program's certificate and key, or "" if the job manager does not require them. `superstep tls
// init` makes all of these files.
func ClusterTLS(ca, cert, key string) Option {
	return func(c *config) { c.cluster.tls = security.TLSFiles{CA: ca, Cert: cert, Key: key} }
}

// ClusterInsecure permits a job manager on another machine without TLS. Anybody who can read the
// traffic then learns the token, and can run programs on the cluster with it.
func ClusterInsecure() Option { return func(c *config) { c.cluster.insecure = true } }

// Detach makes Run return once the cluster has accepted the job, which then continues without
// this process. The result holds the job's name on the cluster, Result.JobID, but no rows and an
// empty report.
func Detach() Option { return func(c *config) { c.cluster.detach = true } }

// WorkerBinary sets the path of a build of this program that is sent to the cluster, for a
// cluster of another platform. The default is the running executable.
func WorkerBinary(path string) Option { return func(c *config) { c.cluster.workerBinary = path } }

// Priority sets the priority of the job on a cluster, from MinPriority to MaxPriority; the default is
// 0. Of the jobs that wait for slots, one of a higher priority gets them first, and so it does when
// elastic jobs get more slots than their least. No job is stopped for another, and a job that has waited
// for long comes before later jobs of a higher priority.
func Priority(p int) Option {
	return func(c *config) { c.cluster.priority, c.cluster.prioritySet = p, true }
}

// Bounds of Priority.
const (
	MinPriority = wire.MinPriority
	MaxPriority = wire.MaxPriority
)

// WaitTimeout limits the time that a job waits for slots on a cluster. After that time the job
// fails with an error that says how many slots were missing. 0, the default, means no limit.
func WaitTimeout(d time.Duration) Option { return func(c *config) { c.cluster.waitTimeout = d } }

// Copies sets in the memory of how many other workers each worker of a job on a cluster keeps copies of
// the states of queues: 0 to 3; the default is 1. If so many workers are lost at a time, the job
// continues after the last superstep that was copied, without CheckpointDir. States are copied after
// each superstep, or less often if copying would take more than a fiftieth of the time. A state takes
// memory for each copy, besides that of --memory.
func Copies(n int) Option {
	return func(c *config) { c.cluster.copies, c.cluster.copiesSet = n, true }
}

// wireCopies returns the number of copies for the workers.
func (c *clusterConfig) wireCopies() int {
	if c.copiesSet && c.copies == 0 {
		return wire.NoCopies
	}
	return c.copies
}

// RestartStrategy says whether and when a cluster restarts a job after the loss of a worker.
type RestartStrategy int

const (
	// ExponentialDelay waits longer before every restart: first for Restart.Delay, then for twice
	// the time, up to one minute. It is the default.
	ExponentialDelay = RestartStrategy(wire.RestartExponentialDelay)
	// FixedDelay restarts the job a number of times, always after the same time.
	FixedDelay = RestartStrategy(wire.RestartFixedDelay)
	// FailureRate restarts the job at most a number of times within any period of a given length,
	// always after the same time.
	FailureRate = RestartStrategy(wire.RestartFailureRate)
	// NeverRestart fails the job with its first attempt.
	NeverRestart = RestartStrategy(wire.RestartNone)
)

// String returns the name of the strategy, as for --restart.
func (s RestartStrategy) String() string { return wire.RestartStrategy(s).String() }

// Restart configures the restarts of a job, for the option Restarts. A zero field means the
// default.
type Restart struct {
	Strategy RestartStrategy
	// Attempts is the largest number of restarts, for FailureRate within Window. The default is 3,
	// for ExponentialDelay that there is no limit.
	Attempts int
	// Delay is the time from the loss of an attempt to the next attempt, for ExponentialDelay that
	// of the first restart. The default is one second.
	Delay time.Duration
	// Window is the period of FailureRate. For ExponentialDelay it is the time that an attempt
	// must run so that the next delay is the first again. The default is 10 minutes.
	Window time.Duration
}

// Restarts sets what happens if a worker of a job on a cluster is lost: a process was killed, a
// machine or connection failed, or user code ended the process. The job then continues with another
// attempt, after the last superstep whose state is left in the memory of the other workers (Copies) or
// in a checkpoint (CheckpointDir), and otherwise at superstep 1. The results are the same, bit for bit.
// An error that user code returns, or a panic in a function that the engine called, fails the job at
// once. So does the third crash of a worker in the same way, whatever the strategy is. The default is
// ExponentialDelay with its defaults.
func Restarts(r Restart) Option {
	return func(c *config) {
		c.cluster.restarts = true
		c.cluster.restart = wire.Restart{Strategy: wire.RestartStrategy(r.Strategy), Attempts: r.Attempts, Delay: r.Delay, Window: r.Window}
	}
}

// check returns an error if an option cannot be used.
func (c *clusterConfig) check() error {
	bad := func(text string) error { return &optionError{text} }
	if c.copies < 0 || c.copies > wire.MaxCopies {
		return bad(fmt.Sprintf("--copies is %d: want 0 to %d", c.copies, wire.MaxCopies))
	}
	if err := c.restart.Check(); err != nil {
		return bad(err.Error())
	}
	if err := wire.CheckPriority(c.priority); err != nil {
		return bad(err.Error())
	}
	if c.address == "" {
		if c.detach {
			return bad("--detach leaves a job to a cluster: say which with --cluster host:port")
		}
		if c.copiesSet {
			return bad("--copies is for jobs on a cluster: say which with --cluster host:port")
		}
		if c.prioritySet {
			return bad("--priority is for jobs on a cluster: say which with --cluster host:port")
		}
		if c.restarts {
			return bad("--restart and its settings are for jobs on a cluster: say which with --cluster host:port")
		}
		return nil
	}
	if _, _, err := client.ParseAddress(c.address); err != nil {
		return bad("--cluster: " + err.Error())
	}
	switch {
	case c.waitTimeout < 0:
		return bad("--wait-timeout is negative: want how long to wait for slots, or 0 to wait for ever")
	case (c.tls.Cert == "") != (c.tls.Key == ""):
		return bad("--tls-cert and --tls-key go together: the certificate is of no use without its key")
	}
	return nil
}

// options returns the options of the connection to the job manager.
func (c *clusterConfig) options(cfg *config) client.Options {
	return client.Options{
		Address: c.address, TokenFile: c.tokenFile, TLS: c.tls, Insecure: c.insecure,
		Logger: cfg.logger, Getenv: c.hooks.getenv,
	}
}
