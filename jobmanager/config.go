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
	// Dir is the work directory, for executables, results, logs and the history of jobs. It is
	// made if it does not exist. Only one job manager at a time can use it.
	Dir string

	// Token is the token that clients and task managers must send. If it is empty, it is read
	// from TokenFile, which is made if it does not exist. The default TokenFile is the file
	// where the same user's clients look for the token of a job manager on this port.
	Token     security.Token
	TokenFile string
	// TLS has the names of the certificate files; zero means no TLS.
	TLS security.TLSFiles
	// Insecure allows Listen to be an address that other machines can reach although there is
	// no TLS.
	Insecure bool

	// MaxConnections bounds the number of open connections; default 8192. Each task manager has
	// one connection, and each worker has one while it has something to deliver. At the bound,
	// connections on which no token was shown are closed to accept new ones. Without a token, a
	// connection is closed after some seconds in any case.
	MaxConnections int
	// MaxArtifact is the maximum size of an executable in bytes; default 1 GiB.
	MaxArtifact int64
	// ArtifactCache is the maximum total size of all executables in bytes; default 8 GiB, and
	// never less than MaxArtifact.
	ArtifactCache int64
	// NoUploads makes the job manager refuse uploads, so that it only runs built-in jobs.
	NoUploads bool
	// MaxResult bounds the total size, in bytes, of the collected rows and printed text of a
	// job; default 4 GiB. A job that sends more fails.
	MaxResult int64
	// MaxLog bounds how many bytes of the output of one worker are kept; default 4 MiB.
	MaxLog int64
	// KeepJobs is the maximum number of ended jobs that are kept; default 1000.
	KeepJobs int
	// KeepBytes bounds the total size, in bytes, of the results and logs of all ended jobs;
	// default 16 GiB. Results and logs of the oldest jobs are removed first; the jobs stay in
	// the history.
	KeepBytes int64

	// MinFree is the number of bytes that must be free on the disk of Dir, or no jobs are
	// accepted; 0 means no minimum. Jobs are then accepted again once 1.25 times MinFree is
	// free.
	MinFree int64
	// DiskFree returns the number of free bytes on the disk of Dir; the default asks the
	// operating system.
	DiskFree func() (int64, error)

	// Heartbeat, Detection and Lease are those of core.Config; zero means the defaults there.
	Heartbeat time.Duration
	Detection time.Duration
	Lease     time.Duration
	// AttachGrace is how long the client of an attached job may be disconnected before the job
	// is cancelled; default 5 s.
	AttachGrace time.Duration
	// WriteTimeout is how long a client or task manager may take to read one message, and how
	// long an upload may make no progress, before the connection is closed; default 30 s.
	WriteTimeout time.Duration
	// Executable is run by the workers of jobs that name no executable, such as jobs submitted
	// by HTTP. Clients of the same build need not upload theirs. The default is the executable
	// of this process.
	Executable programs.Program
	// Policy says how slots are chosen among the free ones.
	Policy core.Policy

	// Logger gets the log; the default discards it.
	Logger hclog.Logger
	// Build is the version that is shown to users; the default is the version of the binary.
	Build string
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// DefaultListen is the default of Config.Listen.
const DefaultListen = "127.0.0.1:6123"

// withDefaults returns c with the defaults filled in, or an error if a value is not valid.
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
