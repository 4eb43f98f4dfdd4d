package task

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// A queue that is cut continues with another gang, in the same vertex of the plan:
//
//	gang 1   Open … superstep k, its verdict ─► Cut ─► Close ┐ the last member that ends starts gang 2
//	gang 2                                                   └► OpenLoops ─► Open … Finish
//
// All members of the first gang have ended before the second gang is made, so that no state is
// in memory twice. The Cut is passed as bytes. Only the first gang of a queue reads inputs. Side
// inputs are kept for later gangs. The queue emits its rows by shard, so readers do not see
// which subtask owned the shard.

// regroup calls Env.Regroup, and returns the parallelism at which the queue continues after a
// superstep, or 0 if it does not change.
func (g *gang) regroup(step int) (int, error) {
	ask := g.run.env.Regroup
	if ask == nil {
		return 0, nil
	}
	switch to := ask(g.queue.Name, step); {
	case to < 0 || to > g.run.plan.Shards:
		return 0, fmt.Errorf("queue %q is to continue with %d subtasks after superstep %d: want 1 to %d, the number of shards", g.queue.Name, to, step, g.run.plan.Shards)
	case to > 0 && g.spread:
		return 0, fmt.Errorf("queue %q is to continue with %d subtasks after superstep %d, and those that it has are in several processes: that is done within one process", g.queue.Name, to, step)
	default:
		return to, nil
	}
}

// handOver hands over the state of a member, whose queue is cut, to a next gang of `to` subtasks.
func (m *member) handOver(to int) error {
	if m.context.Err() != nil {
		return m.failAt(m.between, errStopped)
	}
	return m.turn(func() error {
		return m.call(m.between, func() (err error) {
			g := m.gang
			if g.handed[m.index-g.here.Lo], err = m.body.Cut(to); err != nil {
				return err
			}
			if m.index == g.here.Lo {
				for i := range m.head.sides {
					m.head.sides[i].input.readers.Add(1) // keeps the side input for the next gang
				}
				g.to = to
			}
			m.cut = true
			eachStage(m.stages, func(s *boundStage) { s.Stage = Stage{Node: s.Node} }) // drops the stages' functions
			return nil
		})
	})
}

// leave is called when the member has ended. A member that failed aborts the group; its failure
// is already recorded in the run. The last member starts the next gang if all members were cut.
func (m *member) leave() error {
	var cause error
	if m.err != nil {
		cause = peerFailed(m.index, m.err)
	}
	m.comm.Close(cause)
	g := m.gang
	if m.cut && m.err == nil {
		g.cuts.Add(1)
	}
	if g.left.Add(1) < int32(g.here.Len()) || int(g.cuts.Load()) < g.here.Len() || m.context.Err() != nil {
		return nil
	}
	m.at.Store(m.between)
	return m.call(m.between, g.goOn)
}

// goOn makes and starts the next gang of a queue that was cut.
func (g *gang) goOn() error {
	cut := g.cut(g.steps, g.done, g.stopped)
	cut.Parts = g.handed
	data, err := cut.Encode()
	if err != nil {
		return err
	}
	g.handed = nil
	from, err := DecodeCut(data)
	if err != nil {
		return err
	}
	r := g.run
	next := &gang{
		run: r, queue: g.queue, here: sharding.Range{Lo: 0, Hi: g.to}, generation: g.generation + 1,
		group: localGroup{collective.NewLocalGroup(g.to)}, from: from,
	}
	next.begin()
	b := builder{run: r}
	if err := b.open(next, atParallelism(g.vertex, g.to, r.plan.Shards), g.parts); err != nil {
		return err
	}
	for _, s := range g.members[0].head.sides {
		s.input.readers.Add(int32(len(next.members)))
		s.input.leave() // for the reader that handOver added
	}
	r.start(g, next)
	return nil
}

// cut returns the Cut after superstep step without its parts. It shares no memory with the gang,
// which may go on. It must be called on the goroutine of member 0, or after that goroutine has
// ended.
func (g *gang) cut(step int, last, stopped bool) *Cut {
	c := &Cut{
		Step: step, Last: last, Stopped: stopped,
		Series: slices.Clone(g.series), First: slices.Clone(g.firstOf), Steps: slices.Clone(g.stepReports), Elapsed: g.elapsed,
	}
	for i := range c.Series {
		c.Series[i].Values = slices.Clone(c.Series[i].Values)
	}
	c.Compute, c.Communicate = g.timeSpent()
	return c
}

// atParallelism returns a copy of a queue's vertex at parallelism p.
func atParallelism(v *plan.Vertex, p, shards int) *plan.Vertex {
	other := *v
	other.Parallelism, other.Ranges = p, make([]sharding.Range, p)
	for i := range other.Ranges {
		other.Ranges[i] = sharding.Split(shards, p, i)
	}
	return &other
}

// start starts the members of the gang next, which continues the queue after the gang before.
func (r *run) start(before, next *gang) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before.next = next
	r.watched = append(r.watched, next.abortOn(r.context))
	for _, m := range next.members {
		r.subtasks = append(r.subtasks, m.subtask)
		r.running.Go(func() { m.subtask.main(m.main) })
	}
}

// endWatches calls the stop functions of abortOn. When it returns, no group is being aborted.
func (r *run) endWatches() {
	r.mu.Lock()
	watched := slices.Clone(r.watched)
	r.mu.Unlock()
	for _, stop := range watched {
		stop()
	}
}

// generations returns the gangs that a queue had, in order.
func (g *gang) generations() []*gang {
	all := []*gang{g}
	for g.next != nil {
		g = g.next
		all = append(all, g)
	}
	return all
}

// closeSessions closes the sessions of queues that were cut and did not continue.
func (r *run) closeSessions() error {
	if r.abandoned() {
		return nil // abandoned functions may still read objects of the sessions
	}
	if err := r.env.Sessions.Close(r.plan.Job); err != nil {
		return fmt.Errorf("close what queues have left: %w", err)
	}
	return nil
}
