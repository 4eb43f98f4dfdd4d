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

// Config configures a job manager. Only Dir has no default.
type Config struct {
	// Listen is the address for task managers and clients; default DefaultListen. An address
	// that other machines can reach needs TLS or Insecure.
	Listen string
	// Listener, if not nil, is used instead of Listen. The job manager closes it.
	Listener net.Listener
	// Dir is the work directory. It has the executables, results, logs and the history of jobs.
	// New makes the directory if it does not exist. Only one job manager at a time can use the
	// directory.
	Dir string

	// Token is the token that clients and task managers must send. If it is empty, New reads it
	// from TokenFile, and makes this file if it does not exist. The default of TokenFile is the
	// file from which clients of the same user read the token of a job manager with this port.
	Token     security.Token
	TokenFile string
	// TLS has the names of the certificate files; the zero value means no TLS.
	TLS security.TLSFiles
	// Insecure allows Listen to be an address that other machines can reach although there is
	// no TLS.
	Insecure bool

	// MaxConnections bounds the number of open connections; default 8192. Each task manager has
	// one connection, and each worker has one while it delivers rows or log lines. When the
	// bound is reached, connections on which no token has been received yet are closed, so that
	// new connections can be accepted. A connection on which no token is received is closed
	// after some seconds in any case.
	MaxConnections int
	// MaxArtifact is the maximum size of an executable in bytes; default 1 GiB.
	MaxArtifact int64
	// ArtifactCache is the maximum total size of all executables in bytes; default 8 GiB, or
	// MaxArtifact if that is more. A value less than MaxArtifact is an error.
	ArtifactCache int64
	// With NoUploads, the job manager refuses uploads, so that it runs only built-in jobs.
	NoUploads bool
	// MaxResult bounds the total size, in bytes, of the collected rows and printed text of a
	// job; default 4 GiB. A job that sends more fails.
	MaxResult int64
	// MaxLog bounds the part of a worker's output that is kept: its last MaxLog bytes; default
	// 4 MiB.
	MaxLog int64
	// KeepJobs is the maximum number of ended jobs that are kept; default 1000.
	KeepJobs int
	// KeepBytes bounds the total size, in bytes, of the results and logs of all ended jobs;
	// default 16 GiB. Above it, the results and logs of the oldest jobs are removed; the jobs
	// stay in the history.
	KeepBytes int64

	// While fewer than MinFree bytes are free on the disk of Dir, no jobs are accepted; 0 means
	// no minimum. Then jobs are accepted again only when 1.25 times MinFree bytes are free.
	MinFree int64
	// DiskFree returns the number of free bytes on the disk of Dir; the default uses a call of
	// the operating system.
	DiskFree func() (int64, error)

	// Heartbeat, Detection and Lease are passed to core.Config; zero means the defaults of
	// core.Config.
	Heartbeat time.Duration
	Detection time.Duration
	Lease     time.Duration
	// Settle, ScaleInterval and Ageing are passed to core.Config too.
	Settle        time.Duration
	ScaleInterval time.Duration
	Ageing        time.Duration
	// AttachGrace is how long the client of an attached job may be disconnected before the job
	// is cancelled, and half of the time that it has after a start of the job manager; default
	// 5 s.
	AttachGrace time.Duration
	// WriteTimeout is how long a client or task manager may take to read one message, and for
	// how long an upload may make no progress, before the connection is closed; default 30 s.
	WriteTimeout time.Duration
	// Workers run Executable for jobs that name no executable, such as jobs submitted by HTTP.
	// Clients with the same executable need not upload it. The default is the executable of
	// this process.
	Executable programs.Program
	// Policy determines which of the free slots a job gets.
	Policy core.Policy

	// Logger receives log messages; the default discards them.
	Logger hclog.Logger
	// Build is the version that is shown to users; the default is the version of the binary.
	Build string
	// Now returns the current time; default time.Now.
	Now func() time.Time
}

// DefaultListen is the default of Config.Listen.
const DefaultListen = "127.0.0.1:6123"

// withDefaults returns c with defaults for all fields that are not set, or an error if a value
// is not valid.
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
		{"settle", int64(c.Settle)}, {"scale-every", int64(c.ScaleInterval)}, {"ageing", int64(c.Ageing)},
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
