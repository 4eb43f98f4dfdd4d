package task

import (
	"fmt"
	"path/filepath"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared"
)

// build makes the receiving ends of all edges, then the subtasks with their
// operators and sending ends.
func (r *run) build() error {
	b := builder{run: r, inboxes: make([][]*inbox, len(r.plan.Edges)), sides: make([]*sideInput, len(r.plan.Edges))}
	b.index()
	for i := range r.plan.Edges {
		if carriesRows(r.plan, &r.plan.Edges[i]) {
			if err := b.receive(i); err != nil {
				return err
			}
		}
	}
	queues := make(map[string]bool)
	for i := range r.plan.Vertices {
		v := &r.plan.Vertices[i]
		switch {
		case v.Queue == "":
			for t := range v.Parallelism {
				if err := b.subtask(v, t); err != nil {
					return err
				}
			}
		case !queues[v.Queue]:
			queues[v.Queue] = true
			if err := b.gang(v.Queue); err != nil {
				return err
			}
		}
	}
	return nil
}

// builder makes the parts of a run.
type builder struct {
	run     *run
	in      map[plan.NodeID][]int // edges that carry rows, by receiving node, by port
	out     map[plan.NodeID][]int // by emitting node
	inboxes [][]*inbox            // by edge, then receiving subtask
	sides   []*sideInput          // by edge
}

func (b *builder) index() {
	b.in, b.out = make(map[plan.NodeID][]int), make(map[plan.NodeID][]int)
	for i := range b.run.plan.Edges {
		e := &b.run.plan.Edges[i]
		if carriesRows(b.run.plan, e) {
			b.in[e.ToNode] = append(b.in[e.ToNode], i) // edges are ordered by port
			b.out[e.FromNode] = append(b.out[e.FromNode], i)
		}
	}
}

// receive makes the receiving ends of an edge.
func (b *builder) receive(i int) error {
	r, e := b.run, &b.run.plan.Edges[i]
	to := &r.plan.Vertices[e.To]
	if e.Role == plan.Side {
		s := newSideInput(r.plan.Shards, to.Parallelism, r.budget, func(err error) {
			r.record(b.edgeError(e, 0, -1, fmt.Errorf("side input %d: %w", e.Port, err)))
		})
		b.sides[i] = s
		r.sides = append(r.sides, s)
		return r.network.Listen(transport.Address{Edge: i}, s)
	}
	aligned := e.Partitioner == plan.Forward
	ends := newEnds(shared.Range{Lo: 0, Hi: r.plan.Shards}, aligned, func(err error) { r.record(b.edgeError(e, 0, -1, err)) })
	for t, dst := range to.Ranges {
		in := newInbox(dst, ends)
		in.batchRows, in.mem, in.budget = r.env.BatchRows, r.env.Allocator, r.runs[t]
		in.fail = func(shard int, err error) { r.record(b.edgeError(e, t, shard, err)) }
		in.spill = &spillFile{
			path: filepath.Join(r.scratch.dir, fmt.Sprintf("edge%d-subtask%d.arrow", i, t)),
			mem:  r.env.Allocator, total: &r.spilled, logger: r.env.Logger,
		}
		b.inboxes[i] = append(b.inboxes[i], in)
		r.inboxes = append(r.inboxes, in)
		if err := r.network.Listen(transport.Address{Edge: i, Inbox: t}, in); err != nil {
			return err
		}
	}
	if aligned {
		return nil // a source shard sends to one inbox, which takes its end too
	}
	return r.network.Listen(transport.Address{Edge: i, Inbox: transport.Ends}, ends)
}

// edgeError is the failure of the receiving end of an edge.
func (b *builder) edgeError(e *plan.Edge, subtask, shard int, err error) *TaskError {
	n := &b.run.plan.Nodes[e.ToNode]
	return &TaskError{
		Operator: operatorName(n), Node: n.ID, Site: n.Site, Vertex: e.To,
		Subtask: subtask, Parallelism: b.run.plan.Vertices[e.To].Parallelism, Shard: shard, Err: err,
	}
}

// subtask makes one subtask of a vertex outside of queues.
func (b *builder) subtask(v *plan.Vertex, index int) error {
	t := b.newSubtask(v, index)
	for _, member := range v.Chain {
		l := b.link(t, member.Node)
		l.port = member.Port
		if err := b.instantiate(l); err != nil {
			return err
		}
		if member.Parent >= 0 {
			parent := t.links[member.Parent]
			parent.next = append(parent.next, l)
		}
		t.links = append(t.links, l)
	}
	t.ports = b.ports(t.links[0])
	b.run.subtasks = append(b.run.subtasks, t)
	b.run.bodies = append(b.run.bodies, t.drive)
	return nil
}

func (b *builder) newSubtask(v *plan.Vertex, index int) *subtask {
	t := &subtask{run: b.run, vertex: v, index: index, context: b.run.context}
	t.shard.Store(-1)
	return t
}

// instantiate makes the operator of a link.
func (b *builder) instantiate(l *link) error {
	err := guard(func() error {
		if f := b.run.bind.Sources[l.node.ID]; f != nil {
			l.source = f()
		} else {
			l.operator = b.run.bind.Operators[l.node.ID]()
		}
		if l.source == nil && l.operator == nil {
			return fmt.Errorf("the function bound to it made nothing")
		}
		return nil
	})
	if err != nil {
		return l.task.taskError(l, err)
	}
	return nil
}

// link makes a node's place in a subtask, with its outgoing and side edges.
func (b *builder) link(t *subtask, id plan.NodeID) *link {
	r, n := b.run, &b.run.plan.Nodes[id]
	l := &link{task: t, node: n, context: b.context(t, n)}
	for _, i := range b.in[id] {
		if s := b.sides[i]; s != nil {
			l.sides = append(l.sides, side{port: r.plan.Edges[i].Port, input: s})
		}
	}
	for _, i := range b.out[id] {
		to := &link{task: t, node: &r.plan.Nodes[r.plan.Edges[i].ToNode]}
		l.outs = append(l.outs, outlet{output: b.send(i), to: to})
	}
	return l
}

func (b *builder) context(t *subtask, n *plan.Node) *Context {
	r := b.run
	return &Context{
		Context: r.context, Node: *n,
		Subtask: t.index, Parallelism: t.vertex.Parallelism,
		Shards: r.plan.Shards, Range: t.vertex.Ranges[t.index], Seed: r.plan.Seed,
		BatchRows: r.env.BatchRows, Allocator: r.env.Allocator,
		Logger: r.env.Logger, Memory: r.slots[t.index], SpillDir: r.scratch.dir,
		side: make([][]arrow.Record, len(n.Inputs)), collect: r.env.Collector,
	}
}

// ports returns the data inputs of a head.
func (b *builder) ports(head *link) []port {
	var ports []port
	for _, i := range b.in[head.node.ID] {
		if b.inboxes[i] != nil {
			ports = append(ports, port{number: b.run.plan.Edges[i].Port, inbox: b.inboxes[i][head.task.index]})
		}
	}
	return ports
}

// send makes a sending end of an edge.
func (b *builder) send(i int) output {
	r, e := b.run, &b.run.plan.Edges[i]
	to := &r.plan.Vertices[e.To]
	senders := newLines(i, r.network)
	switch {
	case e.Role == plan.Side:
		return &directOutput{lines: senders, broadcast: true}
	case e.Partitioner == plan.Forward:
		return &directOutput{lines: senders, ranges: to.Ranges}
	}
	return &splitOutput{
		lines: senders, ranges: to.Ranges, shards: r.plan.Shards,
		place: placementOf(r.plan, e, r.bind), mem: r.env.Allocator, batchRows: r.env.BatchRows,
	}
}

// gang makes a queue: its state, and one subtask per rank, which stands at the
// queue's first vertex and emits from its last.
func (b *builder) gang(name string) error {
	r := b.run
	loop := r.bind.Loops[name]
	g := &gang{run: r, names: make(map[string]int)}
	for i := range r.plan.Queues {
		if r.plan.Queues[i].Name == name {
			g.queue = &r.plan.Queues[i]
		}
	}
	var first *plan.Vertex
	parts := queueParts{criterion: -1}
	for i := range r.plan.Vertices {
		v := &r.plan.Vertices[i]
		for _, member := range v.Chain {
			switch n := &r.plan.Nodes[member.Node]; {
			case n.Queue != name:
			case n.Stage == plan.QueueInit:
				parts.head, first = n.ID, v
			case n.Stage == plan.QueueClose:
				parts.tail = n.ID
			case n.Stage == plan.Criterion:
				parts.criterion = n.ID
			}
		}
	}
	if first == nil || g.queue == nil {
		return fmt.Errorf("queue %q has no beginning in the plan", name)
	}
	n := first.Parallelism
	err := guard(func() (err error) {
		if g.state, err = loop.Open(n); err == nil && g.state == nil {
			err = fmt.Errorf("its Open made nothing")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("open queue %q: %w", name, err)
	}
	r.gangs = append(r.gangs, g)
	if r.env.CheckBroadcasts {
		g.check, _ = g.state.(interface{ CheckShared(step int) error })
	}
	g.group = collective.NewLocalGroup(n)
	g.running.Store(int32(n))
	for t := range n {
		if err := b.member(g, first, parts, t); err != nil {
			return err
		}
	}
	return nil
}

// queueParts are the nodes of a queue that are no stages; criterion is -1 where
// there is none.
type queueParts struct{ head, tail, criterion plan.NodeID }

// member makes one subtask of a gang.
func (b *builder) member(g *gang, v *plan.Vertex, parts queueParts, index int) (err error) {
	t := b.newSubtask(v, index)
	m := &member{subtask: t, gang: g, comm: g.group.Rank(index)}
	m.head, m.tail = b.link(t, parts.head), b.link(t, parts.tail)
	m.between = &link{task: t, node: m.head.node, shardOf: noShard}
	m.criterion = m.between
	if parts.criterion >= 0 {
		m.criterion = &link{task: t, node: &b.run.plan.Nodes[parts.criterion], shardOf: noShard}
	}
	m.head.context.gang = g
	t.links = []*link{m.head, m.tail}
	t.ports = b.ports(m.head)
	t.after = m.leave
	err = guard(func() (err error) {
		if m.body, err = g.state.Body(index); err == nil && m.body == nil {
			err = fmt.Errorf("the queue made no body")
		}
		return err
	})
	if err != nil {
		return t.taskError(m.head, err)
	}
	m.head.shardOf, m.tail.shardOf = m.body.Shard, m.body.Shard
	g.members = append(g.members, m)
	b.run.subtasks = append(b.run.subtasks, t)
	b.run.bodies = append(b.run.bodies, m.main)
	return nil
}
