package taskmanager

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Config says what a task manager offers, and to whom. JobManager and Dir must be
// given; a zero in any other field is its default.
type Config struct {
	// JobManager is the address of the job manager, host:port.
	JobManager string
	// DialOptions come on top of wire.DialOptions: the credentials of the connection,
	// the token.
	DialOptions []grpc.DialOption

	// Name is what people call this task manager; the default is its host with the
	// start of its identity.
	Name string
	// Host is the name or address of this machine, the default of Listen. Its own
	// default is 127.0.0.1 if the job manager is reached by loopback, else the machine's
	// name.
	Host string
	// Listen is the host on which workers accept data connections. Advertise is the host by
	// which other workers reach them, and for which they get certificates. The default of
	// Advertise is Listen. If that is all interfaces ("0.0.0.0"), it is Host if that is given,
	// or else the address with which this machine reaches the job manager.
	Listen, Advertise string
	// Ports are the ports on which workers listen, one each; the default is any free one. One
	// worker runs for each job with slots here, so the range needs as many ports as there are
	// slots.
	Ports wire.Ports

	// Slots is how many subtasks of each vertex can run here; the default is the number of
	// processors.
	Slots int
	// Memory is the total of the budgets of all slots in bytes. The default is a quarter of the
	// machine's memory, like the budget of a local run, or 1 GiB where that is unknown.
	Memory int64

	// Dir is the work directory: identity, executables, and what workers spill. No two
	// task managers share one.
	Dir string
	// CacheLimit bounds the bytes of the artifacts kept; the default is 4 GiB.
	CacheLimit int64

	// Near is a directory with executables by hash, on the same file system as Dir: that of a
	// job manager on this machine, run by the same user. These executables are linked instead
	// of fetched. The default is none.
	Near string

	// MinFree is the number of bytes that the disk of Dir must have free for the task manager
	// to take work; 0: no minimum. Once it takes no work, it takes some again when a quarter
	// more than MinFree is free.
	MinFree int64

	// Heartbeat and Lease replace the times that the job manager sets.
	Heartbeat, Lease time.Duration
	// Silence is how long a worker may be silent; the default is 4 s.
	Silence time.Duration
	// Startup is how long a process may take to its first frame; the default is 30 s.
	Startup time.Duration
	// Grace is how long a worker that was told to end may go on; the default is 25 s. A
	// worker gives user code 10 s of it.
	Grace time.Duration

	// Environ is the environment whose harmless variables workers inherit; the default is that
	// of this process.
	Environ []string
	// PassEnv names variables that they inherit as well.
	PassEnv []string

	// Seed makes the waits between attempts to connect repeatable; 0 draws one.
	Seed uint64
	// Logger gets the log; the default discards it.
	Logger hclog.Logger
	// Launcher starts worker processes; the default starts those of the operating
	// system.
	Launcher Launcher
}

// Defaults.
const (
	defaultCache   = 4 << 30
	defaultMemory  = 1 << 30
	defaultSilence = 4 * time.Second
	defaultStartup = 30 * time.Second
	defaultGrace   = 25 * time.Second

	maxSlots = 1 << 16
)

// complete checks a configuration and fills in the defaults, except for the name.
func (c Config) complete() (Config, error) {
	if _, _, err := net.SplitHostPort(c.JobManager); err != nil {
		return c, fmt.Errorf("task manager: the job manager's address is to be host:port: %w", err)
	}
	switch {
	case c.Dir == "":
		return c, errors.New("task manager: it needs a work directory")
	case c.Ports.Check() != nil:
		return c, fmt.Errorf("task manager: %w", c.Ports.Check())
	case c.Slots < 0 || c.Slots > maxSlots:
		return c, fmt.Errorf("task manager: %d slots: it can have from 1 to %d", c.Slots, maxSlots)
	case c.MinFree < 0:
		return c, fmt.Errorf("task manager: %d bytes free at least: that cannot be negative", c.MinFree)
	case c.Memory < 0 || c.CacheLimit < 0:
		return c, fmt.Errorf("task manager: memory (%d) and cache (%d bytes) cannot be negative", c.Memory, c.CacheLimit)
	case min(c.Heartbeat, c.Lease, c.Silence, c.Startup, c.Grace) < 0:
		return c, errors.New("task manager: heartbeat, lease, silence, startup and grace cannot be negative")
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, fmt.Errorf("task manager: work directory: %w", err)
	}
	if c.Advertise == "" {
		c.Advertise = advertised(c.JobManager, c.Host, c.Listen)
	}
	if c.Host == "" {
		c.Host = hostFor(c.JobManager)
	}
	c.Listen = cmp.Or(c.Listen, c.Host)
	c.Slots = cmp.Or(c.Slots, runtime.NumCPU())
	c.Memory = cmp.Or(c.Memory, machineMemory()/4, defaultMemory)
	c.CacheLimit = cmp.Or(c.CacheLimit, defaultCache)
	c.Silence = cmp.Or(c.Silence, defaultSilence)
	c.Startup = cmp.Or(c.Startup, defaultStartup)
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}

// hostFor returns the name by which machines that reach the job manager reach this one.
func hostFor(jobManager string) string {
	host, _, _ := net.SplitHostPort(jobManager)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return "127.0.0.1"
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "127.0.0.1"
}
