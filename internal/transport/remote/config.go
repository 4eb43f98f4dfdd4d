package remote

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
)

// Config identifies a worker and configures its communication with other workers. All workers
// of an attempt must have the same Workers and Attempt, and ports with the same job and secret.
type Config struct {
	Worker  int // number of this worker, from 0
	Workers int // number of all workers

	// Port accepts and makes the connections of this worker. If there are other workers, the
	// port must have a secret of at least 16 bytes, and a host to which the other workers can
	// connect. The caller must close the port after it has closed the network.
	Port *peerlink.Port

	// NoChecksum turns off the checksums of frame bodies. The checksums detect damage that
	// TCP's own checksum of 16 bits does not detect. Heads of frames always have checksums. All
	// workers must have the same setting. With TLS, which authenticates the data, bodies have
	// no checksums in any case.
	NoChecksum bool

	Attempt int // number of the job's attempt, at least 0; workers of other attempts are refused

	// Credits bounds the number of messages in transit to an inbox, as in transport.Mem. The
	// senders in the worker of the inbox have Credits credits. The other workers together have
	// another Credits credits, which they share equally, but each worker has at least min(2,
	// Credits). 0 means transport.DefaultCredits.
	Credits int

	// EdgeName, if it is not nil, returns a name for the rows of an edge, or "" if the rows
	// have no name. The name is used in errors. EdgeName may be called from any goroutine.
	EdgeName func(edge int) string

	// Allocator allocates the received rows; nil means the Go heap.
	Allocator memory.Allocator

	// Fail is called once, with the first failure, which is a *PeerError. After that, Send
	// returns this error. Fail must return soon, and must not close the network. It may be nil.
	Fail func(error)

	// Detection is the time after which a worker counts as lost if nothing arrives on the
	// connection to it; 0 means 4 s. The end of a connection is detected at once.
	Detection time.Duration

	// ConnectTimeout bounds the time to connect to another worker; 0 means 20 s.
	ConnectTimeout time.Duration

	Logger hclog.Logger // may be nil

	bare       bool  // frame bodies have no checksums, because of NoChecksum or TLS
	maxMessage int64 // for tests; 0 means MaxMessage
	window     int64 // for tests; 0 means queueBytes
}

// MaxMessage is the maximum number of bytes of a message in its encoded form.
const MaxMessage = 256 << 20

const (
	defaultDetection = 4 * time.Second
	defaultConnect   = 20 * time.Second // shorter than the timeout of collective groups, as the error of this package has more information
	minDetection     = 50 * time.Millisecond
	minSecret        = 16
	maxWorkers       = 1 << 16

	// queueBytes is the number of bytes that may be queued for one worker before senders wait.
	// It is large enough to keep a socket busy, and small compared with the memory budget of a
	// worker.
	queueBytes = 4 << 20

	// closeTimeout bounds how long Close waits until other workers have read the queued
	// messages and have sent their good-byes.
	closeTimeout = 10 * time.Second
	// abandonTimeout bounds how long Close waits for the good-byes of other workers after Abandon.
	abandonTimeout = 300 * time.Millisecond

	maxReason = 512 // bytes of the text in a report of damage
)

// completed returns the config with defaults for all fields that are not set, or an error if
// the config is invalid.
func (c Config) completed() (Config, error) {
	c.Detection = cmp.Or(c.Detection, defaultDetection)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, defaultConnect)
	c.maxMessage = cmp.Or(c.maxMessage, MaxMessage)
	c.window = cmp.Or(c.window, queueBytes)
	if c.Credits <= 0 {
		c.Credits = transport.DefaultCredits
	}
	if c.Allocator == nil {
		c.Allocator = memory.NewGoAllocator()
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if err := c.check(); err != nil {
		return c, err
	}
	c.bare = c.NoChecksum || c.Port.Encrypted()
	return c, nil
}

func (c *Config) check() error {
	switch {
	case c.Workers < 1 || c.Workers > maxWorkers:
		return fmt.Errorf("a job has 1 to %d workers, not %d", maxWorkers, c.Workers)
	case c.Worker < 0 || c.Worker >= c.Workers:
		return fmt.Errorf("there is no worker %d among %d", c.Worker, c.Workers)
	case c.Port == nil:
		return errors.New("it has no port")
	case c.Workers > 1 && c.Port.Secret() < minSecret:
		return fmt.Errorf("a secret of %d bytes is too short: the workers of an attempt share at least %d", c.Port.Secret(), minSecret)
	case c.Workers > 1 && c.Port.Everywhere():
		return errors.New("it listens on all interfaces: say by which address the others reach it")
	case c.Attempt < 0 || c.Attempt > math.MaxInt32:
		return fmt.Errorf("an attempt has a number from 0 to %d, not %d", math.MaxInt32, c.Attempt)
	case c.Detection < minDetection:
		return fmt.Errorf("a detection time of %v is less than %v", c.Detection, minDetection)
	case c.ConnectTimeout < 0:
		return fmt.Errorf("a connect timeout of %v is less than 0", c.ConnectTimeout)
	}
	return nil
}

// summed reports whether frame bodies have checksums.
func (n *Network) summed() bool { return !n.cfg.bare }

// perPeer returns how many credits of an inbox each other worker gets. With two credits, one
// message can be stored while the next message is being sent.
func (c *Config) perPeer() int {
	others := max(1, c.Workers-1)
	return max(min(2, c.Credits), c.Credits/others)
}
