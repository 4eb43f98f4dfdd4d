package engine

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// scriptedTaskManager is a task manager that does what a test says, with one worker in this
// process.
type scriptedTaskManager struct {
	t      testing.TB
	to     *wire.Writer[wire.ToWorker]
	stdin  *io.PipeWriter // the worker's standard input
	stdout *io.PipeReader
	stderr lockedBuffer
	code   chan int // the worker's exit code

	mu     sync.Mutex
	news   *sync.Cond
	said   []*wire.FromWorker // all messages but heartbeats
	beats  int
	ended  bool  // there are no more messages
	exits  []int // the codes with which the worker called exit
	paused chan struct{}
}

// startWorker starts a worker in this process. It fills in the fields that w does not set.
func startWorker(t testing.TB, w workerEnv) *scriptedTaskManager {
	h := &scriptedTaskManager{t: t, code: make(chan int, 1)}
	h.news = sync.NewCond(&h.mu)
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	h.stdin, h.stdout, h.to = stdin, stdout, wire.NewWriter[wire.ToWorker](stdin)
	w.in, w.out, w.stderr = in, out, &h.stderr
	if w.version == "" {
		w.version = strconv.Itoa(wire.Version)
	}
	if w.open == nil {
		w.open = openDataPlane
	}
	if w.part == nil {
		w.part = newPart
	}
	if w.enter == nil {
		w.enter = func(string, string) (error, error) { return nil, nil }
	}
	w.exit = func(code int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.exits = append(h.exits, code)
	}
	go func() {
		code := runWorker(w)
		out.Close()
		in.Close()
		h.code <- code
	}()
	go h.read()
	return h
}

// read receives the messages of the worker.
func (h *scriptedTaskManager) read() {
	frames := wire.NewReader[wire.FromWorker](h.stdout)
	for {
		m, err := frames.Next()
		h.mu.Lock()
		paused := h.paused
		switch {
		case err != nil:
			h.ended = true
		case m.Beat != nil:
			h.beats++
		default:
			h.said = append(h.said, m)
		}
		h.news.Broadcast()
		h.mu.Unlock()
		if err != nil {
			return
		}
		if paused != nil {
			<-paused
		}
	}
}

// pause stops reading, so that the pipe fills up, until resume is called.
func (h *scriptedTaskManager) pause() (resume func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	paused := make(chan struct{})
	h.paused = paused
	return func() {
		h.mu.Lock()
		h.paused = nil
		h.mu.Unlock()
		close(paused)
	}
}

// say sends a message to the worker. It ignores that the worker may have ended.
func (h *scriptedTaskManager) say(m wire.ToWorker) { _ = h.to.Write(&m) }

// next returns the worker's next message other than progress and rows, or nil after the last
// message.
func (h *scriptedTaskManager) next(at *int) *wire.FromWorker {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		for ; *at < len(h.said); *at++ {
			if m := h.said[*at]; m.Progress == nil && m.Collected == nil && m.Output == nil {
				*at++
				return m
			}
		}
		if h.ended {
			return nil
		}
		h.news.Wait()
	}
}

// all returns all messages of the worker.
func (h *scriptedTaskManager) all() []*wire.FromWorker {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*wire.FromWorker(nil), h.said...)
}

// end waits for the end of the worker, and returns its exit code.
func (h *scriptedTaskManager) end() int {
	code := <-h.code
	h.stdin.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.ended {
		h.news.Wait()
	}
	return code
}

// exited returns the exit codes with which the worker called exit.
func (h *scriptedTaskManager) exited() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]int(nil), h.exits...)
}

// deployment returns the deployment of one of several workers with one slot each.
func deployment(spec wire.JobSpec, worker, workers int) wire.ToWorker {
	d := &wire.Deployment{
		WorkerRef: wire.WorkerRef{Job: "20260102-150405-job-7f3a", Attempt: 1, Worker: worker}, Spec: spec,
		TaskManager: "host" + strconv.Itoa(worker), Listen: "127.0.0.1", Memory: 64 << 20,
		Credential: wire.Credential{Secret: []byte("0123456789abcdef0123456789abcdef")},
	}
	for i := range workers {
		d.Slots = append(d.Slots, wire.SlotRange{Lo: i, Hi: i + 1})
	}
	return wire.ToWorker{Deployment: d}
}

// specOf returns the job specification that a client submits.
func specOf[A any](t testing.TB, job *Job[A], args A, parallelism int, opts ...Option) wire.JobSpec {
	t.Helper()
	c, err := newConfig(append([]Option{Shards(16), Parallelism(parallelism)}, opts...))
	require.NoError(t, err)
	b, err := buildTwice(job, args, c)
	require.NoError(t, err)
	graph, err := b.graph.JSON()
	require.NoError(t, err)
	data, err := encodeArgs(args)
	require.NoError(t, err)
	return wire.JobSpec{
		Name: job.Name(), Args: data, Graph: graph, Parallelism: parallelism, Shards: c.shards, Seed: c.seed,
		Run: wire.RunOptions{IfExists: c.ifExists.String(), LogLevel: "off"}, Version: wire.Version,
	}
}

// fakePart is a part of a plan that does what the test says.
type fakePart struct {
	mu    sync.Mutex
	calls []string
	fail  map[string]error
	block map[string]chan struct{} // name of a call -> channel; the call waits until the channel is closed
	deaf  bool                     // Run continues after the end of its context
	run   func(ctx context.Context) ([]byte, error)
	env   partConfig
}

func (p *fakePart) make(c partConfig) (subtasks, error) {
	p.env = c
	return p, p.call(context.Background(), "make")
}

func (p *fakePart) call(ctx context.Context, name string) error {
	p.mu.Lock()
	p.calls = append(p.calls, name)
	err, block := p.fail[name], p.block[name]
	p.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

func (p *fakePart) Continue(held [][]byte, _ []string) error {
	return p.call(context.Background(), fmt.Sprintf("continue %q", held))
}
func (p *fakePart) Prepare() error { return p.call(context.Background(), "prepare") }
func (p *fakePart) Abort() error   { return p.call(context.Background(), "abort") }
func (p *fakePart) Close()         { _ = p.call(context.Background(), "close") }
func (p *fakePart) Fail(err error) { _ = p.call(context.Background(), "fail: "+err.Error()) }
func (p *fakePart) Commit(o [][]byte) error {
	return p.call(context.Background(), "commit "+string(o[0]))
}

func (p *fakePart) Run(ctx context.Context) ([]byte, error) {
	if p.deaf {
		ctx = context.Background()
	}
	if err := p.call(ctx, "run"); err != nil {
		return nil, err
	}
	if p.run != nil {
		return p.run(ctx)
	}
	return []byte("outcome"), nil
}

// called returns the calls that have been made.
func (p *fakePart) called() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.calls...)
}

// fakePlane is a data plane that connects to nothing.
type fakePlane struct {
	dataPlane
	config planeConfig
}

func (p *fakePlane) open(c planeConfig) (dataPlane, error) { p.config = c; return p, nil }
func (*fakePlane) Address() string                         { return "127.0.0.1:4711" }
func (*fakePlane) Connect([]string) error                  { return nil }
func (*fakePlane) Abandon()                                {}
func (*fakePlane) Close() error                            { return nil }

// fakeEnv returns the environment of a worker that runs the job squares with a fake part.
func fakeEnv(p *fakePart) (workerEnv, *fakePlane) {
	plane := &fakePlane{}
	return workerEnv{jobs: []Runnable{squares}, open: plane.open, part: p.make, stopTimeout: time.Second}, plane
}
