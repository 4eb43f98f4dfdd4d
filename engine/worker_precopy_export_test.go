package engine

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Move is a planned change of the processes of a job, and how it is disturbed.
type Move struct {
	// Before and After have the number of slots of each process in the first and in the second attempt. In the
	// first, processes without slots are fresh; in the second, they only give. In each attempt the processes
	// are numbered in the order of Order, which is that of the slices if it is nil.
	Before, After         []int
	OrderBefore, OrderNow []int

	Change  func(process int, d *wire.Deployment) // of the first attempt; nil if there is nothing to change
	Request func(p *wire.Precopy)                 // changes the request; nil if there is nothing to change
	Gate    Gate
}

// Gate lets a queue do supersteps in the first attempt.
type Gate interface {
	// Entered returns when the queue waits in a superstep.
	Entered()
	// Pass lets it do one more superstep, and reports whether it did that before done was closed.
	Pass(done <-chan struct{}) bool
	// Open lets it do all supersteps.
	Open()
}

// Moved is the outcome of a Move.
type Moved struct {
	*OnWorkers
	Log   string // of worker 0 in the first attempt
	Bytes int64  // of rows that were sent to queues in the second attempt
}

// RunMoved runs a job in two attempts, between which its processes change as the Move says. Every process is kept.
func RunMoved[A any](t *testing.T, job *Job[A], args A, m Move) *Moved {
	restoreLimits(t)
	r := &movedRun{t: t, m: m, hands: make([]*scriptedTaskManager, len(m.Before)), at: make([]int, len(m.Before))}
	for i := range m.Before {
		r.hands[i] = startWorker(t, workerEnv{jobs: []Runnable{job}, allocator: checked(t)})
	}
	order := r.m.order(m.Before, m.OrderBefore)
	r.deploy(1, specOf(t, job, args, total(m.Before)), m.Before, order)
	r.save(order)
	log := r.hands[order[0]].stderr.String()
	for i := range r.hands {
		r.hands[i].say(wire.ToWorker{Cancel: &wire.Cancel{Reason: "the job gets other workers", Keep: true}})
	}
	for i := range r.hands {
		said := r.next(i)
		for said.Saved != nil { // the answer to the repeated request
			said = r.next(i)
		}
		require.NotNil(t, said.Failed, "%+v", said)
		require.Equal(t, wire.PeerFailure, said.Failed.Kind)
		require.NotNil(t, r.next(i).Kept, "process %d", i)
	}
	m.Gate.Open()
	order = r.m.order(m.After, m.OrderNow)
	said := make([]int, len(r.hands))
	for i, h := range r.hands {
		said[i] = len(h.all())
	}
	spec := specOf(t, job, args, total(m.After))
	r.deploy(2, spec, m.After, order)
	outcomes := r.finish(order)

	c, err := newConfig([]Option{Shards(16), Parallelism(total(m.After))})
	require.NoError(t, err)
	local, err := prepare(job, args, c)
	require.NoError(t, err)
	got := &Moved{Log: log, OnWorkers: &OnWorkers{}}
	for i, h := range r.hands {
		require.Equal(t, exitOK, h.end(), h.stderr.String())
		var last *wire.Progress
		for _, m := range h.all()[said[i]:] {
			switch {
			case m.Progress != nil:
				last = m.Progress
			case m.Collected != nil:
				receive(t, local.store, m.Collected)
			}
		}
		if last != nil {
			for i, e := range last.Edges {
				if local.plan.Vertices[local.plan.Edges[i].To].Queue != "" {
					got.Bytes += e.Bytes
				}
			}
		}
	}
	report, err := task.MergeOutcomes(local.plan, outcomes)
	require.NoError(t, err)
	got.Result = &Result{Report: report, Plan: local.plan, Graph: local.graph, store: local.store}
	return got
}

func total(slots []int) (n int) {
	for _, s := range slots {
		n += s
	}
	return n
}

// order returns the process of each worker.
func (m *Move) order(slots, order []int) []int {
	if order == nil {
		for i := range slots {
			order = append(order, i)
		}
	}
	return order
}

// movedRun leads the processes of a Move.
type movedRun struct {
	t     *testing.T
	m     Move
	hands []*scriptedTaskManager
	at    []int // number of messages read from each process

	addresses []string // of the processes
}

// next returns the next message of a process.
func (r *movedRun) next(process int) *wire.FromWorker {
	said := r.hands[process].next(&r.at[process])
	require.NotNil(r.t, said, "process %d has ended: %s", process, r.hands[process].stderr.String())
	if f := said.Failed; f != nil && f.Kind != wire.PeerFailure {
		require.Fail(r.t, f.Message)
	}
	return said
}

// deploy deploys an attempt and starts it, except for fresh processes in the first attempt.
func (r *movedRun) deploy(attempt int, spec wire.JobSpec, slots, order []int) {
	spec.Run.LogLevel = "info"
	var ranges []wire.SlotRange
	for _, process := range order {
		lo := 0
		if n := len(ranges); n > 0 {
			lo = ranges[n-1].Hi
		}
		ranges = append(ranges, wire.SlotRange{Lo: lo, Hi: lo + slots[process]})
	}
	started := len(order)
	for attempt == 1 && slots[order[started-1]] == 0 {
		started--
	}
	r.addresses = make([]string, len(order))
	held := make([][]byte, len(order))
	for worker, process := range order {
		d := deployment(spec, worker, 1).Deployment
		d.Attempt, d.Keep, d.WorkDir, d.Slots = attempt, true, r.t.TempDir(), ranges[:max(started, worker+1)]
		if attempt == 1 && r.m.Change != nil {
			r.m.Change(process, d)
		}
		r.hands[process].say(wire.ToWorker{Deployment: d})
		ready := r.next(process).Ready
		require.NotNil(r.t, ready)
		r.addresses[process], held[worker] = ready.Address, ready.Held
	}
	first := r.hands[order[0]]
	first.say(wire.ToWorker{Prepare: &wire.Prepare{Held: held[:started]}})
	prepared := r.next(order[0]).Prepared
	require.NotNil(r.t, prepared)
	start := &wire.Start{Origin: prepared.Origin, Held: held[:started]}
	for _, process := range order[:started] {
		start.Addresses = append(start.Addresses, r.addresses[process])
	}
	for _, process := range order[:started] {
		r.hands[process].say(wire.ToWorker{Start: start})
	}
}

// save has the rows copied ahead and the state saved.
func (r *movedRun) save(order []int) {
	m := &wire.Precopy{Of: total(r.m.After), Within: time.Minute}
	lo := 0
	for _, process := range r.m.order(r.m.After, r.m.OrderNow) {
		if n := r.m.After[process]; n > 0 {
			to := wire.PrecopyTo{Slots: wire.SlotRange{Lo: lo, Hi: lo + n}}
			for worker, p := range order {
				if p == process {
					to.Worker = worker
				}
			}
			if r.m.Before[process] == 0 {
				to.Address = r.addresses[process]
			}
			m.To = append(m.To, to)
			lo += n
		}
	}
	if r.m.Request != nil {
		r.m.Request(m)
	}
	r.m.Gate.Entered()
	first := r.hands[order[0]]
	save := wire.ToWorker{Save: &wire.Save{Request: 1, Precopy: m}}
	first.say(save)
	first.say(save) // a repeated request does nothing
	for !strings.Contains(first.stderr.String(), "ahead of the next attempt") {
		time.Sleep(time.Millisecond)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		saved := r.next(order[0]).Saved
		if saved == nil || saved.Failure != "" || saved.Request != 1 {
			r.t.Errorf("%+v", saved)
		}
	}()
	for r.m.Gate.Pass(done) { // supersteps are rarer than what the answer waits for
		select {
		case <-done:
		case <-time.After(2 * time.Millisecond):
		}
	}
	<-done
}

// finish leads the processes to the end of the job, and returns the outcomes of those with slots.
func (r *movedRun) finish(order []int) (outcomes [][]byte) {
	for _, process := range order {
		said := r.next(process)
		require.NotNil(r.t, said.Finished, "%+v", said.Failed)
		if r.m.After[process] > 0 {
			outcomes = append(outcomes, said.Finished.Outcome)
		}
	}
	r.hands[order[0]].say(wire.ToWorker{Commit: &wire.Commit{Outcomes: outcomes}})
	require.NotNil(r.t, r.next(order[0]).Committed)
	for _, process := range order {
		r.hands[process].say(wire.ToWorker{Exit: &wire.Exit{}})
	}
	return outcomes
}

// EndWhileCopying has a worker copy rows to a process that accepts a connection and says nothing, and ends the attempt.
func EndWhileCopying[A any](t *testing.T, job *Job[A], args A, gate Gate, silent net.Listener) {
	restoreLimits(t)
	r := &movedRun{t: t, m: Move{Before: []int{1}, After: []int{1}}, at: make([]int, 1)}
	r.hands = []*scriptedTaskManager{startWorker(t, workerEnv{jobs: []Runnable{job}, allocator: checked(t)})}
	r.deploy(1, specOf(t, job, args, 1), []int{1}, []int{0})
	gate.Entered()
	r.hands[0].say(wire.ToWorker{Save: &wire.Save{Request: 1, Precopy: &wire.Precopy{Of: 2, Within: time.Hour, To: []wire.PrecopyTo{
		{Worker: 1, Address: silent.Addr().String(), Slots: wire.SlotRange{Lo: 1, Hi: 2}},
	}}}})
	nc, err := silent.Accept()
	require.NoError(t, err)
	defer nc.Close()
	r.hands[0].say(wire.ToWorker{Cancel: &wire.Cancel{Reason: "the job gets other workers", Keep: true}})
	require.Equal(t, wire.PeerFailure, r.next(0).Failed.Kind)
	require.NotNil(t, r.next(0).Kept)
	r.hands[0].say(wire.ToWorker{Exit: &wire.Exit{}})
	require.Equal(t, exitOK, r.hands[0].end(), r.hands[0].stderr.String())
}
