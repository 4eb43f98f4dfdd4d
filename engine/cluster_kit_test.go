package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/wire"
)

// fakeCluster is a job manager whose jobs do what a test says.
type fakeCluster struct {
	wire.JobManager // nil: no other call is expected
	t               *testing.T
	address         string

	overview wire.Overview
	// play sends the events of the job, from its submission to its end.
	play func(p *player)

	mu        sync.Mutex
	missing   bool                               // whether the executable must still be uploaded
	uploaded  int64                              // number of bytes
	specs     []wire.JobSpec                     // the specifications of the submitted jobs
	attached  []bool                             // for each request to follow a job: whether the client attaches to the job
	reason    string                             // the reason of the cancellation that awaitCancel received
	cancelled chan string                        // the reasons of all requests to cancel
	build     func() *plan.Plan                  // the plan of a job submitted without a graph
	resolved  []byte                             // the graph of such a job, as a worker built it
	report    func(*plan.Plan) ([][]byte, error) // returns the outcomes of the workers; nil means the outcomes of the job squares
}

const fakeJob = "20260102-150405-job-7f3a"

// newFakeCluster starts a fakeCluster that plays the events of its jobs.
func newFakeCluster(t *testing.T, play func(p *player)) *fakeCluster {
	t.Helper()
	f := &fakeCluster{
		t: t, play: play, cancelled: make(chan string, 9),
		overview: wire.Overview{
			Version: wire.Version, Slots: 3, TaskManagers: 1, Uploads: true,
			Platforms: []wire.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}},
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer(wire.ServerOptions()...)
	wire.RegisterJobManager(s, f)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(listener)
	}()
	t.Cleanup(func() { s.Stop(); <-done })
	f.address = listener.Addr().String()
	return f
}

// options returns the options of a run on the cluster.
func (f *fakeCluster) options(more ...Option) []Option {
	noEnvironment := func(c *config) { c.cluster.hooks.getenv = func(string) string { return "" } }
	return append([]Option{Cluster(f.address), noEnvironment, Shards(8), checkedAllocator(f.t)}, more...)
}

func (f *fakeCluster) Overview(context.Context, *wire.OverviewRequest) (*wire.Overview, error) {
	return &f.overview, nil
}

func (f *fakeCluster) HasArtifact(context.Context, *wire.HasArtifactRequest) (*wire.HasArtifactReply, error) {
	return &wire.HasArtifactReply{Has: !f.missing}, nil
}

func (f *fakeCluster) UploadArtifact(stream wire.ClientStream[wire.Chunk, wire.UploadReply]) error {
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&wire.UploadReply{})
		}
		if err != nil {
			return err
		}
		f.uploaded += int64(len(chunk.Data))
	}
}

func (f *fakeCluster) Submit(_ context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.specs = append(f.specs, req.Spec)
	return &wire.SubmitReply{Job: fakeJob}, nil
}

func (f *fakeCluster) Cancel(_ context.Context, req *wire.CancelRequest) (*wire.CancelReply, error) {
	f.cancelled <- req.Reason
	return &wire.CancelReply{}, nil
}

func (f *fakeCluster) Follow(req *wire.FollowRequest, stream wire.ServerStream[wire.Event]) error {
	f.mu.Lock()
	f.attached = append(f.attached, req.Attach)
	spec := f.specs[len(f.specs)-1]
	f.mu.Unlock()
	p := &player{f: f, stream: stream, spec: spec, number: req.From - 1, attempt: 1}
	f.play(p)
	return p.err
}

// player sends the events of a job.
type player struct {
	f       *fakeCluster
	stream  wire.ServerStream[wire.Event]
	spec    wire.JobSpec
	number  uint64
	attempt int
	plan    *plan.Plan
	err     error
}

func (p *player) send(e *wire.Event) {
	if e.Progress == nil {
		p.number++
	}
	e.Number = p.number
	if p.err == nil {
		p.err = p.stream.Send(e)
	}
}

// state sends a state of the job; change sets further fields.
func (p *player) state(s wire.JobState, detail string, change ...func(*wire.JobInfo)) {
	info := &wire.JobInfo{ID: fakeJob, Name: p.spec.Name, State: s, Detail: detail, Attempt: p.attempt}
	if p.plan != nil {
		data, err := p.plan.JSON()
		if err != nil {
			p.err = err
		}
		info.Plan, info.Graph = data, p.f.resolved
	}
	for _, f := range change {
		f(info)
	}
	p.send(&wire.Event{State: info})
}

// compile makes the plan, which all later states contain.
func (p *player) compile() {
	if len(p.spec.Graph) == 0 {
		p.plan = p.f.build()
		return
	}
	g, err := plan.DecodeGraph(p.spec.Graph)
	if err == nil {
		p.plan, err = plan.Compile(g, p.spec.Parallelism)
	}
	if err != nil {
		p.err = err
	}
}

// run sends all states up to running, as for a job without problems.
func (p *player) run() {
	p.state(wire.JobWaiting, "")
	p.state(wire.JobWaiting, "waiting for 3 slots")
	p.compile()
	p.state(wire.JobDeploying, "starting 3 slots on 1 task manager")
	p.state(wire.JobRunning, "")
}

// progress sends the progress of the job.
func (p *player) progress(progress wire.Progress) { p.send(&wire.Event{Progress: &progress}) }

// print sends text that an operator prints.
func (p *player) print(text string) {
	p.send(&wire.Event{Output: &wire.Output{Text: []byte(text)}})
}

// collectNode is the ID of the node of Collect in the job squares.
const collectNode = 2

// collect sends numbers of a shard that a Collect has collected.
func (p *player) collect(node, shard int, numbers ...int64) {
	p.send(&wire.Event{Collected: &wire.Collected{Node: node, Shard: shard, Rows: numberStream(numbers...)}})
}

// numberStream returns a batch of numbers as an Arrow stream.
func numberStream(numbers ...int64) []byte {
	var b bytes.Buffer
	w := batch.NewStreamWriter(&b, numberSchema, memory.DefaultAllocator)
	rows := numberBatch(memory.DefaultAllocator, len(numbers), func(i int) int64 { return numbers[i] })
	defer rows.Release()
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// finish ends the job with success.
func (p *player) finish() {
	p.state(wire.JobCommitting, "making the results visible")
	report := p.f.report
	if report == nil {
		report = outcomes
	}
	all, err := report(p.plan)
	if err != nil {
		p.err = err
		return
	}
	p.state(wire.JobFinished, "", func(info *wire.JobInfo) { info.Outcomes = all })
}

// fail ends the job with a failure.
func (p *player) fail(f *wire.Failure) {
	p.state(wire.JobFailing, "")
	p.state(wire.JobFailed, "", func(info *wire.JobInfo) { info.Failure = f })
}

// awaitCancel waits for the request to cancel the job, and ends the job as cancelled.
func (p *player) awaitCancel() {
	select {
	case reason := <-p.f.cancelled:
		p.f.mu.Lock()
		p.f.reason = reason
		p.f.mu.Unlock()
		p.state(wire.JobCancelling, "")
		p.state(wire.JobCancelled, reason)
	case <-p.stream.Context().Done():
		p.err = p.stream.Context().Err()
	}
}
