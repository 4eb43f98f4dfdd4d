package jobmanager

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// Config is what a job manager is given. Only Dir has no default.
type Config struct {
	// Listen is the address for task managers and clients; default DefaultListen. One
	// that other machines reach needs TLS, or Insecure.
	Listen string
	// Listener is used instead of Listen if it is set, and closed by the job manager.
	Listener net.Listener
	// Dir is the work directory, for executables, results, logs and the history of jobs. It is
	// made if it does not exist. One job manager at a time uses it.
	Dir string

	// Token is what clients and task managers must show. If it is empty, it is read from
	// TokenFile, which is made if it does not exist. The default TokenFile is the file where
	// the same user's clients look for the token of a job manager on this port.
	Token     security.Token
	TokenFile string
	// TLS names the certificates; zero: no TLS.
	TLS security.TLSFiles
	// Insecure allows to listen for other machines without TLS.
	Insecure bool

	// MaxConnections bounds the open connections; default 8192. Each task manager has one, and
	// each worker one while it has something to deliver. At the bound, connections on which no
	// token was shown give way to new ones; they are closed after a while in any case.
	MaxConnections int
	// MaxArtifact is the largest executable in bytes; default 1 GiB.
	MaxArtifact int64
	// ArtifactCache is what all executables together may take; default 8 GiB, and never
	// less than MaxArtifact.
	ArtifactCache int64
	// NoUploads has the job manager run built-in jobs only.
	NoUploads bool
	// MaxResult bounds the collected rows and printed text that are kept of a job, in
	// bytes; default 4 GiB. A job that sends more fails.
	MaxResult int64
	// MaxLog bounds what is kept of the output of one worker, in bytes; default 4 MiB.
	MaxLog int64
	// KeepJobs is how many jobs that have ended are kept; default 1000.
	KeepJobs int
	// KeepBytes bounds the results and logs of all jobs that have ended, in bytes; default 16
	// GiB. Results and logs of the oldest jobs are removed first; the jobs stay in the history.
	KeepBytes int64

	// MinFree is the number of bytes that the disk of Dir must have free for jobs to be
	// accepted; 0: no minimum. After a refusal, jobs are accepted again once a quarter more
	// than MinFree is free.
	MinFree int64
	// DiskFree returns the free bytes of the disk of Dir; default by asking the system.
	DiskFree func() (int64, error)

	// Heartbeat, Detection and Lease set how task managers are watched; zero: the defaults of
	// core.Config.
	Heartbeat time.Duration
	Detection time.Duration
	Lease     time.Duration
	// AttachGrace is how long the client of an attached job may be away before the job
	// is cancelled; default 5 s.
	AttachGrace time.Duration
	// WriteTimeout is how long the other side may take to read one message, and how long an
	// upload may stand still, before the connection is closed; default 30 s.
	WriteTimeout time.Duration
	// Executable runs the jobs that name no executable, such as those submitted by HTTP.
	// Clients of the same build need not upload it. The default is the executable of this
	// process.
	Executable programs.Program
	// Policy chooses among free slots.
	Policy core.Policy

	// Logger gets decisions; default none.
	Logger hclog.Logger
	// Build is the version for people; default that of the binary.
	Build string
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// DefaultListen is where a job manager listens.
const DefaultListen = "127.0.0.1:6123"

// withDefaults fills in what is not set, and refuses what is not valid.
func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("a job manager needs a work directory: give one with --dir")
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"max-artifact", c.MaxArtifact}, {"artifact-cache", c.ArtifactCache}, {"max-result", c.MaxResult}, {"max-log", c.MaxLog},
		{"keep-jobs", int64(c.KeepJobs)}, {"keep-bytes", c.KeepBytes}, {"min-free", c.MinFree}, {"heartbeat", int64(c.Heartbeat)}, {"detection", int64(c.Detection)}, {"lease", int64(c.Lease)},
		{"attach-grace", int64(c.AttachGrace)}, {"write-timeout", int64(c.WriteTimeout)},
	} {
		if n.value < 0 {
			return c, fmt.Errorf("--%s cannot be negative", n.name)
		}
	}
	if c.MaxConnections < 0 {
		return c, fmt.Errorf("a job manager cannot have %d connections: give a number above 0, or 0 for 8192", c.MaxConnections)
	}
	c.MaxConnections = cmp.Or(c.MaxConnections, 8192)
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.MaxArtifact = cmp.Or(c.MaxArtifact, 1<<30)
	if c.ArtifactCache > 0 && c.ArtifactCache < c.MaxArtifact {
		return c, fmt.Errorf("--artifact-cache %d has no room for one executable of --max-artifact %d bytes", c.ArtifactCache, c.MaxArtifact)
	}
	c.ArtifactCache = cmp.Or(c.ArtifactCache, max(8<<30, c.MaxArtifact))
	c.MaxResult = cmp.Or(c.MaxResult, 4<<30)
	c.MaxLog = cmp.Or(c.MaxLog, 4<<20)
	c.KeepJobs = cmp.Or(c.KeepJobs, 1000)
	c.KeepBytes = cmp.Or(c.KeepBytes, 16<<30)
	c.AttachGrace = cmp.Or(c.AttachGrace, 5*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	c.Build = cmp.Or(c.Build, wire.Build())
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
