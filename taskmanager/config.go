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

// Config configures a task manager. JobManager and Dir must be given; the zero value of any
// other field means its default.
type Config struct {
	// JobManager is the address of the job manager, host:port.
	JobManager string
	// DialOptions are used in addition to wire.DialOptions. They contain the credentials of the
	// connection and the token.
	DialOptions []grpc.DialOption

	// Name is shown to users as the name of this task manager; the default is Host, a hyphen
	// and the first six characters of the task manager's identity.
	Name string
	// Host is the name or address of this machine. It is also the default of Listen. The
	// default of Host is 127.0.0.1 if the job manager's address is a loopback address, and
	// otherwise the machine's name.
	Host string
	// Listen is the host on which workers accept data connections. Advertise is the host by
	// which other workers reach them and for which they get certificates. The default of
	// Advertise is Listen if Listen is given and does not mean all interfaces, as "0.0.0.0"
	// does. Otherwise the default is Host if Host is given, and else the local address of the
	// route to the job manager.
	Listen, Advertise string
	// Ports are the ports on which workers listen, one port for each worker; the default is any
	// free port. The task manager runs one worker for each job that has slots on it. So Ports
	// must have as many ports as there are slots.
	Ports wire.Ports

	// Slots is the number of subtasks of one vertex that this task manager can run at once; the
	// default is the number of processors.
	Slots int
	// Memory is the total memory budget of all slots in bytes. The default is a quarter of the
	// machine's memory, as for the budget of a local run, or 1 GiB if the machine's memory is
	// unknown.
	Memory int64

	// Dir is the work directory. It contains the task manager's identity, executables, and the
	// files to which workers spill. No two task managers may share a work directory.
	Dir string
	// CacheLimit bounds the total size of the cached artifacts in bytes; the default is 4 GiB.
	CacheLimit int64

	// Near is the directory with the executables of a job manager that runs on this machine as
	// the same user. The files in it are named by hash, and it must be on the same file system
	// as Dir. Executables in Near are linked instead of fetched. By default there is no such
	// directory.
	Near string

	// MinFree is a number of bytes. While fewer bytes are free on the disk of Dir, the task
	// manager takes no work; it takes work again when 1.25 times MinFree is free. 0 means no
	// minimum.
	MinFree int64

	// Heartbeat and Lease, if not 0, replace the values that the job manager sends.
	Heartbeat, Lease time.Duration
	// Silence, if it is not 0, is how long a worker may send no frame before it is killed. By default its
	// deployment says that; a process that waits for the next attempt has 4 s.
	Silence time.Duration
	// Startup is how long a worker's process may take until it sends its first frame; the
	// default is 30 s.
	Startup time.Duration
	// Grace is how long a worker may run after it got the command to end; the default is 25 s.
	// Within that time the worker waits up to 10 s for user code to return.
	Grace time.Duration
	// KeepFor is how long the process of a worker that has ended because of other workers waits for
	// the next attempt of its job; the default is 60 s.
	KeepFor time.Duration

	// DrainWithin is how long the task manager stays when it is to stop, until its workers have
	// ended because their jobs go on elsewhere. After that time it kills the workers that are
	// left. 0 means that it kills its workers at once.
	DrainWithin time.Duration
	// AtOnce, if it is not nil, ends the time DrainWithin when it is closed.
	AtOnce <-chan struct{}
	// PreemptionNotice is a command for /bin/sh that runs until this machine is about to be taken
	// away, and then ends with exit code 0. Then the task manager stops. The command has the
	// environment Environ. If it ends in another way, it is started again. The default is no
	// command.
	PreemptionNotice string

	// Environ is the environment from which workers inherit variables; the default is the
	// environment of this process. Workers inherit only variables that are known to hold no
	// secrets.
	Environ []string
	// PassEnv has the names of further variables of Environ that workers inherit.
	PassEnv []string

	// Seed seeds the random waits between attempts to connect; if it is 0, a random seed is
	// used.
	Seed uint64
	// Logger gets the log; the default discards it.
	Logger hclog.Logger
	// Launcher starts worker processes; the default starts processes of the operating system.
	Launcher Launcher
}

// Defaults of Config.
const (
	defaultCache   = 4 << 30
	defaultMemory  = 1 << 30
	defaultSilence = 4 * time.Second
	defaultStartup = 30 * time.Second
	defaultGrace   = 25 * time.Second
	defaultKeepFor = time.Minute

	maxSlots = 1 << 16
)

// complete checks c and returns it with the defaults filled in, except for Name.
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
	case min(c.Heartbeat, c.Lease, c.Silence, c.Startup, c.Grace, c.KeepFor, c.DrainWithin) < 0:
		return c, errors.New("task manager: heartbeat, lease, silence, startup, grace, the time to keep processes and the time to drain cannot be negative")
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
	c.Startup = cmp.Or(c.Startup, defaultStartup)
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	c.KeepFor = cmp.Or(c.KeepFor, defaultKeepFor)
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}

// hostFor returns a name of this machine: 127.0.0.1 if the job manager's address is a loopback
// address, and otherwise the machine's host name.
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
