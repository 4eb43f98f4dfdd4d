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
	choose := g.run.env.Regroup
	if choose == nil {
		return 0, nil
	}
	switch parallelism := choose(g.queue.Name, step); {
	case parallelism < 0 || parallelism > g.run.plan.Shards:
		return 0, fmt.Errorf("queue %q is to continue with %d subtasks after superstep %d: want 1 to %d, the number of shards", g.queue.Name, parallelism, step, g.run.plan.Shards)
	case parallelism > 0 && g.multiProcess:
		return 0, fmt.Errorf("queue %q is to continue with %d subtasks after superstep %d, and those that it has are in several processes: that is done within one process", g.queue.Name, parallelism, step)
	default:
		return parallelism, nil
	}
}

// handOver hands over the state of a member, whose queue is cut, to a next gang of the given
// parallelism.
func (m *member) handOver(parallelism int) error {
	if m.context.Err() != nil {
		return m.failAt(m.betweenStages, errStopped)
	}
	return m.turn(func() error {
		return m.call(m.betweenStages, func() (err error) {
			g := m.gang
			if g.cutParts[m.index-g.here.Lo], err = m.body.Cut(parallelism); err != nil {
				return err
			}
			if m.index == g.here.Lo {
				for i := range m.head.sides {
					m.head.sides[i].input.readers.Add(1) // keeps the side input for the next gang
				}
				g.nextParallelism = parallelism
			}
			m.handedOver = true
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
	if m.handedOver && m.err == nil {
		g.cutMembers.Add(1)
	}
	if g.endedMembers.Add(1) < int32(g.here.Len()) || int(g.cutMembers.Load()) < g.here.Len() || m.context.Err() != nil {
		return nil
	}
	m.current.Store(m.betweenStages)
	return m.call(m.betweenStages, g.startNext)
}

// startNext makes and starts the next gang of a queue that was cut.
func (g *gang) startNext() error {
	made := g.cutAfter(g.steps, g.done, g.stopped)
	made.Parts = g.cutParts
	data, err := made.Encode()
	if err != nil {
		return err
	}
	g.cutParts = nil
	cut, err := DecodeCut(data)
	if err != nil {
		return err
	}
	r := g.run
	next := &gang{
		run: r, queue: g.queue, here: sharding.Range{Lo: 0, Hi: g.nextParallelism}, generation: g.generation + 1,
		group: localGroup{collective.NewLocalGroup(g.nextParallelism)}, resumed: cut,
	}
	next.begin()
	b := builder{run: r}
	if err := b.open(next, atParallelism(g.vertex, g.nextParallelism, r.plan.Shards), g.parts); err != nil {
		return err
	}
	for _, s := range g.members[0].head.sides {
		s.input.readers.Add(int32(len(next.members)))
		s.input.leave() // for the reader that handOver added
	}
	r.start(g, next)
	return nil
}

// cutAfter returns the Cut after superstep step without its parts. It shares no memory with the gang,
// which may go on. It must be called on the goroutine of member 0, or after that goroutine has
// ended.
func (g *gang) cutAfter(step int, last, stopped bool) *Cut {
	c := &Cut{
		Step: step, Last: last, Stopped: stopped,
		Series: slices.Clone(g.series), First: slices.Clone(g.firstSteps), Steps: slices.Clone(g.stepReports), Elapsed: g.elapsed,
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
	r.abortStops = append(r.abortStops, next.abortOn(r.context))
	for _, m := range next.members {
		r.subtasks = append(r.subtasks, m.subtask)
		r.running.Go(func() { m.subtask.main(m.main) })
	}
}

// endWatches calls the stop functions of abortOn. When it returns, no group is being aborted.
func (r *run) endWatches() {
	r.mu.Lock()
	watched := slices.Clone(r.abortStops)
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
