package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testSecret = []byte("0123456789abcdef0123456789abcdef")

// patience bounds waits for events that normally occur soon.
const patience = 4 * time.Minute

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("the test waited too long"))
	t.Cleanup(cancel)
	return ctx
}

// job has the networks of all workers of an attempt, in this process.
type job struct {
	t     testing.TB
	nets  []*Network
	mem   memory.Allocator
	mu    sync.Mutex
	fails map[int][]error
	gone  chan int // receives the number of each worker whose network fails
}

func newJob(t testing.TB, workers int, change func(worker int, c *Config)) *job {
	t.Helper()
	return newJobAt(t, workers, nil, change)
}

// newPort returns the port of a worker, which is closed when the test ends.
func newPort(t testing.TB, change func(c *peerlink.Config)) *peerlink.Port {
	t.Helper()
	cfg := peerlink.Config{Job: "test", Secret: testSecret}
	if change != nil {
		change(&cfg)
	}
	p, err := peerlink.Listen(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// newJobAt does the same as newJob, but calls the function ports to change the configuration of
// each worker's port.
func newJobAt(t testing.TB, workers int, ports func(worker int, c *peerlink.Config), change func(worker int, c *Config)) *job {
	t.Helper()
	j := &job{t: t, mem: batchtest.Allocator(t), fails: make(map[int][]error), gone: make(chan int, 100)}
	for w := range workers {
		cfg := Config{
			Worker: w, Workers: workers, Attempt: 3, Allocator: j.mem,
			Port: newPort(t, func(c *peerlink.Config) {
				if ports != nil {
					ports(w, c)
				}
			}),
			Fail: func(err error) {
				j.mu.Lock()
				j.fails[w] = append(j.fails[w], err)
				j.mu.Unlock()
				j.gone <- w
			},
		}
		if change != nil {
			change(w, &cfg)
		}
		n, err := New(cfg)
		require.NoError(t, err)
		j.nets = append(j.nets, n)
	}
	t.Cleanup(j.close)
	return j
}

// connected returns a job in which Connect has set the addresses of all workers.
func connected(t testing.TB, workers int, change func(worker int, c *Config)) *job {
	t.Helper()
	j := newJob(t, workers, change)
	j.connect()
	return j
}

func (j *job) addresses() []string {
	var list []string
	for _, n := range j.nets {
		list = append(list, n.Address())
	}
	return list
}

func (j *job) connect() {
	for _, n := range j.nets {
		require.NoError(j.t, n.Connect(j.addresses()))
	}
}

// close closes all networks concurrently, and then their ports.
func (j *job) close() {
	defer overdue.Watch("all workers to close")()
	var all sync.WaitGroup
	for _, n := range j.nets {
		all.Go(func() { _ = n.Close() })
	}
	all.Wait()
	for _, n := range j.nets {
		_ = n.cfg.Port.Close()
	}
}

// noFailures requires that no worker's network has failed.
func (j *job) noFailures() {
	j.mu.Lock()
	defer j.mu.Unlock()
	require.Empty(j.t, j.fails)
}

// failure waits until a worker's network has failed, and returns the error. It requires that
// the network has called Fail only once.
func (j *job) failure(worker int) *PeerError {
	j.t.Helper()
	for {
		j.mu.Lock()
		errs := j.fails[worker]
		j.mu.Unlock()
		if len(errs) > 0 {
			require.Len(j.t, errs, 1)
			var peer *PeerError
			require.ErrorAs(j.t, errs[0], &peer)
			return peer
		}
		select {
		case <-j.gone:
		case <-soon(j.t).Done():
			require.FailNow(j.t, "the network must fail", "worker %d", worker)
		}
	}
}

func at(edge, inbox, worker int) transport.Address {
	return transport.Address{Edge: edge, Inbox: inbox, Worker: worker}
}

// keeper is a receiver of one inbox that sends the messages to came. If turns is not nil, it
// receives from turns before it takes a message.
type keeper struct {
	turns chan struct{}
	came  chan transport.Message
	busy  sync.Mutex
}

func newKeeper(room int) *keeper { return &keeper{came: make(chan transport.Message, room)} }

// sibling returns a receiver for another inbox that shares the channels of k. Each inbox needs
// a separate receiver, as inboxes call their receivers concurrently.
func (k *keeper) sibling() *keeper { return &keeper{turns: k.turns, came: k.came} }

func (k *keeper) Receive(m transport.Message) {
	if !k.busy.TryLock() {
		panic("two goroutines in a receiver")
	}
	defer k.busy.Unlock()
	if k.turns != nil {
		<-k.turns
	}
	k.came <- m
}

func (k *keeper) next(t testing.TB) transport.Message {
	t.Helper()
	select {
	case m := <-k.came:
		return m
	case <-soon(t).Done():
		require.FailNow(t, "a message must arrive in time")
		return transport.Message{}
	}
}

func (j *job) listen(addr transport.Address, r transport.Receiver) {
	j.t.Helper()
	require.NoError(j.t, j.nets[addr.Worker].Listen(addr, r))
}

func (j *job) dial(from int, addr transport.Address) transport.Sender {
	j.t.Helper()
	s, err := j.nets[from].Dial(addr)
	require.NoError(j.t, err)
	return s
}

func (j *job) rows(n int) arrow.Record {
	text := "["
	for i := range n {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"id": %d, "x": %d.5}`, i, i)
	}
	return batchtest.Record(j.t, j.mem, batchtest.Schema(j.t, "id int64", "x float64 null"), text+"]")
}

func TestOneMessage(t *testing.T) {
	j := connected(t, 2, nil)
	k := newKeeper(1)
	j.listen(at(3, 7, 1), k)
	s := j.dial(0, at(3, 7, 1))
	want := j.rows(5)
	defer want.Release()
	want.Retain()
	m := transport.Message{Shard: 4, Seq: 9, Rows: want, To: -1, Parts: []transport.Part{{Shard: 2, End: 1}, {Shard: 5, End: 5}}, Last: true, Sent: 12}
	require.NoError(t, s.Send(soon(t), m))
	got := k.next(t)
	defer got.Release()
	batchtest.Equal(t, want, got.Rows)
	rows := got.Rows
	got.Rows, m.Rows = nil, nil
	require.Equal(t, m, got)
	got.Rows = rows
	j.close()
	j.noFailures()
}
