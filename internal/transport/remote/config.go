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

// Config identifies a worker and says how it communicates with the others. All workers of an
// attempt have the same Workers and Attempt, and ports of the same job and secret.
type Config struct {
	Worker  int // number of this one, from 0
	Workers int // in all

	// Port accepts and makes the connections of this worker. If there are other workers, it
	// needs a secret of at least 16 bytes, and a host to which others can connect. Its owner
	// closes it after the network.
	Port *peerlink.Port

	// NoChecksum turns off the checksums of frame bodies, which find damage that TCP's own 16
	// bits miss; heads of frames keep theirs. All workers must have the same setting. With TLS,
	// which authenticates the data, there are none in any case.
	NoChecksum bool

	Attempt int // keeps the attempts of a job apart, at least 0

	// Credits is how many messages may be under way to an inbox, as in transport.Mem. This
	// process has that many, and all other processes together have as many again. Each of those
	// has at least min(2, Credits). 0 is transport.DefaultCredits.
	Credits int

	// EdgeName, if set, names the rows of an edge for errors; "" if it does not know. It is
	// called from any goroutine.
	EdgeName func(edge int) string

	// Allocator allocates the rows that arrive; nil is the Go heap.
	Allocator memory.Allocator

	// Fail is called once, with the first failure: a *PeerError. Sends fail with it from then
	// on. It must return soon, and not close the network. It may be nil.
	Fail func(error)

	// Detection is how long a worker to which there is a connection may be silent before it
	// counts as lost; 0 is 4 s. The end of a connection is noticed at once.
	Detection time.Duration

	// ConnectTimeout bounds the time to reach another worker; 0 is 20 s.
	ConnectTimeout time.Duration

	Logger hclog.Logger // nil: none

	bare       bool  // frame bodies have no checksums, by NoChecksum or because of TLS
	maxMessage int64 // for tests; 0: MaxMessage
	window     int64 // for tests; 0: queueBytes
}

// MaxMessage bounds a message in bytes, as it is sent.
const MaxMessage = 256 << 20

const (
	defaultDetection = 4 * time.Second
	defaultConnect   = 20 * time.Second // shorter than the timeout of groups, as this error says more
	minDetection     = 50 * time.Millisecond
	minSecret        = 16
	maxWorkers       = 1 << 16

	// queueBytes is how many bytes may wait to be written to one worker before senders wait:
	// enough to keep a socket busy, and little compared with a budget.
	queueBytes = 4 << 20

	// closeTimeout bounds the wait for others to read what was sent, and to send their
	// good-bye.
	closeTimeout = 10 * time.Second

	maxReason = 512 // bytes of a report of damage
)

// completed checks a config and fills in the defaults.
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

// perPeer returns how many messages each other worker may have under way to an inbox. With two,
// one can be stored while the next is being sent.
func (c *Config) perPeer() int {
	others := max(1, c.Workers-1)
	return max(min(2, c.Credits), c.Credits/others)
}
