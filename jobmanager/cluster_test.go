package jobmanager

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testToken = func() security.Token {
	t, err := security.ParseToken(strings.Repeat("t", 40))
	if err != nil {
		panic(err)
	}
	return t
}()

// patience bounds every wait of a test.
const patience = 4 * time.Minute

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start starts a job manager on a free port. It uses short durations, except for timeouts that
// could expire by mistake on a loaded machine.
func start(t testing.TB, change ...func(*Config)) *Manager {
	c := Config{
		Listen: "127.0.0.1:0", Dir: t.TempDir(), Token: testToken, Executable: programOf(t, ownSalt),
		Heartbeat: 50 * time.Millisecond, Detection: 5 * time.Second,
		Build: "test", Logger: hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Trace}),
	}
	for _, f := range change {
		f(&c)
	}
	defer overdue.Watch("a job manager to start")()
	m, err := New(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		defer overdue.Watch("a job manager to close")()
		require.NoError(t, m.Close())
	})
	return m
}

// ownSalt is the salt of the program that is the own executable of job managers in tests.
const ownSalt = "the job manager's own"

// programOf writes the program with the given salt to a file.
func programOf(t testing.TB, salt string) programs.Program {
	path := t.TempDir() + "/program"
	require.NoError(t, os.WriteFile(path, executable(salt), 0o700))
	p, err := programs.Of(path, linux)
	require.NoError(t, err)
	return p
}

// dial returns a client of a job manager. config is nil if TLS is not used.
func dial(t testing.TB, m *Manager, token security.Token, config *tls.Config) *wire.Client {
	creds := insecure.NewCredentials()
	if config != nil {
		creds = credentials.NewTLS(config)
	}
	options := append(wire.DialOptions(), grpc.WithTransportCredentials(creds))
	if !token.IsZero() {
		options = append(options, grpc.WithPerRPCCredentials(security.TokenCredentials(token, config != nil)))
	}
	cc, err := grpc.NewClient("passthrough:///"+m.Address(), options...)
	require.NoError(t, err)
	t.Cleanup(func() { cc.Close() })
	return wire.NewClient(cc)
}

// graphOf returns the graph of a job that reads rows and collects them.
func graphOf(t testing.TB, name string, shards int) []byte {
	g := &plan.Graph{
		Job: name, Shards: shards, Seed: 7,
		Nodes: []plan.Node{
			{ID: 0, Op: "ReadCSV", Schema: []plan.Column{{Name: "x", Type: "float64"}}},
			{ID: 1, Op: "Collect", Name: "rows", Sink: true, Inputs: []plan.Input{{From: 0}}},
		},
	}
	data, err := g.JSON()
	require.NoError(t, err)
	return data
}

// specOf returns a job that is not restarted.
func specOf(t testing.TB, parallelism int) wire.JobSpec {
	return wire.JobSpec{
		Name: "demo", Graph: graphOf(t, "demo", 8), Parallelism: parallelism, Shards: 8, Seed: 7, Version: wire.Version,
		Restart: wire.Restart{Strategy: wire.RestartNone},
	}
}

func submit(t testing.TB, c *wire.Client, spec wire.JobSpec) wire.JobID {
	reply, err := c.Submit(bounded(t), &wire.SubmitRequest{Spec: spec})
	require.NoError(t, err)
	return reply.Job
}

// manager is a task manager that the test controls. It sends its heartbeats automatically.
type manager struct {
	t      testing.TB
	client *wire.Client
	stream grpc.BidiStreamingClient[wire.FromTaskManager, wire.ToTaskManager]
	cancel context.CancelFunc
	told   chan *wire.ToTaskManager // all messages received from the job manager, except acknowledgements
	err    error                    // set before told is closed
	acks   chan uint64

	mu      sync.Mutex
	running []wire.WorkerRef
	work    sync.WaitGroup
}

func registration(id string, slots int) *wire.Register {
	return &wire.Register{
		Version: wire.Version, Build: "test", ID: id, Incarnation: id + "-1", Name: "tm-" + id, Host: "127.0.0.1", PID: 1,
		Slots: slots, Memory: 1 << 30, Platform: linux, Executable: hashOf([]byte("tm")),
	}
}

// join registers a task manager and requires that the job manager accepts it.
func join(t testing.TB, c *wire.Client, r *wire.Register) *manager {
	tm := tryRegister(t, c, r)
	welcome := tm.next()
	require.NotNil(t, welcome.Registered, "%+v", welcome.Refused)
	tm.work.Go(func() {
		beat := time.NewTicker(welcome.Registered.Heartbeat)
		defer beat.Stop()
		for n := uint64(1); ; n++ {
			select {
			case <-beat.C:
			case <-tm.stream.Context().Done():
				return
			}
			tm.mu.Lock()
			running := append([]wire.WorkerRef(nil), tm.running...)
			tm.mu.Unlock()
			if tm.send(&wire.FromTaskManager{Heartbeat: &wire.Heartbeat{Number: n, Running: running}}) != nil {
				return
			}
		}
	})
	return tm
}

// tryRegister opens a stream and sends the registration r.
func tryRegister(t testing.TB, c *wire.Client, r *wire.Register) *manager {
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := c.Connect(ctx)
	require.NoError(t, err)
	tm := &manager{t: t, client: c, stream: stream, cancel: cancel, told: make(chan *wire.ToTaskManager, 1000), acks: make(chan uint64, 1), running: slices.Clone(r.Running)}
	t.Cleanup(tm.leave)
	tm.work.Go(func() {
		defer close(tm.told)
		for {
			m, err := stream.Recv()
			if err != nil {
				tm.err = err
				return
			}
			if m.Ack != nil {
				select {
				case tm.acks <- m.Ack.Number:
				default:
				}
				continue
			}
			tm.told <- m
		}
	})
	require.NoError(t, tm.send(&wire.FromTaskManager{Register: r}))
	return tm
}

// leave closes the connection.
func (tm *manager) leave() {
	tm.cancel()
	tm.work.Wait()
}

func (tm *manager) send(m *wire.FromTaskManager) error {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.stream.Send(m)
}

// next waits for the next message of the job manager and returns it.
func (tm *manager) next() *wire.ToTaskManager {
	select {
	case m, ok := <-tm.told:
		require.True(tm.t, ok, "the connection must not end before the next message")
		return m
	case <-time.After(patience):
		require.Fail(tm.t, "the job manager must send a message in time")
		return nil
	}
}

// says reports an event of a worker.
func (tm *manager) says(e wire.WorkerEvent) {
	require.NoError(tm.t, tm.send(&wire.FromTaskManager{Worker: &e}))
}

// deployed waits for a message that deploys a worker and returns the deployment.
func (tm *manager) deployed() *wire.Deployment {
	d := tm.next().Deploy
	require.NotNil(tm.t, d)
	tm.mu.Lock()
	defer tm.mu.Unlock()
	tm.running = append(tm.running, d.WorkerRef)
	return d
}

// ended reports that a worker has ended.
func (tm *manager) ended(ref wire.WorkerRef, f *wire.Failure) {
	tm.mu.Lock()
	for i, r := range tm.running {
		if r == ref {
			tm.running = append(tm.running[:i], tm.running[i+1:]...)
			break
		}
	}
	tm.mu.Unlock()
	tm.says(wire.WorkerEvent{WorkerRef: ref, Ended: &wire.Ended{Failure: f}})
}

// run waits for the deployment of the only worker of a job, and reports the worker's events
// until its subtasks run.
func (tm *manager) run() *wire.Deployment {
	d := tm.deployed()
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Ready: &wire.Ready{Address: "127.0.0.1:1", Fingerprint: "f"}})
	require.NotNil(tm.t, tm.next().Worker.Prepare)
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Prepared: &wire.Prepared{}})
	require.Equal(tm.t, []string{"127.0.0.1:1"}, tm.next().Worker.Start.Addresses)
	return d
}

// succeed reports the events of a running worker until its successful end.
func (tm *manager) succeed(ref wire.WorkerRef, outcome string) {
	tm.says(wire.WorkerEvent{WorkerRef: ref, Finished: &wire.Finished{Outcome: []byte(outcome)}})
	require.Equal(tm.t, [][]byte{[]byte(outcome)}, tm.next().Worker.Commit.Outcomes)
	tm.says(wire.WorkerEvent{WorkerRef: ref, Committed: &wire.Committed{}})
	require.NotNil(tm.t, tm.next().Worker.Exit)
	tm.ended(ref, nil)
}

// deliver opens the stream on which a worker's rows and logs are delivered.
func (tm *manager) deliver(ref wire.WorkerRef) grpc.ClientStreamingClient[wire.Delivery, wire.Delivered] {
	ctx, cancel := context.WithTimeout(tm.stream.Context(), patience)
	tm.t.Cleanup(cancel)
	s, err := tm.client.Deliver(ctx)
	require.NoError(tm.t, err)
	require.NoError(tm.t, s.Send(&wire.Delivery{Worker: &ref}))
	return s
}

func collected(text string) *wire.Delivery {
	return &wire.Delivery{Collected: &wire.Collected{Node: 1, Rows: []byte(text)}}
}

// follow follows a job to its end and returns its events as text: the names of states, and
// unchanged rows and output, but no progress. Events may be missing only if the job did not
// finish, because its rows are freed then, and the numbers that a restart leaves out.
func follow(t testing.TB, c *wire.Client, req *wire.FollowRequest) (story []string, last *wire.JobInfo) {
	stream, err := c.Follow(bounded(t), req)
	require.NoError(t, err)
	number, gap := max(req.From, 1)-1, uint64(0)
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			require.True(t, gap == 0 || last.State == wire.JobFailed || last.State == wire.JobCancelled, "event %d", gap)
			return story, last
		}
		require.NoError(t, err)
		if e.Progress != nil {
			require.Equal(t, number, e.Number)
			continue
		}
		if number++; e.Number == number+numbersSkipped {
			number = e.Number
		} else if e.Number > number {
			number, gap = e.Number, number
		}
		require.Equal(t, number, e.Number)
		switch {
		case e.State != nil:
			story = append(story, e.State.State.String())
			last = e.State
		case e.Collected != nil:
			story = append(story, "rows "+string(e.Collected.Rows))
		case e.Output != nil:
			story = append(story, "text "+string(e.Output.Text))
		}
	}
}

// eventually waits until the condition is holds. what names the condition in the message.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, patience, 2*time.Millisecond, "did not happen in time: "+what)
}
