package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

var _ Manager = (*jobmanager.Manager)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var born = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// fake is a Manager whose jobs, events and logs a test sets.
type fake struct {
	mu        sync.Mutex
	jobs      []wire.JobInfo // newest first
	nodes     []wire.TaskManagerInfo
	stats     jobmanager.Stats
	submitted []wire.JobSpec
	cancelled []wire.CancelRequest
	cordons   []wire.CordonRequest
	uncordons []wire.UncordonRequest
	followed  []wire.FollowRequest
	unready   error
	down      error // error that Overview returns; nil if it succeeds

	results *wire.ResultsReply
	result  func(ctx context.Context, req *wire.ResultRequest, send func(*wire.ResultPiece) error) error

	// Watch and Log call watch and log, if these are not nil, after they have found the job.
	watch func(ctx context.Context, from uint64, send func(*wire.Event) error) error
	log   func(ctx context.Context, req *wire.LogsRequest, send func(*wire.LogChunk) error) error
}

func (f *fake) find(id wire.JobID) (*wire.JobInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var fit []wire.JobInfo
	for _, j := range f.jobs {
		if strings.HasPrefix(string(j.ID), string(id)) {
			fit = append(fit, j)
		}
	}
	switch len(fit) {
	case 0:
		return nil, wire.Error(codes.NotFound, "there is no job %q", id)
	case 1:
		return &fit[0], nil
	}
	return nil, wire.Error(codes.InvalidArgument, "%q is a prefix of several job IDs", id)
}

func (f *fake) Submit(_ context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if req.Spec.Parallelism < 0 {
		return nil, wire.Error(codes.InvalidArgument, "parallelism %d: want at least 1", req.Spec.Parallelism)
	}
	f.submitted = append(f.submitted, req.Spec)
	return &wire.SubmitReply{Job: "20260102-150405-new"}, nil
}

func (f *fake) List(_ context.Context, req *wire.ListRequest) (*wire.ListReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := new(wire.ListReply)
	for _, j := range f.jobs {
		for _, state := range append([]wire.JobState{-1}, req.States...) {
			if state == j.State || state < 0 && len(req.States) == 0 {
				reply.Jobs = append(reply.Jobs, j)
			}
		}
	}
	if req.Limit > 0 && len(reply.Jobs) > req.Limit {
		reply.Jobs = reply.Jobs[:req.Limit]
	}
	return reply, nil
}

func (f *fake) Show(_ context.Context, req *wire.ShowRequest) (*wire.JobInfo, error) {
	return f.find(req.Job)
}

func (f *fake) Cancel(_ context.Context, req *wire.CancelRequest) (*wire.CancelReply, error) {
	info, err := f.find(req.Job)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancelled = append(f.cancelled, *req)
	return &wire.CancelReply{Job: *info}, nil
}

func (f *fake) Scale(_ context.Context, req *wire.ScaleRequest) (*wire.ScaleReply, error) {
	info, err := f.find(req.Job)
	if err != nil {
		return nil, err
	}
	if info.State != wire.JobRunning {
		return nil, wire.Error(codes.FailedPrecondition, "job %s cannot be scaled: it does not run", info.ID)
	}
	info.Allowed = req.Parallelism
	return &wire.ScaleReply{Job: *info}, nil
}

func (f *fake) Savepoint(_ context.Context, req *wire.SavepointRequest) (*wire.SavepointReply, error) {
	info, err := f.find(req.Job)
	if err != nil {
		return nil, err
	}
	if info.State != wire.JobRunning {
		return nil, wire.Error(codes.FailedPrecondition, "the job is %s", info.State)
	}
	return &wire.SavepointReply{Job: info.ID, Checkpoint: wire.Origin{Number: 4, Queues: []wire.OriginQueue{{Name: "q", Superstep: 7, Ended: true}}}}, nil
}

func (f *fake) Drain(ctx context.Context, req *wire.DrainRequest) (*wire.DrainReply, error) {
	reply, err := f.Cordon(ctx, &wire.CordonRequest{TaskManager: req.TaskManager, Reason: fmt.Sprint(req.Reason, " within ", req.Within)})
	return &wire.DrainReply{CordonReply: *reply, Leave: []wire.JobID{"run"}}, err
}

// findTaskManager returns an error if there is no task manager with the given name.
func (f *fake) findTaskManager(name string) error {
	for _, n := range f.nodes {
		if n.Name == name {
			return nil
		}
	}
	return wire.Error(codes.NotFound, "there is no task manager %q", name)
}

func (f *fake) Cordon(_ context.Context, req *wire.CordonRequest) (*wire.CordonReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cordons = append(f.cordons, *req)
	return &wire.CordonReply{TaskManager: req.TaskManager, Cordon: &wire.Cordon{Reason: req.Reason, Since: born}, Changed: true, Registered: 2, Workers: 1, Slots: 4}, f.findTaskManager(req.TaskManager)
}

func (f *fake) Uncordon(_ context.Context, req *wire.UncordonRequest) (*wire.CordonReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uncordons = append(f.uncordons, *req)
	return &wire.CordonReply{TaskManager: req.TaskManager, Registered: 2, Workers: 1, Slots: 8}, f.findTaskManager(req.TaskManager)
}

func (f *fake) TaskManagers(context.Context, *wire.TaskManagersRequest) (*wire.TaskManagersReply, error) {
	return &wire.TaskManagersReply{TaskManagers: f.nodes}, nil
}

func (f *fake) Overview(_ context.Context, req *wire.OverviewRequest) (*wire.Overview, error) {
	if err := wire.CheckVersion(req.Version, "the client"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return nil, f.down
	}
	return &wire.Overview{Version: wire.Version, Build: "v1", Cluster: "c", Started: born, TaskManagers: 1, Slots: 4, Free: 2,
		Jobs: map[string]int{"running": 1}, Platforms: []wire.Platform{{OS: "linux", Arch: "amd64"}}, Uploads: true, MaxArtifact: 1 << 30, Ailing: "its disk is full", DiskFree: 5}, nil
}

func (f *fake) Watch(ctx context.Context, req *wire.FollowRequest, send func(*wire.Event) error) error {
	info, err := f.find(req.Job)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.followed = append(f.followed, *req)
	f.mu.Unlock()
	if f.watch != nil {
		return f.watch(ctx, req.From, send)
	}
	return replay(story(*info), req.From, send)
}

func (f *fake) Log(ctx context.Context, req *wire.LogsRequest, send func(*wire.LogChunk) error) error {
	if _, err := f.find(req.Job); err != nil {
		return err
	}
	if f.log != nil {
		return f.log(ctx, req, send)
	}
	for worker := range 2 {
		if req.Worker >= 0 && req.Worker != worker {
			continue
		}
		if err := send(&wire.LogChunk{Worker: worker, TaskManager: "tm", Text: []byte("one\ntwo\xff\n")}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) Results(_ context.Context, req *wire.ResultsRequest) (*wire.ResultsReply, error) {
	info, err := f.find(req.Job)
	if err != nil {
		return nil, err
	}
	if f.results == nil {
		return nil, wire.Error(codes.FailedPrecondition, "job %s is %s", info.ID, info.State)
	}
	return f.results, nil
}

func (f *fake) ReadResult(ctx context.Context, req *wire.ResultRequest, send func(*wire.ResultPiece) error) error {
	if _, err := f.find(req.Job); err != nil {
		return err
	}
	return f.result(ctx, req, send)
}

func (f *fake) Stats() jobmanager.Stats { return f.stats }

func (f *fake) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unready
}

// story returns the events of a job: the state waiting (number 1), rows (2), progress (without
// a number), the state running (3), and the final state end (4).
func story(end wire.JobInfo) []wire.Event {
	waiting, running := end, end
	waiting.State, running.State, end.State = wire.JobWaiting, wire.JobRunning, wire.JobFinished
	return []wire.Event{
		{Number: 1, Time: born, State: &waiting},
		{Number: 2, Time: born, Collected: &wire.Collected{Rows: []byte("secret rows")}},
		{Number: 2, Time: born, Progress: progress()},
		{Number: 3, Time: born, State: &running},
		{Number: 4, Time: born, State: &end},
	}
}

// replay calls send with the events whose number is at least from, and with progress, in the
// same way as a job manager.
func replay(events []wire.Event, from uint64, send func(*wire.Event) error) error {
	for i := range events {
		if e := &events[i]; e.Number >= from {
			if err := send(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func progress() *wire.Progress {
	return &wire.Progress{
		Vertices: []wire.VertexProgress{{Rows: 10, ShardsDone: 3}},
		Queues:   []wire.QueueProgress{{Superstep: 7, Values: []wire.ReportedValue{{Name: "inertia", Value: math.NaN()}, {Name: "moved", Value: 0.5}}, Compute: 1.5, Communicate: 0.5}},
		Uncopied: []wire.Uncopied{{Queue: "train", Why: "it holds a channel"}},
	}
}

func checkpoints() *wire.JobCheckpoints {
	return &wire.JobCheckpoints{Dir: "s3://b/p", Checkpointed: wire.Checkpointed{
		Written: 12, Failed: 3, Bytes: 1200, Seconds: 4.5,
		Newest: []wire.WrittenCheckpoint{{Number: 12, Written: born, Seconds: 0.25, Bytes: 150, More: 2, Queues: []wire.OriginQueue{
			{Name: "init", Superstep: 4, Ended: true}, {Name: "train", Superstep: 7},
		}}},
		Failing: &wire.FailedCheckpoints{Since: born, Count: 2, Error: "no space left"},
	}}
}

// planOf returns a small plan with a queue.
func planOf(t testing.TB) []byte {
	t.Helper()
	p := &plan.Plan{
		Job: "kmeans", Shards: 8, Seed: 1, Parallelism: 2, Fingerprint: "f", Slots: 2,
		Nodes: []plan.Node{{ID: 0, Op: "ReadCSV"}, {ID: 1, Op: "Map", Name: "scale", Inputs: []plan.Input{{From: 0}}}},
		Vertices: []plan.Vertex{{ID: 0, Name: "ReadCSV -> scale", Parallelism: 2, SlotGroup: "default",
			Chain: []plan.Chained{{Node: 0, Parent: -1}, {Node: 1, Parent: 0}}}},
		Queues: []plan.Queue{{Name: "train", MaxSupersteps: 20, HasCriterion: true}},
	}
	require.NoError(t, json.Unmarshal([]byte(`[{"lo":0,"hi":4},{"lo":4,"hi":8}]`), &p.Vertices[0].Ranges))
	data, err := p.JSON()
	require.NoError(t, err)
	_, err = plan.DecodePlan(data)
	require.NoError(t, err)
	return data
}

// newFake returns a fake with one job in each of four states and two task managers.
func newFake(t testing.TB) *fake {
	return &fake{
		results: &wire.ResultsReply{Job: "run-1", Results: []wire.ResultInfo{{Name: "printed", Kind: wire.ResultText, Rows: 1}}},
		result: func(_ context.Context, _ *wire.ResultRequest, send func(*wire.ResultPiece) error) error {
			return send(&wire.ResultPiece{Kind: wire.ResultText, Text: []byte("hello\n")})
		},
		jobs: []wire.JobInfo{
			{ID: "run-1", Name: "kmeans", State: wire.JobRunning, Parallelism: 2, Slots: 2, Shards: 8, Seed: math.MaxUint64, Attempt: 1, Fingerprint: "f", Submitted: born, Started: born,
				Workers:  []wire.Placed{{TaskManager: "tm", Slots: wire.SlotRange{Lo: 0, Hi: 2}, Address: "10.0.0.1:1"}},
				Progress: progress(), Plan: planOf(t), Checkpoints: checkpoints()},
			{ID: "new-1", Name: "kmeans", State: wire.JobResolving, Detail: "the inputs are looked at", Parallelism: 1, Shards: 128, Submitted: born},
			{ID: "bad-1", Name: "iris", State: wire.JobFailed, Detail: "worker 0", Parallelism: 1, Slots: 1, Shards: 128, Attempt: 1, Artifact: "ab", Checkpoints: &wire.JobCheckpoints{Dir: "/shared"}, Submitted: born, Started: born, Ended: born,
				Failure: &wire.Failure{Kind: wire.UserFailure, Message: "panic: boom", Worker: 0, TaskManager: "tm", ExitCode: 2, LastLines: []string{"goroutine 1"}}},
			{ID: "bad-2", Name: "iris", State: wire.JobFailed, Parallelism: 1, Slots: 1, Shards: 128, Submitted: born, Ended: born,
				Failure: &wire.Failure{Kind: wire.ClusterFailure, Message: "disk full", Worker: -1, ExitCode: -1}},
		},
		nodes: []wire.TaskManagerInfo{
			{ID: "a", Name: "tm", Host: "h", PID: 1, State: "alive", Slots: 4, Free: 2, Memory: 1 << 30, Platform: wire.Platform{OS: "linux", Arch: "amd64"}, Build: "v1",
				HeardAgo: 250 * time.Millisecond, Since: born, Workers: []wire.WorkerRef{{Job: "run-1", Attempt: 1, Worker: 0}}},
			{ID: "b", Name: "tm", Host: "h", State: "lost", Since: born},
			{ID: "c", Name: "host:1", State: "alive", Since: born, Cordon: &wire.Cordon{Reason: "repair", Since: born}, Avoided: &wire.Avoidance{Until: born.Add(time.Minute), Died: 3}},
			{Name: "away", State: wire.TaskManagerAbsent, Cordon: &wire.Cordon{Since: born}},
		},
		stats: jobmanager.Stats{
			Jobs: map[wire.JobState]int{wire.JobRunning: 1, wire.JobFailed: 2}, Ended: map[wire.JobState]uint64{wire.JobFailed: 5},
			TaskManagers: []wire.TaskManagerInfo{{ID: "a", Name: "tm", State: "alive", HeardAgo: 250 * time.Millisecond}, {ID: "a", Name: "tm", State: "alive"}, {ID: "\xff", Name: "\xfe", State: "away"}, {ID: "b", Name: "gone", State: "lost"},
				{ID: "c", Name: "sick", State: "alive", Cordon: &wire.Cordon{}, Avoided: &wire.Avoidance{}}, {Name: "absent\xff", State: "absent", Cordon: &wire.Cordon{}}, {Name: "absent\xfe", State: "absent", Cordon: &wire.Cordon{}}},
			Counters: core.Counters{Checkpoints: 21, FailedCheckpoints: 22, CheckpointBytes: 23, CheckpointSeconds: 2.5, Restarts: 24, Moves: 26, Lost: map[wire.FailureKind]uint64{wire.LostFailure: 25},
				Recovery: [wire.RecoveryPhases]core.Durations{{Count: 3, Seconds: 400.2, Buckets: [12]uint64{1: 2, 11: 1}}}},
			CheckpointAges: map[wire.JobID]time.Duration{"run": 1500 * time.Millisecond},
			Slots:          4, Free: 2, Cordoned: 1, Supersteps: 9, Compute: 1.5, Communicate: 0.25, Rows: 1000, ExchangeRows: 70, ExchangeBytes: 700, Exchanges: []jobmanager.ExchangeStats{{Job: "run", Edge: 3, Rows: 7, Bytes: 77}}, ResultBytes: 12, ArtifactBytes: 34, ArtifactCache: 56, Followers: 3, DiskFree: 5, TakesJobs: false,
		},
	}
}

const tokenText = "0123456789abcdef0123456789abcdef"

// site is a server for a fake job manager, on its own port.
type site struct {
	*Server
	t    testing.TB
	fake *fake
}

func serve(t testing.TB, f *fake, change func(*Config)) *site {
	t.Helper()
	token, err := security.ParseToken(tokenText)
	require.NoError(t, err)
	config := Config{Listen: "127.0.0.1:0", Manager: f, Token: token}
	if change != nil {
		change(&config)
	}
	s, err := New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &site{Server: s, t: t, fake: f}
}

// reply is the answer to a request, with its body.
type reply struct {
	code   int
	header http.Header
	body   string
}

// ask sends the request what, which is "METHOD /path", with headers of the form "Name: value".
// It calls the handler with all guards directly, without a connection.
func (s *site) ask(what, body string, headers ...string) reply {
	s.t.Helper()
	method, path, _ := strings.Cut(what, " ")
	r := httptest.NewRequest(method, "http://localhost:8081"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+tokenText)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
		if value == "" {
			r.Header.Del(name)
		}
	}
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.String()}
}

// get sends a request over a connection.
func (s *site) get(client *http.Client, path string) (*http.Response, error) {
	r, err := http.NewRequest("GET", s.URL()+path, nil)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+tokenText)
	return client.Do(r)
}

// client returns a client whose connections are closed at the end of the test.
func client(t testing.TB) *http.Client {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (r reply) problem(t testing.TB) Error {
	t.Helper()
	require.Equal(t, mediaJSON, r.header.Get("Content-Type"))
	var e Error
	dec := json.NewDecoder(strings.NewReader(r.body))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&e), r.body)
	require.NotEmpty(t, e.Error)
	return e
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.code, r.body) }

func readAll(t testing.TB, body io.ReadCloser) string {
	t.Helper()
	data, err := io.ReadAll(body)
	require.NoError(t, err)
	require.NoError(t, body.Close())
	return string(data)
}
