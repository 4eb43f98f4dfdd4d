package task

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// A queue that is cut goes on with another gang, in the same vertex of the plan:
//
//	gang 1   Open … superstep k, its verdict ─► Cut ─► Close ┐ by the last member that leaves
//	gang 2                                                   └► OpenLoops ─► Open … Finish
//
// All members of the first gang have ended before the second is made, so that nothing is held
// twice. The cut is passed as bytes. Only the first gang reads inputs. Side inputs are kept in
// between. The queue emits its rows by shard, so readers do not see which subtask had the
// shard.

// regroup asks at which parallelism the queue goes on after a superstep; 0 if it does not
// change.
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

// handOver ends a member of a queue that is cut, for a next gang of `to` subtasks.
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
					m.head.sides[i].input.readers.Add(1) // for the next gang, which takes the side input over
				}
				g.to = to
			}
			m.cut = true
			eachStage(m.stages, func(s *boundStage) { s.Stage = Stage{Node: s.Node} }) // drops what they hold
			return nil
		})
	})
}

// leave is called when the member has ended. A member that failed aborts the group; the run
// knows its failure. The last member starts the next gang if all were cut.
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

// goOn starts the next gang of a queue that was cut.
func (g *gang) goOn() error {
	data, err := g.cut().Encode()
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
		s.input.leave() // the gang will not do so
	}
	r.start(g, next)
	return nil
}

// cut assembles the Cut from what the members have handed over.
func (g *gang) cut() *Cut {
	c := &Cut{
		Step: g.steps, Last: g.done, Stopped: g.stopped, Parts: g.handed,
		Series: g.series, First: g.firstOf, Steps: g.stepReports, Elapsed: g.elapsed,
	}
	c.Compute, c.Communicate = g.timeSpent()
	return c
}

// atParallelism returns the vertex of a queue at another parallelism.
func atParallelism(v *plan.Vertex, p, shards int) *plan.Vertex {
	other := *v
	other.Parallelism, other.Ranges = p, make([]sharding.Range, p)
	for i := range other.Ranges {
		other.Ranges[i] = sharding.Split(shards, p, i)
	}
	return &other
}

// start runs the members of the gang that follows another one.
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

// endWatches waits until no group is aborted any more.
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

// closeSessions closes the sessions of queues that were cut and did not go on.
func (r *run) closeSessions() error {
	if r.abandoned() {
		return nil // functions may still read what is there
	}
	if err := r.env.Sessions.Close(r.plan.Job); err != nil {
		return fmt.Errorf("close what queues have left: %w", err)
	}
	return nil
}
