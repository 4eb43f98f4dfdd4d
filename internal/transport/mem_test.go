package transport

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a receiver that records the messages without their rows. If leave is not nil,
// Receive receives from the channel leave before it takes a message.
type store struct {
	mu    sync.Mutex
	got   []Message
	leave chan struct{}
	lasts sync.WaitGroup // counts the shards whose last message has not arrived yet
}

func (s *store) Receive(m Message) {
	if s.leave != nil {
		<-s.leave
	}
	m.Release()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, m)
	if m.Last {
		s.lasts.Done()
	}
}

func oneRow(mem memory.Allocator) arrow.Record {
	b := array.NewRecordBuilder(mem, arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(1)
	return b.NewRecord()
}

// TestMemOrder requires that the messages of a sender arrive in order, each once, whatever the
// numbers of credits and senders.
func TestMemOrder(t *testing.T) {
	const senders, messages = 4, 500
	for _, credits := range []int{0, 1, 3} {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		n, r := NewMem(credits), &store{}
		require.NoError(t, n.Listen(Address{Edge: 2, Inbox: 1}, r))
		r.lasts.Add(senders)
		var all sync.WaitGroup
		for shard := range senders {
			s, err := n.Dial(Address{Edge: 2, Inbox: 1})
			require.NoError(t, err)
			all.Go(func() {
				for i := range messages {
					m := Message{Shard: shard, Seq: int64(i), Rows: oneRow(mem), Last: i == messages-1}
					if err := s.Send(context.Background(), m); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		r.lasts.Wait()
		require.NoError(t, n.Close())
		next := make([]int64, senders)
		for _, m := range r.got {
			require.Equal(t, next[m.Shard], m.Seq)
			next[m.Shard]++
		}
		mem.AssertSize(t, 0)
	}
}

// TestMemCredits requires that Send waits when the number of queued messages equals the number
// of credits; the message that the receiver is taking does not count.
func TestMemCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, credits := range []int{1, 2, 5} {
			n, r := NewMem(credits), &store{leave: make(chan struct{})}
			require.NoError(t, n.Listen(Address{}, r))
			s, err := n.Dial(Address{})
			require.NoError(t, err)
			sent := 0
			ctx, cancel := context.WithCancelCause(context.Background())
			stop := errors.New("stop")
			go func() {
				for s.Send(ctx, Message{}) == nil {
					sent++
				}
			}()
			synctest.Wait()
			require.Equal(t, credits+1, sent)
			r.leave <- struct{}{}
			synctest.Wait()
			require.Equal(t, credits+2, sent)
			cancel(stop)
			synctest.Wait()
			require.Equal(t, stop, s.Send(ctx, Message{}))
			close(r.leave)
			require.NoError(t, n.Close())
		}
	})
}

// TestMemClose requires that Close releases the messages in transit, and that later calls
// return ErrClosed.
func TestMemClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		n, r := NewMem(4), &store{leave: make(chan struct{})}
		require.NoError(t, n.Listen(Address{}, r))
		s, err := n.Dial(Address{})
		require.NoError(t, err)
		result := make(chan error, 1)
		go func() {
			for {
				if err := s.Send(context.Background(), Message{Rows: oneRow(mem)}); err != nil {
					result <- err
					return
				}
			}
		}()
		synctest.Wait()
		go func() { synctest.Wait(); close(r.leave) }()
		require.NoError(t, n.Close())
		require.ErrorIs(t, <-result, ErrClosed)
		require.NoError(t, n.Close())
		require.ErrorIs(t, s.Send(context.Background(), Message{Rows: oneRow(mem)}), ErrClosed)
		require.ErrorIs(t, n.Listen(Address{Edge: 1}, r), ErrClosed)
		_, err = n.Dial(Address{})
		require.ErrorIs(t, err, ErrClosed)
		mem.AssertSize(t, 0)
	})
}

// TestMemAddresses requires errors for an address without a receiver and for a second receiver
// of an address.
func TestMemAddresses(t *testing.T) {
	n := NewMem(0)
	defer n.Close()
	require.NoError(t, n.Listen(Address{Edge: 1}, &store{}))
	require.EqualError(t, n.Listen(Address{Edge: 1}, &store{}), "listen on edge 1, inbox 0: it has a receiver already")
	_, err := n.Dial(Address{Edge: 1, Inbox: 2})
	require.EqualError(t, err, "dial edge 1, inbox 2: nobody listens there")
}

// BenchmarkMem sends empty messages from two goroutines to one inbox.
func BenchmarkMem(b *testing.B) {
	n := NewMem(0)
	defer n.Close()
	if err := n.Listen(Address{}, discard{}); err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		s, err := n.Dial(Address{})
		if err != nil {
			b.Error(err)
			return
		}
		for pb.Next() {
			if err := s.Send(context.Background(), Message{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

type discard struct{}

func (discard) Receive(Message) {}
