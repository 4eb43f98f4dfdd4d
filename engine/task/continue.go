package task

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// A run whose processes have retained something of an earlier run leaves out what is there: a queue
// takes the rows of its inputs from its session, shard by shard, and operators do not make shards
// whose rows nobody needs. All processes decide from the same holdings, with pure functions, so that
// each knows what the others send.

// continuation says what a run leaves out.
type continuation struct {
	// kept[queue] says of which shards a process has the rows. If that is not the process with the shard's
	// subtask, from[queue] has the worker that sends them, by shard; the others are -1.
	kept map[string][]bool
	from map[string][]int
	// toMake[v] says which shards the subtasks of vertex v make. Those of queues make all or none.
	toMake [][]bool
	// sides has the workers that have kept the rows of a side input, by edge, and leftOut the queues
	// that need not run because of that.
	sides   map[int][]int
	leftOut map[string]bool
}

// Continue tells the worker what all workers have retained of an earlier run: held[i] is what
// Retained.Held returned on worker i. ended are the queues that continue from a state after their last
// superstep. It is called before Run, on all workers with the same arguments or on none, and needs
// Env.Retained.
func (w *Worker) Continue(held [][]byte, ended []string) error {
	r := w.run
	switch {
	case r.env.Retained == nil:
		return fmt.Errorf("worker %d was told to continue, and keeps nothing", r.part.Worker)
	case len(held) != len(r.part.Slots):
		return fmt.Errorf("worker %d was told what %d workers have kept, of %d", r.part.Worker, len(held), len(r.part.Slots))
	}
	all := make([]holding, len(held))
	for i, data := range held {
		var err error
		if all[i], err = decodeHolding(r.plan, data); err != nil {
			return fmt.Errorf("what worker %d has kept of an earlier run: %w", i, err)
		}
	}
	c := &continuation{sides: heldSides(r.plan, all)}
	c.from, c.kept = movedRows(r.plan, r.hosts, all)
	c.leaveOut(r, ended, all[:Running(r.part.Slots)])
	c.forgetRows(r.plan, all)
	made := newMadeBefore(r.plan, all, Running(r.part.Slots))
	c.toMake = shardsToMake(r.plan, c.kept, c.leftOut, made.has)
	r.continued = c
	r.env.Retained.learnEnds(all)
	r.env.Retained.report(r.plan, c.toMake, made, r.hosts, r.part.Worker)
	r.env.Retained.releaseRows(func(queue string, shard int) bool {
		return r.keptHere(queue, shard) || r.movedFrom(queue, shard) == r.part.Worker
	})
	if err := r.takeSides(); err != nil {
		return err
	}
	return r.prepareMoves()
}

// forgetRows makes queues keep no rows if these depend on rows that an operator has emitted in Finish, or if
// the queues do not run.
func (c *continuation) forgetRows(p *plan.Plan, held []holding) {
	forget := func(queue string) {
		clear(c.kept[queue])
		for shard := range c.from[queue] {
			c.from[queue][shard] = -1
		}
	}
	for i := range held {
		for _, node := range held[i].Ends {
			for _, queue := range queuesBehind(p, node) {
				forget(queue)
			}
		}
	}
	for queue, out := range c.leftOut {
		if out {
			forget(queue)
		}
	}
}

// leaveOut finds the queues that need not run, and the side inputs that are sent in their place.
func (c *continuation) leaveOut(r *run, ended []string, held []holding) {
	c.leftOut = leftOut(r.plan, ended, held, c.sides)
	for queue, out := range c.leftOut {
		if out && reporter(held, queue) == r.part.Worker {
			r.passed = append(r.passed, queue)
		}
	}
	slices.Sort(r.passed)
	for i := range c.sides {
		if !c.leftOut[r.plan.Vertices[r.plan.Edges[i].From].Queue] {
			delete(c.sides, i) // the queue runs, and gives its rows to all
		}
	}
}

// keepsRowsOf reports whether a queue has kept rows that depend on those of an operator.
func (c *continuation) keepsRowsOf(p *plan.Plan, node plan.NodeID) bool {
	return slices.ContainsFunc(queuesBehind(p, node), func(queue string) bool { return slices.Contains(c.kept[queue], true) })
}

// queuesBehind returns the queues whose rows depend on the rows of an operator, unless an operator in one
// subtask or another queue is between them, whose rows are the same however its inputs are divided.
func queuesBehind(p *plan.Plan, node plan.NodeID) (queues []string) {
	seen := map[plan.NodeID]bool{node: true}
	next := []plan.NodeID{node}
	visit := func(n plan.NodeID) {
		if seen[n] || p.Nodes[n].Single {
			return
		}
		seen[n] = true
		if q := p.Nodes[n].Queue; q == "" {
			next = append(next, n)
		} else if !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	for len(next) > 0 {
		from := next[0]
		next = next[1:]
		for i := range p.Edges {
			if e := &p.Edges[i]; e.FromNode == from && carriesRows(p, e) {
				visit(e.ToNode)
			}
		}
		for i := range p.Vertices {
			chain := p.Vertices[i].Chain
			for _, c := range chain {
				if c.Parent >= 0 && chain[c.Parent].Node == from {
					visit(c.Node)
				}
			}
		}
	}
	return queues
}

// shardsToMake returns, by vertex, the shards that its subtasks have to make. kept has the shards
// whose rows queues have, and leftOut the queues that do not run. made reports whether it is known what
// an operator has counted for a shard. A vertex with an operator that gives its rows to nobody, such as a
// sink, makes all of them.
func shardsToMake(p *plan.Plan, kept map[string][]bool, leftOut map[string]bool, made func(n plan.NodeID, shard int) bool) [][]bool {
	toMake := make([][]bool, len(p.Vertices))
	var decide func(v plan.VertexID) []bool
	decide = func(id plan.VertexID) []bool {
		if toMake[id] != nil {
			return toMake[id]
		}
		v := &p.Vertices[id]
		needed := make([]bool, p.Shards)
		toMake[id] = needed
		if v.Queue != "" && leftOut[v.Queue] {
			return needed
		}
		if v.Queue != "" || endsHere(p, v) {
			fill(needed)
			return needed
		}
		for i := range p.Edges {
			e := &p.Edges[i]
			if e.From != id || !carriesRows(p, e) {
				continue
			}
			wanted := wantedOf(p, e, kept, leftOut, decide(e.To))
			for shard, w := range wanted {
				switch {
				case w && e.Partitioner == plan.Forward && e.Role != plan.Side:
					needed[shard] = true
				case w:
					fill(needed)
				}
			}
		}
		for shard := range needed {
			for _, c := range v.Chain {
				needed[shard] = needed[shard] || !made(c.Node, shard)
			}
		}
		if single(p, v) && slices.Contains(needed, true) {
			fill(needed) // what it makes of a shard may depend on all shards before
		}
		for _, owned := range v.Ranges { // operators finish with the last shard of their subtask
			for shard := owned.Lo; shard < owned.Hi; shard++ {
				needed[owned.Hi-1] = needed[owned.Hi-1] || needed[shard]
			}
		}
		return needed
	}
	for i := range p.Vertices {
		decide(p.Vertices[i].ID)
	}
	return toMake
}

// single reports whether the operators of a vertex run in one subtask because they must.
func single(p *plan.Plan, v *plan.Vertex) bool {
	return slices.ContainsFunc(v.Chain, func(c plan.Chained) bool { return p.Nodes[c.Node].Single })
}

func fill(set []bool) {
	for i := range set {
		set[i] = true
	}
}

// endsHere reports whether an operator of a vertex gives its rows to no other operator.
func endsHere(p *plan.Plan, v *plan.Vertex) bool {
	for i, c := range v.Chain {
		passes := false
		for _, after := range v.Chain {
			passes = passes || after.Parent == i
		}
		for k := range p.Edges {
			passes = passes || p.Edges[k].FromNode == c.Node && carriesRows(p, &p.Edges[k])
		}
		if !passes || p.Nodes[c.Node].Sink {
			return true
		}
	}
	return false
}

// wantedOf returns the destination shards of an edge whose rows the receivers read. toMake has the
// shards that the receiving vertex makes.
func wantedOf(p *plan.Plan, e *plan.Edge, kept map[string][]bool, leftOut map[string]bool, toMake []bool) []bool {
	queue := p.Vertices[e.To].Queue
	if queue == "" || e.Role == plan.Side || leftOut[queue] {
		return toMake
	}
	wanted := make([]bool, p.Shards)
	for shard := range wanted {
		wanted[shard] = !kept[queue][shard]
	}
	return wanted
}

// wanted returns the destination shards of an edge whose rows the receivers read, or nil if they read
// all of them.
func (r *run) wanted(e *plan.Edge) []bool {
	if r.continued == nil || e.Role == plan.Side {
		return nil
	}
	return wantedOf(r.plan, e, r.continued.kept, r.continued.leftOut, r.continued.toMake[e.To])
}

// makes reports whether a subtask of vertex v makes a shard.
func (r *run) makes(v *plan.Vertex, shard int) bool {
	return r.continued == nil || r.continued.toMake[v.ID][shard]
}

// keptHere reports whether this process has the subtask of a shard of a queue, and its rows.
func (r *run) keptHere(queue string, shard int) bool {
	c := r.continued
	if c == nil || c.kept[queue] == nil || !c.kept[queue][shard] || c.from[queue][shard] >= 0 {
		return false
	}
	i := slices.IndexFunc(r.plan.Vertices, func(v plan.Vertex) bool { return v.Queue == queue })
	return r.hosts[sharding.Owner(r.plan.Shards, r.plan.Vertices[i].Parallelism, shard)] == r.part.Worker
}
