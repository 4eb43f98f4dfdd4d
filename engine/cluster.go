package engine

import (
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/client"
	"github.com/superstep-ml/superstep/internal/security"
)

// clusterConfig is what the options say of the cluster that a job is to run on.
type clusterConfig struct {
	address      string // "" runs the job in this process
	tokenFile    string
	tls          security.TLSFiles
	insecure     bool
	detach       bool
	workerBinary string
	waitTimeout  time.Duration
	hooks        clusterHooks
}

// clusterHooks are functions of the command line that are told events and asked questions. Any
// of them may be nil.
type clusterHooks struct {
	// began is called when all questions are asked, before anything is sent.
	began func()
	// planned is called with the plan that the cluster runs, never at the same time as
	// OnProgress.
	planned func(*plan.Plan)
	// confirm asks the user a question that is answered with yes or no.
	confirm func(question string) bool
	// cancelling is called when the job is cancelled because the context ended.
	cancelling func(job string)
	// say shows a line to the user.
	say func(line string)
	// getenv reads the environment; nil is os.Getenv.
	getenv func(string) string
}

// Cluster runs the job on a cluster: address is that of its job manager, "host:port" or "host"
// with port 6123. The program is sent there, unless the cluster has the same bytes already, so
// that all functions run in processes of this build, whatever the builds of the task managers.
// The results are the same, bit for bit. Run stays attached unless Detach is given: the job is
// cancelled when ctx is, or when this process ends.
//
// The token is read from the file of ClusterTokenFile, from the environment's
// SUPERSTEP_TOKEN_FILE or SUPERSTEP_TOKEN, or from where a job manager of the same user left
// it. The connection to a job manager on another machine needs TLS, see ClusterTLS.
//
// A program with a main of its own calls WorkerMain first. Paths that a job reads and writes
// are paths on the cluster's machines.
//
// Without Parallelism a job gets all slots that the cluster has, at most one per shard: no
// result depends on it. BatchRows, IfExists, CheckBroadcasts and CheckState hold on the cluster
// too; MemoryBudget is the budget of each slot there, and of the collected results here.
// SpillDir is each task manager's own.
func Cluster(address string) Option { return func(c *config) { c.cluster.address = address } }

// ClusterTokenFile names the file that has the cluster's token.
func ClusterTokenFile(path string) Option { return func(c *config) { c.cluster.tokenFile = path } }

// ClusterTLS encrypts the connection to the job manager. ca is the file with the certificate of
// the authority that signed the job manager's certificate. cert and key are the files with this
// program's certificate and key, "" if the job manager does not ask for them. `superstep tls
// init` makes all of them.
func ClusterTLS(ca, cert, key string) Option {
	return func(c *config) { c.cluster.tls = security.TLSFiles{CA: ca, Cert: cert, Key: key} }
}

// ClusterInsecure permits a job manager on another machine without TLS. Anybody who can read the
// traffic then learns the token, and can run programs on the cluster with it.
func ClusterInsecure() Option { return func(c *config) { c.cluster.insecure = true } }

// Detach makes Run return once the cluster has accepted the job. The result then holds the
// job's name on the cluster, Result.JobID, and neither rows nor report. The job goes on by
// itself.
func Detach() Option { return func(c *config) { c.cluster.detach = true } }

// WorkerBinary names the build of this program to send to a cluster of another platform; the
// default is the running executable.
func WorkerBinary(path string) Option { return func(c *config) { c.cluster.workerBinary = path } }

// WaitTimeout bounds the time that a job waits for slots on a cluster. After that time it
// fails, saying how many slots were missing. 0, the default, waits for ever.
func WaitTimeout(d time.Duration) Option { return func(c *config) { c.cluster.waitTimeout = d } }

// check says which option cannot be used, "" if all can.
func (c *clusterConfig) check() error {
	bad := func(text string) error { return &optionError{text} }
	if c.address == "" {
		if c.detach {
			return bad("--detach leaves a job to a cluster: say which with --cluster host:port")
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

// options returns how to reach the job manager.
func (c *clusterConfig) options(cfg *config) client.Options {
	return client.Options{
		Address: c.address, TokenFile: c.tokenFile, TLS: c.tls, Insecure: c.insecure,
		Logger: cfg.logger, Getenv: c.hooks.getenv,
	}
}
