package jobmanager

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/wire"
)

type resultRow struct{ X float64 }

// rowsOf returns rows of the job that graphOf describes, encoded as a worker sends them.
func rowsOf(t *testing.T, shard int, values ...float64) *wire.Delivery {
	codec, err := batch.NewCodec[resultRow]()
	require.NoError(t, err)
	var rows []resultRow
	for _, x := range values {
		rows = append(rows, resultRow{x})
	}
	rec, err := codec.Record(memory.NewGoAllocator(), rows)
	require.NoError(t, err)
	defer rec.Release()
	var b bytes.Buffer
	w := batch.NewStreamWriter(&b, codec.Schema(), memory.NewGoAllocator())
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return &wire.Delivery{Collected: &wire.Collected{Node: 1, Shard: shard, Rows: b.Bytes()}}
}

// resultOf reads one result: its rows or its text.
func resultOf(t *testing.T, c *wire.Client, id wire.JobID, name string) (values []float64, text string, err error) {
	stream, err := c.Result(bounded(t), &wire.ResultRequest{Job: id, Name: name})
	require.NoError(t, err)
	codec, err := batch.NewCodec[resultRow]()
	require.NoError(t, err)
	for n := 0; ; n++ {
		p, err := stream.Recv()
		if err == io.EOF {
			return values, text, nil
		}
		if err != nil {
			return nil, "", err
		}
		text += string(p.Text)
		if p.Kind == wire.ResultText {
			continue
		}
		in, err := batch.NewStreamReader(bytes.NewReader(p.Rows), memory.NewGoAllocator())
		require.NoError(t, err)
		require.Equal(t, codec.Schema(), in.Schema())
		for {
			rec, err := in.Read()
			if err != nil {
				require.Equal(t, io.EOF, err)
				break
			}
			require.NotZero(t, n, "the first piece must have only the columns, and no rows")
			rows, err := codec.Rows(rec)
			require.NoError(t, err)
			for _, r := range rows {
				values = append(values, r.X)
			}
		}
		in.Release()
	}
}

// TestResults requires that collected rows, in the order of their shards, and printed text can
// be read once the job has finished, and not earlier. If rows are lost, the error must say so.
func TestResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	list := func(id wire.JobID) ([]wire.ResultInfo, error) {
		reply, err := c.Results(bounded(t), &wire.ResultsRequest{Job: id})
		if err != nil {
			return nil, err
		}
		return reply.Results, nil
	}
	refused := func(err error, code codes.Code, text string) {
		t.Helper()
		require.Equal(t, code, wire.Code(err), "%v", err)
		require.ErrorContains(t, err, text)
	}
	tm := join(t, c, registration("a", 1))
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	s := tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(rowsOf(t, 5, 50, 51)))
	require.NoError(t, s.Send(rowsOf(t, 2, 20)))
	require.NoError(t, s.Send(&wire.Delivery{Output: &wire.Output{Text: []byte("one\ntw")}}))
	require.NoError(t, s.Send(rowsOf(t, 5, 52)))
	require.NoError(t, s.Send(&wire.Delivery{Output: &wire.Output{Text: []byte("o\nthree")}}))
	_, err := s.CloseAndRecv()
	require.NoError(t, err)
	_, err = list(id)
	refused(err, codes.FailedPrecondition, "is running: it has results once it has finished; superstep attach")
	_, _, err = resultOf(t, c, id, "rows")
	refused(err, codes.FailedPrecondition, "is running")
	tm.succeed(d.WorkerRef, "")
	follow(t, c, &wire.FollowRequest{Job: id})

	var spoolSize int64
	for round := range 2 { // the second round runs after a restart
		got, err := list(id[:len(id)-1])
		require.NoError(t, err)
		require.Equal(t, []wire.ResultInfo{{Name: "rows", Kind: wire.ResultRows, Rows: 4}, {Name: "printed", Kind: wire.ResultText, Rows: 3}}, got)
		values, _, err := resultOf(t, c, id, "rows")
		require.NoError(t, err)
		require.Equal(t, []float64{20, 50, 51, 52}, values)
		_, text, err := resultOf(t, c, id, "printed")
		require.NoError(t, err)
		require.Equal(t, "one\ntwo\nthree", text)
		_, _, err = resultOf(t, c, id, "rosw")
		refused(err, codes.NotFound, `has no result "rosw"; it has "rows", "printed"`)
		_, err = list("nope")
		refused(err, codes.NotFound, "there is no job")
		if round == 0 {
			require.NoError(t, m.Close())
			m = start(t, in)
			c = dial(t, m, testToken, nil)
		}
	}
	stat, err := os.Stat(dir + "/" + spoolName(id))
	require.NoError(t, err)
	spoolSize = stat.Size()

	cancelled := submit(t, c, specOf(t, 1))
	_, err = c.Cancel(bounded(t), &wire.CancelRequest{Job: cancelled})
	require.NoError(t, err)
	follow(t, c, &wire.FollowRequest{Job: cancelled})
	_, err = list(cancelled)
	refused(err, codes.FailedPrecondition, "has no results, as it was cancelled")

	require.NoError(t, m.Close())
	require.NoError(t, os.Truncate(dir+"/"+spoolName(id), spoolSize-10))
	m = start(t, in)
	c = dial(t, m, testToken, nil)
	_, err = list(id)
	refused(err, codes.DataLoss, "has lost some")
	_, _, err = resultOf(t, c, id, "rows")
	refused(err, codes.DataLoss, "has lost some")
	require.NoError(t, os.Remove(dir+"/"+spoolName(id)))
	_, err = list(id)
	refused(err, codes.DataLoss, "is not kept any more")
}

// TestResultsOfLastAttempt requires that a result does not have the rows of a failed attempt,
// and that it has the rows of an attempt whose commit is resumed.
func TestResultsOfLastAttempt(t *testing.T) {
	r := &keptResults{count: true, byNode: map[int]*keptResult{}, follower: &follower{id: "j"}}
	rows := &keptResult{ResultInfo: wire.ResultInfo{Name: "rows"}}
	r.kept, r.byNode[1] = []*keptResult{rows}, rows
	state := func(attempt int, state wire.JobState) *wire.Event {
		return &wire.Event{State: &wire.JobInfo{Attempt: attempt, State: state}}
	}
	sent := &wire.Event{Collected: rowsOf(t, 0, 1, 2).Collected}
	for _, e := range []*wire.Event{state(1, wire.JobRunning), sent, state(2, wire.JobRunning), sent, sent} {
		require.NoError(t, r.event(e))
	}
	require.EqualValues(t, 4, rows.Rows)
	require.Len(t, rows.pieces, 2)
	require.NoError(t, r.event(state(3, wire.JobCommitting)))
	require.Len(t, rows.pieces, 2)
	err := r.event(&wire.Event{Collected: &wire.Collected{Node: 7}})
	require.Equal(t, codes.DataLoss, wire.Code(err))
	err = r.event(&wire.Event{Collected: &wire.Collected{Node: 1, Rows: []byte("no rows")}})
	require.Equal(t, codes.DataLoss, wire.Code(err))
}
