package collective

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/tune"
)

// TestMessagesToARankThatHasLeft requires that messages to and from rank 1 fail with ErrLeft if
// rank 1 has left before any rank sent a message, when the ranks are not connected yet.
func TestMessagesToARankThatHasLeft(t *testing.T) {
	for name, call := range map[string]func(c *Comm) error{
		"receiving": func(c *Comm) error { return Recv(c, 1, 0, make([]float64, 1)) },
		"sending":   func(c *Comm) error { return Send(c, 1, 0, make([]float64, 1<<20)) },
	} {
		g := NewLocalGroup(2)
		g.Rank(1).Close(nil)
		require.ErrorIs(t, call(g.Rank(0)), ErrLeft, name)
		g.Rank(0).Close(nil)
	}
}

// TestClosingAnEndOverTCP requires that ranks that wait for a rank get ErrLeft if the Comm of
// that rank is closed, even if the TCPGroup of its process is not closed.
func TestClosingAnEndOverTCP(t *testing.T) {
	for leaver := range 3 {
		groups := tcpGroups(t, 3, nil)
		for r, err := range outcomesOf(groups, 3, func(c *Comm) error {
			if err := c.Barrier(context.Background()); err != nil {
				return err
			}
			if c.Rank() == leaver {
				c.Close(nil)
				return nil
			}
			return c.Barrier(context.Background())
		}) {
			if r != leaver {
				require.ErrorIs(t, err, ErrLeft)
			}
		}
		abandon(groups)
	}
}

// TestTagsHave64Bits requires that two tags that differ only in the high 32 bits are different
// tags.
func TestTagsHave64Bits(t *testing.T) {
	tags := []int{0, 1 << 32, -1, 1<<32 - 1, -(1 << 32)}
	executors(t, func(t *testing.T, of ends) {
		for _, err := range callOn(t, of, func(c *Comm) error {
			for i := range tags {
				x := []int64{int64(i)}
				switch c.Rank() {
				case 0:
					if err := Send(c, 1, tags[i], x); err != nil {
						return err
					}
				case 1:
					k := len(tags) - 1 - i
					if err := Recv(c, 0, tags[k], x); err != nil {
						return err
					}
					if x[0] != int64(k) {
						t.Errorf("Recv with tag %d returned message %d", tags[k], x[0])
					}
				}
			}
			return c.Barrier(context.Background())
		}) {
			require.NoError(t, err)
		}
	})
}

// freeAddress returns an address with a port at which nothing listens.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestAddressesWithoutAPortAreProcessesOfTheirOwn requires that ranks with equal addresses and
// port 0 can join as separate processes. Only rank 0 has a port.
func TestAddressesWithoutAPortAreProcessesOfTheirOwn(t *testing.T) {
	addresses := []string{freeAddress(t), "127.0.0.1:0", "127.0.0.1:0"}
	errs := make(chan error, len(addresses))
	groups := make([]*TCPGroup, len(addresses))
	for r := range addresses {
		go func() {
			var err error
			if groups[r], err = NewTCPGroup(t.Context(), r, TCPConfig{Addresses: addresses, JoinTimeout: 5 * time.Second}); err == nil {
				err = groups[r].Rank(r).Barrier(context.Background())
			}
			errs <- err
		}()
	}
	for range addresses {
		require.NoError(t, <-errs)
	}
	closeAll(t, groups)
}

func TestInvalidAddresses(t *testing.T) {
	for want, cfg := range map[string]TCPConfig{
		`rank 0 at "127.0.0.1:0"`:      {Addresses: []string{"127.0.0.1:0", "127.0.0.1:7"}},
		`rank 0 at ""`:                 {Addresses: []string{"", ""}},
		"group of 3 ranks with 1 addr": {Addresses: []string{"127.0.0.1:7"}, Size: 3},
		"missing port":                 {Addresses: []string{"127.0.0.1", "127.0.0.1:7"}},
		"too many colons":              {Addresses: []string{"::::", "127.0.0.1:7"}},
		"either addresses, or":         {Addresses: []string{"127.0.0.1:7"}, Store: FileStore(t.TempDir())},
	} {
		cfg.JoinTimeout = 2 * time.Second
		_, err := NewTCPGroup(t.Context(), 0, cfg)
		require.ErrorContains(t, err, want)
	}
}

// TestATunerWithoutANetwork requires that a group uses the default network if its tuner has no
// network. It also requires that nil contexts are allowed.
func TestATunerWithoutANetwork(t *testing.T) {
	//lint:ignore SA1012 a nil context is one that never ends, as everywhere in this package
	g, err := NewTCPGroup(nil, 0, TCPConfig{Size: 1, Store: FileStore(t.TempDir()), Tuning: &tune.Tuner{}})
	require.NoError(t, err)
	c := g.Rank(0)
	x := []float64{1}
	require.NoError(t, AllReduce(c, &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x}))
	require.NoError(t, Calibrate(nil, c)) //lint:ignore SA1012 see above
	require.NoError(t, g.Close())
}
