package remote

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/transport"
)

// Config says who a worker is and how it speaks to the others. All workers of an
// attempt have the same Workers, Secret, Job and Attempt, and all or none have TLS.
type Config struct {
	Worker  int // this one, from 0
	Workers int // in all

	// Listen is where to take connections, host or host:port; "" is the loopback
	// address, and no port any free one. Advertise is what others connect to, host or
	// host:port, where that is different: it must be said if Listen is all interfaces.
	Listen    string
	Advertise string

	// Secret is known to the workers of the attempt alone, at least 16 bytes. Each side
	// of a connection proves that it knows it; it is never sent.
	Secret []byte

	// TLS encrypts the connections if not nil, as client and as server; whoever connects
	// must show a certificate if ClientCAs or RootCAs are given. Without a ServerName the
	// host of the address is what a certificate must name.
	TLS *tls.Config

	// NoChecksum leaves away the checksums of what is sent, which finds what TCP's own 16
	// bits let pass; heads of frames keep theirs. All workers must say the same. With TLS,
	// which authenticates what it carries, there is none in any case.
	NoChecksum bool

	Job     string // keeps jobs apart
	Attempt int    // keeps the attempts of a job apart, at least 0

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

	// helloTimeout is how long a connection has for its handshake, on both sides.
	helloTimeout = 10 * time.Second

	// spareStrangers is how many connections may be in their handshakes at once beside
	// one from every worker.
	spareStrangers = 16
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
	if c.TLS != nil {
		c.TLS = c.TLS.Clone()
		if c.TLS.ClientCAs == nil {
			c.TLS.ClientCAs = c.TLS.RootCAs
		}
		if c.TLS.ClientCAs != nil {
			c.TLS.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		c.Listen = net.JoinHostPort(cmp.Or(c.Listen, "127.0.0.1"), "0")
	}
	return c, c.check()
}

func (c *Config) check() error {
	switch {
	case c.Workers < 1 || c.Workers > maxWorkers:
		return fmt.Errorf("a job has 1 to %d workers, not %d", maxWorkers, c.Workers)
	case c.Worker < 0 || c.Worker >= c.Workers:
		return fmt.Errorf("there is no worker %d among %d", c.Worker, c.Workers)
	case c.Workers > 1 && len(c.Secret) < minSecret:
		return fmt.Errorf("a secret of %d bytes is too short: the workers of an attempt share at least %d", len(c.Secret), minSecret)
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
func (n *Network) summed() bool { return !n.cfg.NoChecksum && n.cfg.TLS == nil }

// perPeer is how many messages each other worker may have under way to an inbox. Two
// let one be stored while the next travels.
func (c *Config) perPeer() int {
	others := max(1, c.Workers-1)
	return max(min(2, c.Credits), c.Credits/others)
}

// advertised is the address that others connect to.
func (c *Config) advertised(listening net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return "", err
	}
	if c.Advertise != "" {
		if h, p, err := net.SplitHostPort(c.Advertise); err != nil {
			host = c.Advertise
		} else if host = h; p != "" && p != "0" {
			port = p
		}
	}
	if ip, err := netip.ParseAddr(host); c.Workers > 1 && (host == "" || err == nil && ip.IsUnspecified()) {
		return "", errors.New("it listens on all interfaces: say by which address the others reach it")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("the port %q to advertise is not a number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}
