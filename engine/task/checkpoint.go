package task

import (
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/cputime"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Checkpointer decides when the states of queues are saved, and takes them. If the subtasks of a
// queue are in several processes, each process has a Checkpointer. Decide and Save are called from the
// goroutines of the subtasks, which wait for them, so they must return soon.
type Checkpointer interface {
	// From returns the state from which a queue continues, or nil if the queue begins. It must be
	// of the same superstep in all processes. Parts that no subtask of the process needs, as
	// NeededParts says, may be empty. From is called before the subtasks start.
	From(queue string) *Cut
	// Decide says whether the state of a queue is to be saved after a superstep. It is called by
	// subtask 0 of the queue, when the verdict is known, after each superstep or as the decision
	// before says.
	Decide(queue string, step int) Decision
	// Save takes what this process has of the state of a queue after a superstep, in all
	// processes: after a superstep after which it is to be saved, and after the last superstep in
	// any case. Nothing else refers to the memory of s.
	Save(queue string, s *Saved)
}

// Decision says whether the state of a queue is saved.
type Decision struct {
	Purposes Purposes // 0 if it is not saved
	// Next is the number of supersteps after which the next decision is made; 0 means 1. If the queue
	// is in several processes and has no criterion, its subtasks meet only where a decision is made.
	Next int
}

// Purposes says for what a state is saved.
type Purposes uint8

const (
	// Durable means that the state is written to a store.
	Durable Purposes = 1 << iota
	// InMemory means that the state is copied to the memory of other processes.
	InMemory

	allPurposes = Durable | InMemory
)

// longestStride limits Decision.Next.
const longestStride = 1 << 20

// Saved is what one process has of the state of a queue after a superstep.
type Saved struct {
	// Cut has the parts of the subtasks in this process. Everything but Step, Last, Stopped and
	// Parts is set only in the process with subtask 0.
	Cut
	// Purposes says for what the state is saved; after the last superstep it has all purposes.
	Purposes Purposes
	// Here is the range of the subtasks in this process, and Subtasks is the number of all.
	Here     sharding.Range
	Subtasks int
	// Delay is the longest time for which a subtask of this process stood still to encode its part.
	// The other subtasks of the queue wait for it before the end of the next superstep.
	Delay time.Duration
	// Spent is the most processor time that encoding its part took a subtask of this process.
	Spent time.Duration
}

// Pieces yields the bytes of the state that this process has. Their numbers among the pieces that
// Cut.Pieces would yield of the whole state begin with first. A piece is valid until the next is
// yielded.
func (s *Saved) Pieces() (first int, pieces iter.Seq2[[]byte, error]) {
	if s.Here.Lo == 0 {
		return 0, s.Cut.Pieces()
	}
	return 1 + s.Here.Lo, func(yield func([]byte, error) bool) {
		head := true
		for piece, err := range s.Cut.Pieces() {
			if (!head || err != nil) && !yield(piece, err) {
				return
			}
			head = false
		}
	}
}

// NeededParts reports, for each of the parts of a Cut with the given number of subtasks, whether
// worker w of the part needs it to continue queue q of plan p.
func (t Part) NeededParts(p *plan.Plan, queue string, subtasks int) []bool {
	needed := make([]bool, subtasks)
	at := slices.IndexFunc(p.Vertices, func(v plan.Vertex) bool { return v.Queue == queue })
	if at < 0 {
		return needed
	}
	v := &p.Vertices[at]
	here := localSubtasks(t.Slots[t.Worker], v)
	if here.Empty() {
		return needed
	}
	shards := sharding.Range{Lo: v.Ranges[here.Lo].Lo, Hi: v.Ranges[here.Hi-1].Hi}
	for i := range needed {
		of := sharding.Split(p.Shards, subtasks, i)
		same := subtasks == v.Parallelism && here.Contains(i)
		needed[i] = i == 0 || same || of.Lo < shards.Hi && shards.Lo < of.Hi
	}
	return needed
}

// from returns the state from which a queue continues, or nil. The state may be of a run that allowed
// more supersteps. If it has reached the maximum of this run, no superstep follows, and the queue is
// only closed.
func (e *Env) from(q *plan.Queue) (*Cut, error) {
	if e.Checkpoints == nil {
		return nil, nil
	}
	c := e.Checkpoints.From(q.Name)
	if c == nil {
		return nil, nil
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("the state of queue %q: %w", q.Name, err)
	}
	if q.MaxSupersteps > 0 && c.Step >= q.MaxSupersteps && !c.Last {
		ended := *c // the Checkpointer keeps c
		ended.Last = true
		return &ended, nil
	}
	return c, nil
}

// saving collects what the members of a gang save after one superstep. The members meet at the
// verdict of each superstep, so that all of them have saved before the next state is saved.
type saving struct {
	parts  []CutPart
	took   []time.Duration // time that each part took
	spent  []time.Duration // processor time that each part took
	cut    *Cut            // everything but the parts; from subtask 0
	done   atomic.Int32
	failed atomic.Bool // a part could not be saved, and the run goes on
}

// unsaved is called if the part of the member cannot be saved. It returns the error with which the run
// fails, or nil if it goes on.
func (m *member) unsaved(err error) error {
	if m.run.env.Unsaved == nil {
		return err
	}
	if m.gang.saving.failed.Swap(true) {
		return nil
	}
	return m.run.env.Unsaved(m.gang.queue.Name, err)
}

// save saves the state of the member after a superstep. The last member of this process to do so
// passes the states to Env.Checkpoints.
func (m *member) save(step int, purposes Purposes, last, stopped bool) error {
	m.current.Store(m.betweenStages)
	return m.turn(func() error {
		return m.call(m.betweenStages, func() (err error) {
			g := m.gang
			s := &g.saving
			here, began := m.index-g.here.Lo, time.Now()
			if s.failed.Load() {
				return nil
			}
			s.spent[here] = cputime.Of(func() { s.parts[here], err = m.body.Save() })
			if err != nil {
				return m.unsaved(err)
			}
			s.took[here] = time.Since(began)
			if m.index == 0 {
				s.cut = g.cutAfter(step, last, stopped)
				s.cut.Elapsed += m.stageEnd
			}
			if int(s.done.Add(1)) < g.here.Len() {
				return nil
			}
			s.done.Store(0)
			all := &Saved{Cut: Cut{Step: step, Last: last, Stopped: stopped}, Here: g.here, Subtasks: g.vertex.Parallelism}
			if s.cut != nil {
				all.Cut = *s.cut
			}
			all.Parts, s.cut = slices.Clone(s.parts), nil
			all.Delay, all.Spent, all.Purposes = slices.Max(s.took), slices.Max(s.spent), purposes
			clear(s.parts)
			g.checkpoints.Save(g.queue.Name, all)
			return nil
		})
	})
}
