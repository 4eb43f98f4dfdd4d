package membership

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/tlstest"
)

// standings has the states of ranks, which a test sets.
type standings struct{ atomic.Pointer[[]State] }

func (s *standings) set(states ...State) { s.Store(&states) }

func (s *standings) look() []State {
	if p := s.Load(); p != nil {
		return *p
	}
	return nil
}

// joinStanding starts a group of n processes whose states the test sets.
func joinStanding(t *testing.T, n int, change func(c *Config)) ([]*Membership, []standings) {
	return joinStandingAt(t, n, nil, change)
}

func joinStandingAt(t *testing.T, n int, ports func(int, *peerlink.Config), change func(c *Config)) ([]*Membership, []standings) {
	at := make([]standings, n)
	return joinAllAt(t, n, ports, func(c *Config) {
		c.State = at[c.Process].look
		if change != nil {
			change(c)
		}
	}), at
}

// cause waits until the group has failed, and returns its cause. The causes of all processes,
// except process without[0], must have the same text.
func cause(t *testing.T, group []*Membership, without ...int) error {
	t.Helper()
	var first error
	for p, m := range group {
		if len(without) > 0 && p == without[0] {
			continue
		}
		<-m.Failed()
		if first == nil {
			first = m.Err()
		}
		require.EqualError(t, m.Err(), first.Error())
	}
	return first
}

var (
	allReduce = &Operation{Hash: 1, Text: `AllReduce "gradient" (4096 float32, sum)`}
	barrier   = &Operation{Hash: 2, Text: "Barrier"}
)

func TestRanksThatDisagreeAreFoundOut(t *testing.T) {
	defer goleak.VerifyNone(t)
	group, at := joinStanding(t, 3, nil)
	defer closeAll(group)
	start := time.Now()
	at[1].set(State{Rank: 1, Seq: 17, Op: allReduce})
	at[2].set(State{Rank: 2, Seq: 17, Op: barrier})
	err := cause(t, group)
	require.EqualError(t, err, `ranks disagree: rank 1 is in AllReduce "gradient" (4096 float32, sum) #17, rank 2 is in Barrier #17`)
	var mismatch *MismatchError
	require.ErrorAs(t, err, &mismatch)
	t.Logf("known after %v", time.Since(start))
}

func TestMismatchIsCompletedFromTheOtherSide(t *testing.T) {
	defer goleak.VerifyNone(t)
	for reporter := range 3 {
		group, at := joinStanding(t, 3, nil)
		other := (reporter + 1) % 3
		at[other].set(State{Rank: other, Seq: 17, Op: barrier})
		own := group[reporter].Fail(Disagreement(reporter, Describe(17, allReduce), other, 17))
		var mismatch *MismatchError
		require.ErrorAs(t, own, &mismatch)
		require.Equal(t, &MismatchError{Rank: reporter, Doing: Describe(17, allReduce), Other: other, OtherDoing: "Barrier #17"}, mismatch)
		require.EqualError(t, cause(t, group), own.Error())
		closeAll(group)
	}
}

func TestStalledGroupEnds(t *testing.T) {
	defer goleak.VerifyNone(t)
	group, at := joinStanding(t, 2, func(c *Config) {
		c.Detection = 400 * time.Millisecond
		c.StallTimeout = 300 * time.Millisecond
	})
	defer closeAll(group)
	at[0].set(State{Rank: 0, Seq: 5, Op: allReduce})
	at[1].set(State{Rank: 1, Seq: 5, Op: allReduce})
	err := cause(t, group)
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorContains(t, err, `ranks 0 and 1 are in AllReduce "gradient" (4096 float32, sum) #5`)
}

func TestWaitingForARankThatLeftFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	group, at := joinStanding(t, 3, nil)
	defer closeAll(group)
	at[1].set(State{Rank: 1, Seq: 5})
	at[2].set(State{Rank: 2, Seq: 6, Op: barrier})
	require.NoError(t, group[1].Leave(t.Context()))
	err := cause(t, group, 1)
	require.ErrorIs(t, err, ErrLeft)
	var peer *PeerError
	require.ErrorAs(t, err, &peer)
	require.Equal(t, 1, peer.Rank)
	require.Equal(t, "Barrier #6", peer.During)
	require.NoError(t, group[1].Err())
	require.EqualError(t, group[1].Fail(io.EOF), "EOF", "the coordinator must ignore the report of a process that has left")
}

func TestCoordinatorThatCannotWaitTakesTheGroupAlong(t *testing.T) {
	defer goleak.VerifyNone(t)
	group := joinAll(t, 3, nil)
	require.NoError(t, group[2].Leave(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, group[0].Leave(ctx), context.Canceled)
	err := cause(t, group, 2)
	require.ErrorIs(t, err, ErrLeft)
	require.EqualError(t, err, "rank 0 (127.0.0.1:1000) left the group that it coordinates")
	require.EqualError(t, group[1].Leave(t.Context()), err.Error())
	closeAll(group)
	for _, m := range group {
		m.Close()
	}
	require.Error(t, group[1].Fail(io.EOF))
}

func TestRefusalsArriveWithTheirReason(t *testing.T) {
	defer goleak.VerifyNone(t)
	group := joinAll(t, 2, func(c *Config) { c.Attempt = 5 })
	defer closeAll(group)
	address := group[0].cfg.Port.Address()
	for want, change := range map[string]func(c *Config){
		"process 1 has joined before": func(c *Config) {},
		`attempt 4 of the control connection of group "` + t.Name() + `" is over: this is attempt 5`: func(c *Config) { c.Attempt = 4 },
		`nobody here expects such a control connection: this is group "` + t.Name():                  func(c *Config) { c.Group = "another" },
		`this is still attempt 5 of the control connection of group "` + t.Name() + `", not 6`:       func(c *Config) { c.Attempt = 6 },
	} {
		cfg := Config{Process: 1, Processes: 2, Ranks: []int{1}, Size: 2, Coordinator: address, Group: t.Name(), Attempt: 5}
		change(&cfg)
		var err error
		for cfg.JoinTimeout = 100 * time.Millisecond; ; cfg.JoinTimeout *= 2 { // on a busy machine the refusal may arrive after the timeout
			_, err = joinAt(t, t.Context(), cfg, nil)
			if !errors.Is(err, ErrTimeout) || strings.Contains(err.Error(), want) {
				break
			}
		}
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, group[0].Err())
}

// TestNewAttemptReplacesTheOldOne requires that a later attempt of a group at the same ports
// replaces the earlier attempt, whether the earlier attempt has failed or not. If it has not
// failed, its members must get ErrReplaced.
func TestNewAttemptReplacesTheOldOne(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, fails := range []bool{true, false} {
		first := joinAll(t, 3, nil)
		at := first[0].cfg.Port.Address()
		again := func(p int, attempt uint32, port *peerlink.Port) (*Membership, error) {
			return Join(t.Context(), Config{
				Process: p, Processes: 3, Ranks: []int{p}, Size: 3, Coordinator: at, Group: t.Name(), Attempt: attempt, Port: port,
			})
		}
		if fails { // simulates the death of process 1
			end(first[1])
			<-first[0].Failed()
			<-first[2].Failed()
		}
		ports := []*peerlink.Port{first[0].cfg.Port, newPort(t, nil), first[2].cfg.Port}
		second := make([]*Membership, 3)
		var run sync.WaitGroup
		for p := range second {
			run.Go(func() {
				var err error
				second[p], err = again(p, 2, ports[p])
				require.NoError(t, err)
			})
		}
		run.Wait()
		for p, m := range first {
			if fails && p == 1 {
				continue
			}
			<-m.Failed()
			if !fails {
				require.ErrorIs(t, m.Err(), ErrReplaced)
				require.EqualError(t, m.Err(), "a later attempt has begun, 2")
			}
			m.Close()
		}
		for _, m := range second {
			require.NoError(t, m.Err())
		}
		_, err := again(1, 1, ports[1])
		require.ErrorContains(t, err, "is over: this is attempt 2")
		closeAll(second)
		if !fails {
			require.NoError(t, first[1].cfg.Port.Close())
		}
	}
}

func TestNewAttemptWaitsForTheOldOneToGo(t *testing.T) {
	defer goleak.VerifyNone(t)
	cfg := func(process int, attempt uint32, at string) Config {
		return Config{Process: process, Processes: 2, Ranks: []int{process}, Size: 2, Coordinator: at, Attempt: attempt}
	}
	at := newPort(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	first := cfg(0, 1, at.Address())
	first.Port = at
	old, err := newCoordinator(ctx, func() Config { c, _ := first.completed(); return c }())
	require.NoError(t, err)
	next := cfg(1, 2, at.Address())
	next.Port = newPort(t, nil)
	late, err := next.completed()
	require.NoError(t, err)
	_, err = joinAtAny(ctx, ctx, &late)
	require.ErrorContains(t, err, "this is still attempt 1")
	require.False(t, peerlink.IsFinal(err), "the refusal must not be final")

	var run sync.WaitGroup
	defer run.Wait()
	run.Go(func() {
		m, err := Join(t.Context(), late)
		require.NoError(t, err)
		require.NoError(t, m.Leave(t.Context()))
		end(m)
	})
	cancel()
	old.close()
	second := cfg(0, 2, at.Address())
	second.Port = at
	m, err := Join(t.Context(), second)
	require.NoError(t, err)
	require.NoError(t, m.Leave(t.Context()))
	end(m)
}

// TestConnectionWithoutHelloChangesNothing requires that accepted connections on which no hello
// of this package arrives do not affect the group.
func TestConnectionWithoutHelloChangesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	before := descriptors(t)
	group := joinAll(t, 2, nil)
	port := newPort(t, nil)
	for _, bytes := range []string{
		"", "GET / HTTP/1.1\r\n\r\n", string(binary.LittleEndian.AppendUint32(nil, 1<<31)),
		"\x01\x00\x00\x00\x05", "\x06\x00\x00\x00\x01PETS\x01",
	} {
		nc, err := port.Dial(t.Context(), group[0].cfg.Port.Address(), peerlink.Hello{Kind: peerlink.Control, Scope: t.Name(), Epoch: 1})
		require.NoError(t, err)
		_, err = io.WriteString(nc, bytes)
		require.NoError(t, err)
		if len(bytes) >= frameHead {
			_, err = nc.Read(make([]byte, 1))
			require.Error(t, err, "the connection must be closed without an answer")
		}
		require.NoError(t, nc.Close())
	}
	for _, m := range group {
		require.NoError(t, m.Err())
	}
	closeAll(group)
	require.NoError(t, port.Close())
	require.Equal(t, before, descriptors(t))
}

func TestMemberThatSendsNonsenseIsLost(t *testing.T) {
	defer goleak.VerifyNone(t)
	group := joinAll(t, 2, nil)
	defer closeAll(group)
	c := group[1].link.(*conn)
	c.mu.Lock()
	frame, err := appendFrame(nil, c.sent, beat{})
	c.mu.Unlock()
	require.NoError(t, err)
	frame[frameHead] = 200
	resum(frame)
	_, err = c.nc.Write(frame)
	require.NoError(t, err)
	require.ErrorContains(t, cause(t, group), "rank 1 (127.0.0.1:1001) sent what is no message")
}

func TestUnspecifiedDataAddressBecomesThatOfTheSocket(t *testing.T) {
	defer goleak.VerifyNone(t)
	group := joinAll(t, 3, func(c *Config) { c.DataAddress = []string{"0.0.0.0:70", "[::]:71", ":72"}[c.Process] })
	defer closeAll(group)
	for p, peer := range group[2].Table() {
		require.Equal(t, fmt.Sprintf("127.0.0.1:7%d", p), peer.Address)
	}
	for _, bad := range []string{"nowhere", "127.0.0.1"} {
		_, err := joinAt(t, t.Context(), Config{Processes: 1, Ranks: []int{0}, Size: 1, DataAddress: bad}, nil)
		require.ErrorContains(t, err, bad)
	}
	at, err := advertised(t.Context(), "localhost:7", ipOf(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}))
	require.NoError(t, err)
	require.Contains(t, []string{"127.0.0.1:7", "[::1]:7"}, at, "a host name for the loopback address must be replaced by this address")
}

func TestCandidatesOfAPort(t *testing.T) {
	everywhere, here := &net.TCPAddr{IP: net.IPv4zero, Port: 70}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 70}
	got, err := candidates("127.0.0.1:70", here)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:70", got)
	got, err = candidates("node7:71", here)
	require.NoError(t, err)
	require.Equal(t, "node7:71,127.0.0.1:70", got)
	got, err = candidates("0.0.0.0:70", everywhere)
	require.NoError(t, err)
	require.Contains(t, got, "127.0.0.1:70", "the loopback address must be among the candidates")
	require.NotContains(t, got, "0.0.0.0")
	got, err = candidates("node7:70", everywhere)
	require.NoError(t, err)
	require.Regexp(t, `^node7:70,.*127\.0\.0\.1:70`, got)
}

func TestInvalidConfigs(t *testing.T) {
	port := newPort(t, nil)
	defer port.Close()
	good := Config{Process: 1, Processes: 2, Ranks: []int{3, 1}, Size: 4, Coordinator: "x:1", Port: port}
	_, err := good.completed()
	require.NoError(t, err)
	for want, change := range map[string]func(c *Config){
		"1 to 16384 processes":   func(c *Config) { c.Processes = 0 },
		"no process 2":           func(c *Config) { c.Process = 2 },
		"1 to 524288 ranks":      func(c *Config) { c.Size = 0 },
		"hosts no rank":          func(c *Config) { c.Ranks = nil },
		"rank 4":                 func(c *Config) { c.Ranks = []int{4} },
		"rank 1 twice":           func(c *Config) { c.Ranks = []int{1, 1} },
		"needs a port":           func(c *Config) { c.Port = nil },
		"and not both":           func(c *Config) { c.Coordinator = "" },
		"not both":               func(c *Config) { c.Store = FileStore(t.TempDir()) },
		"detection time of 1ms":  func(c *Config) { c.Detection = time.Millisecond },
		"join timeout of -1s":    func(c *Config) { c.JoinTimeout = -time.Second },
		"the group has 300 byte": func(c *Config) { c.Group = string(make([]byte, 300)) },
	} {
		bad := good
		change(&bad)
		_, err := Join(t.Context(), bad)
		require.ErrorContains(t, err, want)
	}
}

func TestFileStore(t *testing.T) {
	s := FileStore(filepath.Join(t.TempDir(), "new"))
	var run sync.WaitGroup
	run.Go(func() {
		v, err := s.Get(t.Context(), "a/b")
		require.NoError(t, err)
		require.Equal(t, "first", string(v))
	})
	require.NoError(t, s.Set(t.Context(), "c", []byte("other")))
	require.NoError(t, s.Set(t.Context(), "a/b", []byte("first")))
	run.Wait()
	require.NoError(t, s.Set(t.Context(), "a/b", []byte("second")))
	v, err := s.Get(t.Context(), "a/b")
	require.NoError(t, err)
	require.Equal(t, "second", string(v))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Get(ctx, "nothing")
	require.ErrorIs(t, err, context.Canceled)
}

func TestStaleAddressInTheStore(t *testing.T) {
	defer goleak.VerifyNone(t)
	store := FileStore(t.TempDir())
	cfg := func(p int) Config {
		return Config{Process: p, Processes: 2, Ranks: []int{p}, Size: 2, Store: store, Group: "again", Attempt: 3}
	}
	c := cfg(0)
	require.NoError(t, store.Set(t.Context(), c.key(), []byte("127.0.0.1:1"))) // an address at which no process listens
	var run sync.WaitGroup
	for p := range 2 {
		run.Go(func() {
			m, err := joinAt(t, t.Context(), cfg(p), nil)
			require.NoError(t, err)
			require.NoError(t, m.Leave(t.Context()))
			end(m)
		})
	}
	run.Wait()
}

func TestTLS(t *testing.T) {
	defer goleak.VerifyNone(t)
	secure := tlstest.NewConfig(t)
	group := joinAllAt(t, 3, func(_ int, c *peerlink.Config) { c.TLS = secure }, nil)
	cfg := Config{
		Process: 1, Processes: 3, Ranks: []int{1}, Size: 3, Coordinator: group[0].cfg.Port.Address(), Group: t.Name(), Attempt: 1,
		JoinTimeout: 100 * time.Millisecond,
	}
	_, err := joinAt(t, t.Context(), cfg, nil)
	require.ErrorIs(t, err, ErrTimeout, "a process without TLS must not join")
	_, err = joinAt(t, t.Context(), cfg, func(c *peerlink.Config) { c.TLS = &tls.Config{RootCAs: secure.RootCAs} })
	require.Error(t, err, "a process without a certificate must not join")

	require.EqualError(t, group[2].Fail(errors.New("the disk is full")), "the disk is full")
	require.EqualError(t, cause(t, group), "the disk is full")
	closeAll(group)
}

var secret = []byte("a secret of a group of processes")

// TestGroupsWithSecrets requires that processes with the same secret form a group, and that a
// process without the secret is refused. The errors on both sides must say so.
func TestGroupsWithSecrets(t *testing.T) {
	defer goleak.VerifyNone(t)
	group := joinAllAt(t, 3, func(_ int, c *peerlink.Config) { c.Secret = secret }, nil)
	closeAll(group)
	for _, c := range []struct {
		lead, follow []byte
		says         error
	}{
		{secret, []byte("another"), peerlink.ErrSecret},
		{secret, nil, peerlink.ErrNoSecret},
		{nil, secret, peerlink.ErrNoSecret},
	} {
		store := FileStore(t.TempDir())
		var both sync.WaitGroup
		errs := make([]error, 2)
		for p := range 2 {
			both.Go(func() {
				m, err := joinAt(t, context.Background(), Config{
					Process: p, Processes: 2, Ranks: []int{p}, Size: 2, Store: store, Group: "g", JoinTimeout: 2 * time.Second,
				}, func(cfg *peerlink.Config) { cfg.Secret = [][]byte{c.lead, c.follow}[p] })
				if err == nil {
					end(m)
				}
				errs[p] = err
			})
		}
		both.Wait()
		require.ErrorIs(t, errs[1], c.says)
		require.ErrorContains(t, errs[0], "waiting for process 1 of 2: have they started? (refused: a process at 127.0.0.1:")
		require.ErrorContains(t, errs[0], c.says.Error())
	}
}
