package mesh

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func localNodes(l *Local, p int) []Node {
	nodes := make([]Node, p)
	for r := range nodes {
		nodes[r] = l.Node(r)
	}
	return nodes
}

func TestLocalCarriesAllTraffic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(2, 4).Draw(t, "ranks")
		channels := rapid.IntRange(1, 3).Draw(t, "channels")
		seed := rapid.Uint64().Draw(t, "seed")
		traffic(t, localNodes(NewLocal(p), p), channels, 20, 1<<18, seed)
	})
}

func TestLocalSendWaitsOnlyForLargeMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLocal(2)
		a, b := open(t, l.Node(0), 1, 0), open(t, l.Node(1), 0, 0)
		require.NoError(t, a.Send(&Header{Length: 8}, make([]byte, 8)))
		done := make(chan error, 1)
		big := make([]byte, 1<<20)
		go func() { done <- a.Send(&Header{Length: 1 << 20}, big) }()
		synctest.Wait()
		require.Empty(t, done)

		var h Header
		require.NoError(t, b.Next(&h))
		require.ErrorContains(t, b.Next(&h), "8 bytes of the previous message were unread")
		require.ErrorContains(t, b.Read(make([]byte, 9)), "9 bytes where 8 are left")
		require.NoError(t, b.Read(make([]byte, 8)))
		require.NoError(t, b.Next(&h))
		require.NoError(t, b.Read(make([]byte, 1<<20-1)))
		synctest.Wait()
		require.Empty(t, done)
		require.NoError(t, b.Read(make([]byte, 1)))
		require.NoError(t, <-done)
	})
}

// TestLocalSmallMessagesAreBounded requires that Send eventually waits if small messages are
// sent to a rank that receives nothing.
func TestLocalSmallMessagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLocal(2)
		c := open(t, l.Node(0), 1, 0)
		sent := 0
		done := make(chan error, 1)
		go func() {
			for {
				if err := c.Send(&Header{Length: 1 << 10}, make([]byte, 1<<10)); err != nil {
					done <- err
					return
				}
				sent++
			}
		}()
		synctest.Wait()
		require.Equal(t, eagerBacklog>>10+1, sent)
		require.Equal(t, l.Node(1).Fail(errors.New("stop")), <-done)
	})
}

func TestLocalPostNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLocal(2)
		a, b := open(t, l.Node(0), 1, 0), open(t, l.Node(1), 0, 0)
		for i := range 100 {
			require.NoError(t, a.Post(&Header{Seq: uint64(i), Length: 1 << 16}, make([]byte, 1<<16)))
		}
		buf := make([]byte, 1<<16)
		for i := range 100 {
			var h Header
			require.NoError(t, b.Next(&h))
			require.Equal(t, uint64(i), h.Seq)
			require.NoError(t, b.Read(buf))
		}
	})
}

func TestLocalFailureWakesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLocal(4)
		cause := errors.New("rank 3 has had enough")
		results := make(chan error, 8)
		go func() {
			results <- open(t, l.Node(0), 1, 0).Next(new(Header))
		}()
		go func() {
			results <- open(t, l.Node(1), 2, 0).Send(&Header{Length: 1 << 20}, make([]byte, 1<<20))
		}()
		halfRead := open(t, l.Node(2), 1, 0)
		require.NoError(t, halfRead.Next(new(Header)))
		require.NoError(t, halfRead.Read(make([]byte, 10)))
		synctest.Wait()
		require.Empty(t, results)

		require.Equal(t, cause, l.Node(3).Fail(cause))
		require.Equal(t, cause, l.Node(2).Fail(errors.New("a later one")))
		synctest.Wait()
		require.Len(t, results, 2)
		require.Equal(t, cause, <-results)
		require.Equal(t, cause, <-results)
		require.Equal(t, cause, halfRead.Read(make([]byte, 1)))
		require.Equal(t, cause, halfRead.Post(&Header{}, nil))
		_, err := l.Node(0).Open(context.Background(), []Route{{2, 0}})
		require.Equal(t, cause, err)
		<-l.Node(0).Failed()
		require.Equal(t, cause, l.Node(0).Err())
	})
}

// TestLocalBorrowedMemoryOutlivesTheGroup requires that Send does not return before the
// receiver returns the borrowed payload, even if the group has ended.
func TestLocalBorrowedMemoryOutlivesTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLocal(2)
		done := make(chan error, 1)
		payload := make([]byte, 1<<16)
		go func() {
			done <- open(t, l.Node(0), 1, 0).Send(&Header{Length: 1 << 16}, payload)
		}()
		b := open(t, l.Node(1), 0, 0)
		require.NoError(t, b.Next(new(Header)))
		lent, err := b.(Borrower).Borrow(1 << 15)
		require.NoError(t, err)
		require.Same(t, &payload[0], &lent[0], "a borrowed message must not be copied")
		_, err = b.(Borrower).Borrow(1)
		require.ErrorContains(t, err, "borrowed")

		cause := l.Node(1).Fail(errors.New("stop"))
		synctest.Wait()
		require.Empty(t, done)
		b.(Borrower).Return()
		require.Equal(t, cause, <-done)
	})
}

func TestLocalLeaving(t *testing.T) {
	l := NewLocal(3)
	a, b := open(t, l.Node(0), 1, 0), open(t, l.Node(1), 0, 0)
	require.NoError(t, a.Post(&Header{Seq: 7}, nil))
	l.Leave(0)
	var h Header
	require.NoError(t, b.Next(&h), "a message sent before Leave must be received")
	require.Equal(t, uint64(7), h.Seq)
	for _, err := range []error{b.Next(&h), b.Send(&h, nil), open(t, l.Node(2), 0, 0).Next(&h)} {
		require.ErrorIs(t, err, membership.ErrLeft)
		require.ErrorContains(t, err, "rank 0 left the group")
	}
	require.True(t, l.States()[0].Left)
	require.False(t, l.States()[1].Left)
	require.NoError(t, l.Node(1).Err(), "a rank that leaves must not end the group")
	require.NoError(t, open(t, l.Node(1), 2, 0).Post(&h, nil))
}

func TestRanksOfAProcessThatDisagree(t *testing.T) {
	l := NewLocal(3)
	barrier := &Operation{Hash: 1, Text: "Barrier"}
	reduce := &Operation{Hash: 2, Text: "AllReduce (4096 float32, sum)"}
	l.Node(0).Begin(16, reduce)
	l.Node(0).Begin(17, reduce)
	l.Node(1).Begin(16, reduce)
	require.NoError(t, l.Node(0).Err())
	begun := func(seqs ...uint64) (all [membership.RecentOps]membership.Begun) {
		for _, seq := range seqs {
			all[seq%membership.RecentOps] = membership.Begun{Seq: seq, Op: reduce}
		}
		return all
	}
	require.Equal(t, []membership.State{
		{Rank: 0, Seq: 17, Op: reduce, Begun: begun(16, 17)}, {Rank: 1, Seq: 16, Op: reduce, Begun: begun(16)}, {Rank: 2},
	}, l.States())
	l.Node(1).End()
	require.Nil(t, l.States()[1].Op)
	l.Node(1).Begin(17, barrier)
	var mismatch *membership.MismatchError
	require.ErrorAs(t, l.Node(2).Err(), &mismatch)
	require.Equal(t, membership.MismatchError{
		Rank: 0, Doing: membership.Describe(17, reduce),
		Other: 1, OtherDoing: membership.Describe(17, barrier),
	}, *mismatch)
}

// TestMismatchIsCompleted requires that the fabric adds the sender's operation to a mismatch
// error. The receiver that reports the error knows only the number of the sender's operation.
func TestMismatchIsCompleted(t *testing.T) {
	for want, op := range map[string]*Operation{"Scan #3": {Hash: 0, Text: "Scan"}, "no operation": nil} {
		l := NewLocal(3)
		if op != nil {
			l.Node(1).Begin(2, &Operation{Text: "of few"})
			l.Node(2).Begin(3, &Operation{Hash: 9, Text: "of other few"})
			l.Node(1).Begin(3, op)
		}
		require.NoError(t, l.Node(0).Err(), "operations with hash 0, in which only some ranks take part, must not be compared")
		err := l.Node(0).Fail(&membership.MismatchError{Rank: 0, Doing: "Barrier #3", Other: 1})
		require.Equal(t, &membership.MismatchError{Rank: 0, Doing: "Barrier #3", Other: 1, OtherDoing: want}, err)
	}
}

func TestRoutesThatDoNotExist(t *testing.T) {
	n := NewLocal(2).Node(0)
	for _, r := range []Route{{2, 0}, {-1, 0}, {0, 0}, {1, -1}, {1, MaxChannels}} {
		_, err := n.Open(context.Background(), []Route{r})
		require.Error(t, err, "%v", r)
	}
	c := open(t, n, 1, 0)
	require.ErrorContains(t, c.Send(&Header{Length: 2}, make([]byte, 1)), "announces 2 bytes")
	require.ErrorContains(t, c.Post(&Header{Length: 1, Absent: true}, make([]byte, 1)), "absent")
	require.NoError(t, n.Err(), "misuse must not end the group")
}

// TestLocalThousandRanks requires that a ring of a thousand ranks, each of which is a
// goroutine, starts no other goroutines.
func TestLocalThousandRanks(t *testing.T) {
	const p = 1000
	before := runtime.NumGoroutine()
	l := NewLocal(p)
	var g errgroup.Group
	for r := range p {
		n := l.Node(r)
		g.Go(func() error {
			conns, err := n.Open(context.Background(), []Route{{(r + 1) % p, 0}, {(r + p - 1) % p, 0}})
			if err != nil {
				return err
			}
			if r == 0 {
				if have := runtime.NumGoroutine(); have > before+p {
					return fmt.Errorf("%d goroutines", have)
				}
			}
			token := []byte{byte(r)}
			for range 3 {
				if err := conns[0].Send(&Header{Length: 1}, token); err != nil {
					return err
				}
				if err := conns[1].Next(new(Header)); err != nil {
					return err
				}
				if err := conns[1].Read(token); err != nil {
					return err
				}
			}
			if want := byte((r + p - 3) % p); token[0] != want {
				return fmt.Errorf("rank %d has token %d, want %d", r, token[0], want)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Len(t, l.fabric.links, p, "only routes that were opened may exist")
}

func TestLocalAllocatesNothing(t *testing.T) {
	l := NewLocal(2)
	for _, size := range []int{0, 8, 4 << 10, 1 << 20} {
		requireNoAllocations(t, l.Node(0), l.Node(1), size)
	}
}

// requireNoAllocations requires that no memory is allocated when messages of the given size are
// sent back and forth by Send and by Post.
func requireNoAllocations(t *testing.T, a, b Node, size int) {
	t.Helper()
	if testsize.Race {
		return // the race detector allocates memory and drops blocks of pools
	}
	pa, pb := newPlayer(open(t, a, b.Rank(), 0), size), newPlayer(open(t, b, a.Rank(), 0), size)
	const rounds = 20
	op := &Operation{Hash: 1, Text: "test"}
	start := make(chan struct{})
	answered := make(chan error)
	go func() {
		for range start {
			err := pb.play(rounds, false)
			if err == nil {
				err = pb.conn.Post(&pb.out, pb.buf)
			}
			answered <- err
		}
		close(answered)
	}()
	var failed error
	allocs := testing.AllocsPerRun(10, func() {
		a.Begin(1, op)
		start <- struct{}{}
		for _, err := range [...]error{pa.play(rounds, true), pa.receive(), <-answered} {
			if err != nil {
				failed = err
			}
		}
		a.End()
	})
	close(start)
	<-answered
	require.NoError(t, failed)
	require.Less(t, allocs, 1.0, "%d messages of %d bytes must not allocate memory", 2*rounds+1, size)
}

func BenchmarkLocalPingPong8B(b *testing.B) {
	l := NewLocal(2)
	first, second := newPlayer(open(b, l.Node(0), 1, 0), 8), newPlayer(open(b, l.Node(1), 0, 0), 8)
	b.ReportAllocs()
	var g errgroup.Group
	g.Go(func() error { return second.play(b.N, false) })
	require.NoError(b, first.play(b.N, true))
	require.NoError(b, g.Wait())
}

func BenchmarkLocalStream1MiB(b *testing.B) {
	l := NewLocal(2)
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	require.NoError(b, stream(open(b, l.Node(0), 1, 0), open(b, l.Node(1), 0, 0), 1<<20, b.N))
}
