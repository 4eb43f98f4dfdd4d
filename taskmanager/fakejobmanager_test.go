//go:build unix

package taskmanager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// enough is how long a test waits for an event that must happen. It is far longer than any
// event needs.
const enough = 4 * time.Minute

// fakeJobManager is a job manager for tests. It records the messages that it receives, and
// sends messages when the test calls its methods.
type fakeJobManager struct {
	wire.JobManager // only the methods that task managers call are implemented

	listener  *bufconn.Listener
	address   string // TCP address for task managers in other processes
	server    *grpc.Server
	heartbeat time.Duration
	lease     time.Duration

	mu          sync.Mutex
	changed     chan struct{} // closed and replaced at every change
	cluster     string
	refuse      *wire.Refused
	withoutAcks bool // if true, no heartbeat is acknowledged
	stream      grpcStream
	registers   []wire.Register
	heard       []heard // messages of all streams, in the order of arrival
	beats       int
	running     []wire.WorkerRef // Running of the last heartbeat
	kept        []wire.WorkerRef // Kept of the last heartbeat
	ailing      string           // Ailing of the last heartbeat
	states      []wire.JobID     // States of the last heartbeat
	finished    []wire.JobID     // jobs that get no further attempt
	leaving     []wire.Leaving   // announcements, not those in registrations
	left        *wire.Leave
	artifacts   map[string][]byte
	chunk       int
	fetches     int
	fetchGate   chan struct{} // if not nil, fetches wait until the channel is closed
	readGate    chan struct{} // if not nil, deliveries wait until the channel is closed
	held        int           // number of deliveries that wait at readGate
}

type grpcStream = wire.BidiStream[wire.FromTaskManager, wire.ToTaskManager]

// heard is one message that the job manager received.
type heard struct {
	ref   wire.WorkerRef
	event *wire.WorkerEvent
	piece *wire.Delivery
	close bool // whether this is the end of a stream of deliveries
}

func newFakeJobManager(t *testing.T) *fakeJobManager {
	b := &fakeJobManager{
		heartbeat: 20 * time.Millisecond, lease: 30 * time.Second,
		changed: make(chan struct{}), cluster: "first", artifacts: map[string][]byte{}, chunk: 64 << 10,
	}
	b.start()
	t.Cleanup(func() { b.server.Stop() })
	return b
}

// start serves on a new in-memory listener.
func (b *fakeJobManager) start(opts ...grpc.ServerOption) {
	l := bufconn.Listen(256 << 10)
	b.mu.Lock()
	b.listener = l
	b.mu.Unlock()
	b.serve(l, opts...)
}

// startOn serves on a TCP address, for other processes.
func (b *fakeJobManager) startOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.address = l.Addr().String()
	b.serve(l)
}

func (b *fakeJobManager) serve(l net.Listener, opts ...grpc.ServerOption) {
	s := grpc.NewServer(append(wire.ServerOptions(), opts...)...)
	wire.RegisterJobManager(s, b)
	b.mu.Lock()
	b.server, b.stream = s, nil
	b.mu.Unlock()
	go s.Serve(l)
}

func (b *fakeJobManager) dial(ctx context.Context, _ string) (net.Conn, error) {
	b.mu.Lock()
	l := b.listener
	b.mu.Unlock()
	return l.DialContext(ctx)
}

// change changes the job manager and wakes the goroutines that wait for a change.
func (b *fakeJobManager) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

// await waits until f returns true. If the time limit passes, it fails the test with the
// message what. It holds the lock while it calls f.
func (b *fakeJobManager) await(t *testing.T, what string, f func() bool) {
	t.Helper()
	late := time.After(enough)
	for {
		b.mu.Lock()
		ok, changed := f(), b.changed
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			require.FailNow(t, "waited in vain", "%s", what)
		}
	}
}

// awaitHeartbeats waits for n more heartbeats. When it returns, all messages that were sent
// before the first of these heartbeats have arrived.
func (b *fakeJobManager) awaitHeartbeats(t *testing.T, n int) {
	t.Helper()
	b.mu.Lock()
	until := b.beats + n
	b.mu.Unlock()
	b.await(t, "heartbeats", func() bool { return b.beats >= until })
}

// events returns all messages received until now.
func (b *fakeJobManager) events() []heard {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.heard)
}

func (b *fakeJobManager) Connect(s grpcStream) error {
	first, err := s.Recv()
	if err != nil || first.Register == nil {
		return errors.New("no registration")
	}
	b.mu.Lock()
	refuse, cluster := b.refuse, b.cluster
	b.mu.Unlock()
	if refuse != nil {
		b.change(func() { b.registers = append(b.registers, *first.Register) })
		return s.Send(&wire.ToTaskManager{Refused: refuse})
	}
	if err := s.Send(&wire.ToTaskManager{Registered: &wire.Registered{Cluster: cluster, Heartbeat: b.heartbeat, Lease: b.lease}}); err != nil {
		return err
	}
	b.change(func() { b.stream, b.registers = s, append(b.registers, *first.Register) })
	for {
		m, err := s.Recv()
		if err != nil {
			return nil
		}
		b.change(func() {
			switch {
			case m.Heartbeat != nil:
				b.beats++
				b.ailing, b.running, b.kept, b.states = m.Heartbeat.Ailing, m.Heartbeat.Running, m.Heartbeat.Kept, m.Heartbeat.States
				if !b.withoutAcks {
					err = s.Send(&wire.ToTaskManager{Ack: &wire.Ack{Number: m.Heartbeat.Number, Over: b.finished}})
				}
			case m.Worker != nil:
				b.heard = append(b.heard, heard{ref: m.Worker.WorkerRef, event: m.Worker})
			case m.Leaving != nil:
				b.leaving = append(b.leaving, *m.Leaving)
			case m.Leave != nil:
				b.left = m.Leave
			}
		})
		if m.Leave != nil || err != nil {
			return err
		}
	}
}

func (b *fakeJobManager) Deliver(s wire.ClientStream[wire.Delivery, wire.Delivered]) error {
	first, err := s.Recv()
	if err != nil || first.Worker == nil {
		return errors.New("no worker")
	}
	for {
		m, err := s.Recv()
		if err == io.EOF {
			b.change(func() { b.heard = append(b.heard, heard{ref: *first.Worker, close: true}) })
			return s.SendAndClose(&wire.Delivered{})
		}
		if err != nil {
			return err
		}
		b.mu.Lock()
		gate := b.readGate
		b.mu.Unlock()
		if gate != nil {
			b.change(func() { b.held++ })
			select {
			case <-gate:
			case <-s.Context().Done():
				return s.Context().Err()
			}
		}
		b.change(func() { b.heard = append(b.heard, heard{ref: *first.Worker, piece: m}) })
	}
}

func (b *fakeJobManager) FetchArtifact(req *wire.FetchRequest, s wire.ServerStream[wire.Chunk]) error {
	b.mu.Lock()
	data, known := b.artifacts[req.Hash]
	gate := b.fetchGate
	b.mu.Unlock()
	b.change(func() { b.fetches++ })
	if gate != nil {
		select {
		case <-gate:
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
	if !known {
		return errors.New("there is no such artifact")
	}
	c := &wire.Chunk{Hash: req.Hash, Size: int64(len(data))}
	for {
		n := min(b.chunk, len(data))
		c.Data, data = data[:n], data[n:]
		if err := s.Send(c); err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
		c = &wire.Chunk{}
	}
}

// say sends a message to the task manager.
func (b *fakeJobManager) say(t *testing.T, m *wire.ToTaskManager) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NoError(t, b.stream.Send(m))
}

// keep stores an artifact that can then be fetched, and returns its hash.
func (b *fakeJobManager) keep(data []byte) string {
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	b.change(func() { b.artifacts[hash] = data })
	return hash
}

// ref identifies the worker that the tests deploy.
var ref = wire.WorkerRef{Job: "a-job", Attempt: 1}

// self returns the test binary.
func self() programs.Program {
	p, err := programs.Self()
	if err != nil {
		panic(err)
	}
	return p
}

// deployment returns a deployment of the test binary that runs a script.
func deployment(script string) *wire.Deployment {
	return &wire.Deployment{
		WorkerRef: ref, Spec: wire.JobSpec{Name: "job", Args: []byte(script), Artifact: self().Hash},
		Slots: []wire.SlotRange{{Lo: 0, Hi: 2}}, Memory: 100 << 20,
	}
}

// deploy deploys a worker that runs a script.
func (b *fakeJobManager) deploy(t *testing.T, script string) {
	t.Helper()
	b.say(t, &wire.ToTaskManager{Deploy: deployment(script)})
}

// command sends a command to the worker.
func (b *fakeJobManager) command(t *testing.T, c wire.WorkerCommand) {
	t.Helper()
	c.WorkerRef = ref
	b.say(t, &wire.ToTaskManager{Worker: &c})
}

// event waits for an event of the worker for which f returns true, and returns the first such
// event. what describes the event in the message of a failed test.
func (b *fakeJobManager) event(t *testing.T, what string, f func(*wire.WorkerEvent) bool) (found *wire.WorkerEvent) {
	t.Helper()
	b.await(t, what, func() bool {
		for _, h := range b.heard {
			if h.event != nil && h.ref == ref && f(h.event) {
				found = h.event
				return true
			}
		}
		return false
	})
	return found
}

func (b *fakeJobManager) ready(t *testing.T) {
	t.Helper()
	b.event(t, "ready", func(e *wire.WorkerEvent) bool { return e.Ready != nil })
}

// begin deploys a worker that runs a script, and sends Start once the worker is ready.
func (b *fakeJobManager) begin(t *testing.T, script string) {
	t.Helper()
	b.deploy(t, script)
	b.ready(t)
	b.command(t, wire.WorkerCommand{Start: &wire.Start{Addresses: []string{"127.0.0.1:1"}}})
}

// ended waits for the event Ended of the worker and returns its failure. It checks that there
// is only one Ended and that no event follows it.
func (b *fakeJobManager) ended(t *testing.T) *wire.Failure {
	t.Helper()
	e := b.event(t, "ended", func(e *wire.WorkerEvent) bool { return e.Ended != nil })
	b.awaitHeartbeats(t, 3)
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.heard[len(b.heard)-1]
	require.NotNil(t, last.event, "the last message must be Ended, not %+v", last)
	require.Same(t, e, last.event)
	return e.Ended.Failure
}

// text returns the log lines that the worker's output has delivered.
func (b *fakeJobManager) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []byte
	for _, h := range b.heard {
		if h.piece != nil {
			all = append(all, h.piece.Log...)
		}
	}
	return string(all)
}

// site is a task manager under test, with its fake job manager.
type site struct {
	*fakeJobManager
	dir    string
	cancel context.CancelFunc
	over   chan error
}

// manage runs a task manager until the test ends or calls cancel. It waits until the task
// manager is registered.
func manage(t *testing.T, b *fakeJobManager, adapt func(*Config)) *site {
	t.Helper()
	c := Config{
		JobManager: "localhost:6123",
		DialOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(b.dial),
		},
		Name: "tm", Slots: 4, Memory: 400 << 20, Dir: t.TempDir(), Seed: 1, Environ: []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"},
		Logger: hclog.New(&hclog.LoggerOptions{Output: testWriter{t}, Level: hclog.Debug}),
	}
	if adapt != nil {
		adapt(&c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &site{fakeJobManager: b, dir: c.Dir, cancel: cancel, over: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.over <- Run(ctx, c)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		entries, err := os.ReadDir(c.Dir + "/workers")
		require.ErrorIs(t, err, os.ErrNotExist, "no files of workers may remain: %v", entries)
		entries, err = os.ReadDir(c.Dir + "/states")
		require.ErrorIs(t, err, os.ErrNotExist, "no states may remain: %v", entries)
	})
	if b.refuse == nil { // with refuse set, the task manager is never registered
		b.await(t, "registration", func() bool { return b.stream != nil && b.beats > 0 })
	}
	return r
}

// testWriter writes to the log of the test until the test ends.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

// launched runs a task manager with a fake job manager of its own, in a parallel test.
func launched(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	return manage(t, newFakeJobManager(t), nil)
}
