package commands

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/parquet"
)

type resultRow struct {
	N    int64
	Text string
}

// fakeJobManager is a job manager that returns the results and events in its fields.
type fakeJobManager struct {
	wire.JobManager // nil, since the tests call only the methods below
	results         []wire.ResultInfo
	pieces          map[string][]*wire.ResultPiece
	broken          bool // Result returns an error after the pieces
	events          []wire.Event
	asked           chan *wire.FollowRequest
	hold            bool // the job does not end after the events: Follow waits for its client to disconnect
}

func (m *fakeJobManager) Overview(context.Context, *wire.OverviewRequest) (*wire.Overview, error) {
	return &wire.Overview{Version: wire.Version}, nil
}

func (m *fakeJobManager) Results(_ context.Context, req *wire.ResultsRequest) (*wire.ResultsReply, error) {
	if m.results == nil {
		return nil, wire.Error(codes.FailedPrecondition, "job %s is running", req.Job)
	}
	return &wire.ResultsReply{Job: req.Job, Results: m.results}, nil
}

func (m *fakeJobManager) Result(req *wire.ResultRequest, stream wire.ServerStream[wire.ResultPiece]) error {
	if m.pieces[req.Name] == nil {
		return wire.Error(codes.NotFound, "job %s has no result %q", req.Job, req.Name)
	}
	for _, p := range m.pieces[req.Name] {
		if err := stream.Send(p); err != nil {
			return err
		}
	}
	if m.broken {
		return wire.Error(codes.DataLoss, "the rest is lost")
	}
	return nil
}

func (m *fakeJobManager) Follow(req *wire.FollowRequest, stream wire.ServerStream[wire.Event]) error {
	m.asked <- req
	for i := range m.events {
		if err := stream.Send(&m.events[i]); err != nil {
			return err
		}
	}
	if m.hold {
		<-stream.Context().Done()
	}
	return nil
}

// serveJobManager serves m on a free port and returns the flags with which commands connect to
// it.
func serveJobManager(t *testing.T, m *fakeJobManager) []string {
	m.asked = make(chan *wire.FollowRequest, 10)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(wire.ServerOptions()...)
	wire.RegisterJobManager(server, m)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(strings.Repeat("r", 43)), 0o600))
	return []string{"--cluster", listener.Addr().String(), "--token-file", token}
}

func streamOf(t *testing.T, rows ...resultRow) *wire.ResultPiece {
	return &wire.ResultPiece{Kind: wire.ResultRows, Rows: batchtest.Stream(t, rows...)}
}

func TestResults(t *testing.T) {
	m := &fakeJobManager{pieces: map[string][]*wire.ResultPiece{
		"best":    {streamOf(t), streamOf(t, resultRow{1, "x,y"}, resultRow{2, ""}), streamOf(t, resultRow{3, "z"})},
		"none":    {streamOf(t)},
		"zero":    {streamOf(t, resultRow{1, "a\x00b"})},
		"printed": {{Kind: wire.ResultText, Text: []byte("hel")}, {Kind: wire.ResultText, Text: []byte("lo\n")}},
	}}
	flags := serveJobManager(t, m)
	results := func(args ...string) (int, string, string) {
		t.Helper()
		return run(t, nil, append(append([]string{"results"}, flags...), args...)...)
	}
	fails := func(code int, text string, args ...string) {
		t.Helper()
		got, out, errOut := results(args...)
		require.Equal(t, code, got, "%s%s", out, errOut)
		require.Contains(t, errOut, text)
	}
	fails(exitFailed, "job j is running", "j")
	m.results = []wire.ResultInfo{}
	fails(exitFailed, "collects and prints nothing", "j")
	m.results = []wire.ResultInfo{{Name: "best", Kind: wire.ResultRows, Rows: 3}}
	const csv = "n,text\n1,\"x,y\"\n2,\"\"\n3,z\n"
	code, out, errOut := results("j")
	require.Zero(t, code, errOut)
	require.Equal(t, csv, out, "without a name, the command must print the only result of the job")

	m.results = append(m.results, wire.ResultInfo{Name: "printed", Kind: wire.ResultText, Rows: 1})
	code, out, _ = results("j")
	require.Zero(t, code)
	require.Equal(t, "NAME     KIND  ROWS\nbest     rows  3\nprinted  text  1\n", out)
	fails(exitUsage, "job j has 2 results: give the name of one", "j", "--output", "x.csv")
	fails(exitFailed, `has no result "nope"`, "j", "nope")
	code, out, _ = results("j", "printed", "--output", "-")
	require.Zero(t, code)
	require.Equal(t, "hello\n", out)
	code, out, _ = results("j", "none")
	require.Zero(t, code)
	require.Equal(t, "n,text\n", out)

	fails(exitFailed, `column "text": the text "a\x00b" has a byte of 0`, "j", "zero")

	dir := t.TempDir()
	for name, want := range map[string]string{"a.csv": csv, "a.tsv": "n\ttext\n1\tx,y\n2\t\"\"\n3\tz\n"} {
		code, _, errOut := results("j", "best", "--output", filepath.Join(dir, name))
		require.Zero(t, code, errOut)
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	for name, read := range map[string]func(b *engine.Builder, path string) *engine.Dataset{
		"a.arrow": func(b *engine.Builder, path string) *engine.Dataset {
			return operators.ReadArrow(b, path, operators.ArrowOptions{})
		},
		"a.parquet": func(b *engine.Builder, path string) *engine.Dataset {
			return parquet.Read(b, path, parquet.ReadOptions{})
		},
	} {
		path := filepath.Join(dir, name)
		code, _, errOut := results("j", "best", "--output", path)
		require.Zero(t, code, errOut)
		r, err := engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(read(b, path), "rows")
			return nil
		}), struct{}{})
		require.NoError(t, err)
		rows, err := engine.Rows[resultRow](r, "rows")
		require.NoError(t, err)
		require.Equal(t, []resultRow{{1, "x,y"}, {2, ""}, {3, "z"}}, rows)
	}
	text := filepath.Join(dir, "a.txt")
	code, _, errOut = results("j", "printed", "--output", text)
	require.Zero(t, code, errOut)
	got, err := os.ReadFile(text)
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(got))
	for _, path := range []string{text, filepath.Join(dir, "a.csv")} {
		name := map[bool]string{true: "printed", false: "best"}[path == text]
		fails(exitFailed, "--if-exists replace", "j", name, "--output", path)
		code, _, errOut = results("j", name, "--output", path, "--if-exists", "replace")
		require.Zero(t, code, errOut)
	}

	// If the stream of a result fails, the command leaves no file.
	m.broken = true
	for _, name := range []string{"best", "printed"} {
		fails(exitFailed, "the rest is lost", "j", name)
		fails(exitFailed, "the rest is lost", "j", name, "--output", filepath.Join(dir, "new"))
	}
	left, err := filepath.Glob(filepath.Join(dir, "*new*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAttach(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	story := func(end wire.JobInfo) []wire.Event {
		end.ID = "j1"
		return []wire.Event{
			{Number: 1, Time: at, State: &wire.JobInfo{ID: "j1", State: wire.JobRunning}},
			{Number: 2, Time: at, Output: &wire.Output{Text: []byte("hello\n")}},
			{Number: 3, Time: at, Collected: &wire.Collected{Rows: []byte("rows")}},
			{Number: 4, Time: at, State: &end},
		}
	}
	for _, c := range []struct {
		end  wire.JobInfo
		code int
		want string
	}{
		{wire.JobInfo{State: wire.JobFinished}, exitOK, "job j1 is running\njob j1 is finished\n"},
		{wire.JobInfo{State: wire.JobFailed, Failure: &wire.Failure{Message: "boom", Worker: 1, TaskManager: "tm", LastLines: []string{"a line"}}}, exitFailed, "  | a line\nsuperstep: job j1 failed: boom (worker 1 on task manager tm)\n"},
		{wire.JobInfo{State: wire.JobCancelled, Detail: "seen enough"}, exitFailed, "job j1 was cancelled: seen enough\n"},
	} {
		m := &fakeJobManager{events: story(c.end)}
		flags := serveJobManager(t, m)
		code, out, errOut := run(t, nil, append([]string{"attach", "j"}, flags...)...)
		require.Equal(t, c.code, code, errOut)
		require.Equal(t, "hello\n", out)
		require.Contains(t, errOut, c.want)
		require.False(t, (<-m.asked).Attach, "the job must not depend on the client that follows it")
		_, out, errOut = run(t, nil, append([]string{"attach", "-q", "j"}, flags...)...)
		require.Equal(t, "hello\n", out)
		require.NotContains(t, errOut, "is running")
	}

	// An interrupt ends the command but does not cancel the job: a call of Cancel would panic,
	// as fakeJobManager does not implement it.
	m := &fakeJobManager{events: story(wire.JobInfo{})[:2], hold: true}
	flags := serveJobManager(t, m)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { <-m.asked; interrupt() }()
	var out, errOut bytes.Buffer
	code := Main(ctx, "superstep", "About.", new(Cluster), append([]string{"attach", "j"}, flags...), &Streams{Out: &out, Err: &errOut, Lookup: func(string) (string, bool) { return "", false }})
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut.String(), "keeps running: superstep attach follows it again")
}
