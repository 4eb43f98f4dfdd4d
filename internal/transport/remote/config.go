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

// Config says who a worker is and how it speaks to the others. All workers of an
// attempt have the same Workers and Attempt, and ports of the same job and secret.
type Config struct {
	Worker  int // this one, from 0
	Workers int // in all

	// Port is where this worker is reached, and how it reaches the others; with a secret
	// of at least 16 bytes, and a name for others to connect to, if there are others. It
	// stays its owner's, who closes it after the network.
	Port *peerlink.Port

	// NoChecksum leaves away the checksums of what is sent, which finds what TCP's own 16
	// bits let pass; heads of frames keep theirs. All workers must say the same. With TLS,
	// which authenticates what it carries, there is none in any case.
	NoChecksum bool

	Attempt int // keeps the attempts of a job apart, at least 0

	// Credits is how many messages may be under way to an inbox, as in transport.Mem:
	// from this process, and from all others together, of which each may have two in
	// any case; 0 is transport.DefaultCredits.
	Credits int

	// EdgeName, if set, says whose rows an edge carries, for errors; "" where it does
	// not know. It is called from any goroutine.
	EdgeName func(edge int) string

	// Allocator has the memory of the rows that arrive; nil is the Go heap.
	Allocator memory.Allocator

	// Fail is called once, with the first failure: a *PeerError. Sends fail with it from
	// then on. It must return soon, and not close the network. Nil: nobody is told.
	Fail func(error)

	// Detection is how long a worker to which there is a connection may be silent before
	// it counts as lost; 0 is 4 s. One whose connection ends is known at once.
	Detection time.Duration

	// ConnectTimeout is how long it may take to reach another worker; 0 is 20 s.
	ConnectTimeout time.Duration

	Logger hclog.Logger // nil: none

	bare       bool  // frames have no checksums, as said or as connections are encrypted
	maxMessage int64 // of tests; 0: MaxMessage
	window     int64 // of tests; 0: queueBytes
}

// MaxMessage bounds a message in bytes, as it is sent.
const MaxMessage = 256 << 20

const (
	defaultDetection = 4 * time.Second
	defaultConnect   = 20 * time.Second // less than groups take to give up, as this says more
	minDetection     = 50 * time.Millisecond
	minSecret        = 16
	maxWorkers       = 1 << 16

	// queueBytes is how much waits to be written to one worker before senders wait:
	// enough to keep a socket busy, and little beside a budget.
	queueBytes = 4 << 20

	// closeTimeout bounds the wait for others to take what was sent, and to say good-bye.
	closeTimeout = 10 * time.Second

	maxReason = 512 // bytes of what is said of damage
)

// completed checks a config and fills in what it leaves open.
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

// summed says whether what frames carry has checksums.
func (n *Network) summed() bool { return !n.cfg.bare }

// perPeer is how many messages each other worker may have under way to an inbox. Two
// let one be stored while the next travels.
func (c *Config) perPeer() int {
	others := max(1, c.Workers-1)
	return max(min(2, c.Credits), c.Credits/others)
}
