package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/wire"
)

// OnWorkers is the outcome of a job that several workers in this process ran.
type OnWorkers struct {
	Result *Result
	Output string // text that operators print
	// Progress is the last progress of each worker.
	Progress []*wire.Progress
	// Failures are the failures of the workers, nil for workers that succeeded.
	Failures []*wire.Failure
}

// RunOnWorkers runs a job with the given number of slots on each worker, and handles the
// messages of the workers one by one.
func RunOnWorkers[A any](t testing.TB, job *Job[A], args A, slots []int, opts ...Option) *OnWorkers {
	t.Helper()
	return RunOnWorkersWith(t, job, args, slots, func(*wire.Deployment) {}, opts...)
}

// RunOnWorkersWith is like RunOnWorkers, but change may modify each deployment.
func RunOnWorkersWith[A any](t testing.TB, job *Job[A], args A, slots []int, change func(d *wire.Deployment), opts ...Option) *OnWorkers {
	t.Helper()
	return runOnWorkers(t, job, args, slots, change, nil, opts...)
}

// runOnWorkers is like RunOnWorkersWith, but open, if not nil, opens the data planes.
func runOnWorkers[A any](t testing.TB, job *Job[A], args A, slots []int, change func(d *wire.Deployment), open func(planeConfig) (dataPlane, error), opts ...Option) *OnWorkers {
	t.Helper()
	parallelism := 0
	ranges := make([]wire.SlotRange, len(slots))
	for i, n := range slots {
		ranges[i] = wire.SlotRange{Lo: parallelism, Hi: parallelism + n}
		parallelism += n
	}
	spec := specOf(t, job, args, parallelism, opts...)
	hands := make([]*scriptedTaskManager, len(slots))
	for i := range slots {
		m := deployment(spec, i, len(slots))
		m.Deployment.Slots, m.Deployment.WorkDir = ranges, t.TempDir()
		change(m.Deployment)
		hands[i] = startWorker(t, workerEnv{jobs: []Runnable{job}, allocator: checked(t), open: open})
		hands[i].say(m)
	}
	run := &manager{t: t, hands: hands, at: make([]int, len(hands))}
	run.whole()
	got := &OnWorkers{Progress: make([]*wire.Progress, len(hands)), Failures: run.failures}
	c, err := newConfig(append([]Option{Shards(16), Parallelism(parallelism)}, opts...))
	require.NoError(t, err)
	local, err := prepare(job, args, c)
	require.NoError(t, err)
	for i, h := range hands {
		code := h.end()
		require.Equal(t, run.failures[i] != nil, code == exitFailed, "worker %d", i)
		for _, m := range h.all() {
			switch {
			case m.Progress != nil:
				got.Progress[i] = m.Progress
			case m.Output != nil:
				got.Output += string(m.Output.Text)
			case m.Collected != nil:
				receive(t, local.store, m.Collected)
			}
		}
	}
	if run.outcomes == nil {
		local.store.release()
		return got
	}
	report, err := task.MergeOutcomes(local.plan, run.outcomes)
	require.NoError(t, err)
	got.Result = &Result{Report: report, Plan: local.plan, Graph: local.graph, store: local.store}
	return got
}

// checked returns an allocator that fails the test if a batch is not released.
func checked(t testing.TB) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// receive stores the rows that a worker collected.
func receive(t testing.TB, store *resultStore, m *wire.Collected) {
	t.Helper()
	store.limitTo(1 << 40)
	r, err := batch.NewStreamReader(bytes.NewReader(m.Rows), newDefaultConfig(t).allocator)
	require.NoError(t, err)
	defer r.Release()
	for {
		rows, err := r.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		require.NoError(t, store.Collect(plan.NodeID(m.Node), m.Shard, arrowrows.Batch(rows)))
		rows.Release()
	}
}

func newDefaultConfig(t testing.TB) *config {
	c, err := newConfig(nil)
	require.NoError(t, err)
	return c
}

// manager plays the task managers and the job manager for the workers of a job.
type manager struct {
	t        testing.TB
	hands    []*scriptedTaskManager
	at       []int // number of messages read from each worker
	failures []*wire.Failure
	outcomes [][]byte

	cancelled sync.Once
}

// whole leads the workers through the job. If one of them fails, whole cancels the others.
func (m *manager) whole() {
	m.failures = make([]*wire.Failure, len(m.hands))
	addresses := make([]string, len(m.hands))
	ok := m.each(func(i int, said *wire.FromWorker) { addresses[i] = said.Ready.Address })
	if ok {
		m.hands[0].say(wire.ToWorker{Prepare: &wire.Prepare{}})
		ok = m.hear(0, func(said *wire.FromWorker) { require.NotNil(m.t, said.Prepared) })
	}
	if ok {
		m.tell(wire.ToWorker{Start: &wire.Start{Addresses: addresses}})
		outcomes := make([][]byte, len(m.hands))
		ok = m.each(func(i int, said *wire.FromWorker) { outcomes[i] = said.Finished.Outcome })
		if ok {
			m.hands[0].say(wire.ToWorker{Commit: &wire.Commit{Outcomes: outcomes}})
			ok = m.hear(0, func(said *wire.FromWorker) { require.NotNil(m.t, said.Committed) })
		}
		if ok {
			m.outcomes = outcomes
		}
	}
	if ok {
		m.tell(wire.ToWorker{Exit: &wire.Exit{}})
		return
	}
	m.cancel()
	for i := range m.hands {
		for m.failures[i] == nil && m.hear(i, func(*wire.FromWorker) {}) { // the loop skips messages before the failure
		}
	}
}

// cancel cancels all workers, once.
func (m *manager) cancel() {
	m.cancelled.Do(func() { m.tell(wire.ToWorker{Cancel: &wire.Cancel{Reason: "another worker failed"}}) })
}

func (m *manager) tell(word wire.ToWorker) {
	for _, h := range m.hands {
		h.say(word)
	}
}

// hear passes the next message of worker i to take. If the message is a failure, hear stores it
// and returns false.
func (m *manager) hear(i int, take func(said *wire.FromWorker)) bool {
	said := m.hands[i].next(&m.at[i])
	require.NotNil(m.t, said, "worker %d has ended: %s", i, m.hands[i].stderr.String())
	if said.Failed != nil {
		m.failures[i] = said.Failed
		return false
	}
	take(said)
	return true
}

// each passes the next message of every worker to take. If a message is a failure, each cancels
// the job and returns false.
func (m *manager) each(take func(i int, said *wire.FromWorker)) bool {
	var hearing sync.WaitGroup
	var failed atomic.Bool
	for i := range m.hands {
		hearing.Go(func() {
			if !m.hear(i, func(said *wire.FromWorker) { take(i, said) }) {
				failed.Store(true)
				m.cancel()
			}
		})
	}
	hearing.Wait()
	return !failed.Load()
}

// rowsText returns all rows of a result with their shards as text. It does not depend on how
// the rows are cut into batches.
func (r *Result) rowsText() string {
	var b strings.Builder
	for _, c := range r.store.results {
		for shard, recs := range c.shards {
			for _, rec := range recs {
				for i := range int(rec.NumRows()) {
					fmt.Fprintf(&b, "%s %d:", c.name, shard)
					for _, col := range rec.Columns() {
						b.WriteString(" " + batch.FormatValue(col, i))
					}
					b.WriteByte('\n')
				}
			}
		}
	}
	return b.String()
}

// ResultText returns the rows and accumulators of a run as text. Two texts are equal if and
// only if all bits of the rows and accumulators are equal.
func ResultText(r *Result) string {
	text := r.rowsText()
	for _, a := range r.Report.Accumulators {
		text += fmt.Sprintf("accumulator %s %x\n", a.Name, a.Value)
	}
	for _, q := range r.Report.Queues {
		text += fmt.Sprintf("queue %s %d %t\n", q.Name, q.Supersteps, q.Stopped)
		for _, s := range q.Series {
			text += fmt.Sprintf("series %s %x\n", s.Name, s.Values)
		}
	}
	return text
}

// SomeFailure returns a failure that is not the consequence of another failure.
func (o *OnWorkers) SomeFailure(t testing.TB) *wire.Failure {
	i := slices.IndexFunc(o.Failures, func(f *wire.Failure) bool { return f != nil && f.Kind != wire.PeerFailure })
	require.GreaterOrEqual(t, i, 0, "%v", o.Failures)
	return o.Failures[i]
}
