package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/wire"
)

// speaker returns a sender, and a function that closes it and returns its messages.
func speaker(t testing.TB) (*workerSender, func() []*wire.FromWorker) {
	r, w := io.Pipe()
	fail := func(err error) { require.NoError(t, err) }
	v := newWorkerSender(wire.NewWriter[wire.FromWorker](w), time.Hour, fail, fail)
	heard := make(chan []*wire.FromWorker)
	go func() {
		var all []*wire.FromWorker
		frames := wire.NewReader[wire.FromWorker](r)
		for {
			m, err := frames.Next()
			if err != nil {
				heard <- all
				return
			}
			all = append(all, m)
		}
	}()
	return v, func() []*wire.FromWorker {
		require.NoError(t, v.close(time.Minute))
		w.Close()
		return <-heard
	}
}

// texts returns a batch of texts.
func texts(mem memory.Allocator, rows ...string) arrow.Record {
	b := array.NewStringBuilder(mem)
	defer b.Release()
	b.AppendValues(rows, nil)
	col := b.NewArray()
	defer col.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "text", Type: arrow.BinaryTypes.String}}, nil)
	return array.NewRecord(schema, []arrow.Array{col}, int64(len(rows)))
}

// TestRowSenderCuts requires that large batches are sent in pieces and in order, and arrive
// unchanged.
func TestRowSenderCuts(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	sender, end := speaker(t)
	s := &rowSender{sender: sender, mem: mem}
	var want []string
	for i := range 100 {
		want = append(want, strings.Repeat(string(rune('a'+i%26)), 100_000+i))
	}
	rows := texts(mem, want...)
	require.NoError(t, s.send(t.Context(), 7, 3, rows))
	rows.Release()
	huge := texts(mem, "x", strings.Repeat("y", 3*collectedBytes), "z")
	want = append(want, "x", strings.Repeat("y", 3*collectedBytes), "z")
	require.NoError(t, s.send(t.Context(), 7, 3, huge))
	part := huge.NewSlice(2, 3) // the rows around the slice must not be sent
	want = append(want, "z")
	require.NoError(t, s.send(t.Context(), 7, 3, part))
	part.Release()
	none := huge.NewSlice(1, 1)
	require.NoError(t, s.send(t.Context(), 7, 3, none))
	none.Release()
	huge.Release()

	said := end()
	var got []string
	for i, m := range said {
		require.Equal(t, 7, m.Collected.Node)
		require.Equal(t, 3, m.Collected.Shard)
		if i != len(said)-3 {
			require.Less(t, len(m.Collected.Rows), collectedBytes+4096)
		}
		r, err := batch.NewStreamReader(bytes.NewReader(m.Collected.Rows), mem)
		require.NoError(t, err)
		for {
			rows, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			for i := range int(rows.NumRows()) {
				got = append(got, batch.FormatValue(rows.Column(0), i))
			}
			rows.Release()
		}
		r.Release()
	}
	require.Equal(t, want, got)
	require.Less(t, len(said[len(said)-1].Collected.Rows), 4096)
}

func TestRowSenderRefusesRowsTooLarge(t *testing.T) {
	sender, end := speaker(t)
	rows := texts(memory.DefaultAllocator, strings.Repeat("x", wire.MaxFrame-collectedBytes+1))
	defer rows.Release()
	err := (&rowSender{sender: sender, mem: memory.DefaultAllocator}).send(t.Context(), 0, 0, rows)
	require.ErrorContains(t, err, "a row to collect takes 63.0 MiB, and at most 63 MiB can travel to the client: write it to a file")
	require.Empty(t, end())
	rows = texts(memory.DefaultAllocator, strings.Repeat("x", wire.MaxFrame-collectedBytes-1024))
	defer rows.Release()
	sender, end = speaker(t)
	require.NoError(t, (&rowSender{sender: sender, mem: memory.DefaultAllocator}).send(t.Context(), 0, 0, rows))
	require.Len(t, end(), 1)
}

// TestWorkerWaitsForItsReader requires that a worker's sender waits while the pipe is full, and
// stops waiting when its context ends.
func TestWorkerWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		v := newWorkerSender(wire.NewWriter[wire.FromWorker](w), time.Second, func(error) {}, func(error) {})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("had enough"))
		defer cancel()
		text := &textSender{sender: v, ctx: ctx}
		n, err := text.Write([]byte("first\n")) // the sender has accepted this text, but the pipe is full
		require.NoError(t, err)
		require.Equal(t, 6, n)
		_, err = text.Write([]byte("second\n"))
		require.EqualError(t, err, "write to the client's standard output: had enough")
		rows := texts(memory.DefaultAllocator, "x")
		defer rows.Release()
		require.EqualError(t, (&rowSender{sender: v, mem: memory.DefaultAllocator}).send(ctx, 0, 0, rows), "had enough")
		require.ErrorContains(t, v.close(time.Second), "did not read the worker's last message within 1s")
		_, err = (&textSender{sender: v, ctx: t.Context()}).Write([]byte("third"))
		require.ErrorContains(t, err, "the worker has sent its last message")
		r.Close()
	})
}

// TestTextSender requires that a text is sent in one message, unless it is large.
func TestTextSender(t *testing.T) {
	sender, end := speaker(t)
	s := &textSender{sender: sender, ctx: t.Context()}
	long := strings.Repeat("0123456789", outputBytes/10+1)
	for _, text := range []string{"", "a line\n", long} {
		n, err := io.WriteString(s, text)
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	said := end()
	require.Len(t, said, 3)
	require.Equal(t, "a line\n", string(said[0].Output.Text))
	require.Len(t, said[1].Output.Text, outputBytes)
	require.Equal(t, long, string(said[1].Output.Text)+string(said[2].Output.Text))
}

// TestWorkerProgress requires that progress is sent when it changes, but at most once per
// ProgressInterval, and at the end.
func TestWorkerProgress(t *testing.T) {
	p := &plan.Plan{Vertices: make([]plan.Vertex, 2), Queues: []plan.Queue{{Name: "a", MaxSupersteps: 3}, {Name: "b"}}}
	synctest.Test(t, func(t *testing.T) {
		sender, end := speaker(t)
		w := newWorkerProgress(p, true, sender)
		stop := w.tell(t.Context())
		time.Sleep(time.Second)
		for i := range int64(50) {
			w.event(task.Progress{Vertex: 1, Rows: i, ShardsDone: int(i / 10)})
			time.Sleep(ProgressInterval / 10)
		}
		w.event(task.Progress{Vertex: 1, Rows: 7}) // a late report: counts never decrease
		w.event(task.Progress{Vertex: 9, Rows: 7})
		values := []task.Value{{Name: "inertia", Value: 2.5}}
		w.event(task.Progress{Queue: "a", Step: 3, Values: values, Compute: 2 * time.Second, Communicate: 500 * time.Millisecond})
		values[0].Value = 0 // the values are valid only during the call
		w.event(task.Progress{Queue: "a", Step: 2})
		w.event(task.Progress{Queue: "b", Step: 1})
		w.event(task.Progress{Queue: "c", Step: 1})
		time.Sleep(2 * ProgressInterval)
		stop(true)
		said := end()
		require.LessOrEqual(t, len(said), 8)
		require.GreaterOrEqual(t, len(said), 6)
		before, last := said[len(said)-2].Progress, said[len(said)-1].Progress
		require.Equal(t, []wire.VertexProgress{{}, {Rows: 49, ShardsDone: 4}}, last.Vertices)
		a := wire.QueueProgress{Superstep: 3, Ended: true, Compute: 2, Communicate: 0.5, Values: []wire.ReportedValue{{Name: "inertia", Value: 2.5}}}
		require.Equal(t, []wire.QueueProgress{a, {Superstep: 1}}, before.Queues)
		require.Equal(t, []wire.QueueProgress{a, {Superstep: 1, Ended: true}}, last.Queues)
	})
	sender, end := speaker(t)
	w := newWorkerProgress(p, false, sender)
	stop := w.tell(t.Context())
	w.event(task.Progress{Queue: "a", Step: 3})
	stop(true)
	require.Empty(t, end()[0].Progress.Queues, "only worker 0 may report the progress of queues")
}

// TestWorkerSaysAtOnceThatItResumes requires that a worker sends its progress without delay when a queue
// has read its rows, and when a first superstep after that has ended, with its number; and that other
// supersteps wait for the interval.
func TestWorkerSaysAtOnceThatItResumes(t *testing.T) {
	p := &plan.Plan{Queues: []plan.Queue{{Name: "a"}, {Name: "b"}}}
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			sender, end := speaker(t)
			w := newWorkerProgress(p, first, sender)
			stop := w.tell(t.Context())
			w.event(task.Progress{Queue: "a", Step: 9}) // of an attempt before
			w.opened("a", 10)
			synctest.Wait()
			w.event(task.Progress{Queue: "a", Step: 9})
			w.event(task.Progress{Queue: "a", Step: 10})
			synctest.Wait()
			w.event(task.Progress{Queue: "a", Step: 11})
			w.opened("b", 1)
			w.event(task.Progress{Queue: "b", Step: 1})
			synctest.Wait()
			stop(false)
			want := []wire.Progress{{Opened: true}}
			if first {
				want = []wire.Progress{{Opened: true}, {Opened: true, Resumed: 10}, {Opened: true, Resumed: 10}}
			}
			var got []wire.Progress
			for _, m := range end() {
				got = append(got, wire.Progress{Opened: m.Progress.Opened, Resumed: m.Progress.Resumed})
			}
			require.Equal(t, want, got)
		})
	}
	w := newWorkerProgress(p, true, nil)
	w.event(task.Progress{Queue: "b", Step: 1}) // subtask 0 may be faster than the last subtask reads rows
	require.Zero(t, w.take(false).Resumed)
	w.opened("b", 1)
	require.Equal(t, 1, w.take(false).Resumed)
}
