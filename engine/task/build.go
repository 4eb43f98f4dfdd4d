package task

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// listen makes, for all edges, the receiving ends that belong to this process.
func (r *run) listen() error {
	r.receivers.init(r)
	for i := range r.plan.Edges {
		if carriesRows(r.plan, &r.plan.Edges[i]) {
			if err := r.receive(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// build connects the groups of queues. It then makes the subtasks of this process, with their
// operators and sending ends.
func (r *run) build() error {
	if err := r.joinQueues(); err != nil {
		return err
	}
	b := builder{run: r}
	queues := make(map[string]bool)
	for i := range r.plan.Vertices {
		v := &r.plan.Vertices[i]
		switch {
		case v.Queue == "":
			here := r.localSubtasks(v)
			for t := here.Lo; t < here.Hi; t++ {
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

// localSubtasks returns the subtasks of a vertex that run in this process. The range is empty if the
// vertex has too few subtasks: the plan has as many slots as its widest vertex has subtasks.
func (r *run) localSubtasks(v *plan.Vertex) sharding.Range { return localSubtasks(r.subtaskRange, v) }

// localSubtasks returns the subtasks of a vertex among a range of subtask indices.
func localSubtasks(here sharding.Range, v *plan.Vertex) sharding.Range {
	hi := min(here.Hi, v.Parallelism)
	return sharding.Range{Lo: min(here.Lo, hi), Hi: hi}
}

// workersOf returns the number of workers that have subtasks of a vertex. These workers have the
// numbers 0 to n-1 for a result of n, as workers have contiguous ranges of subtask indices, in order.
func (r *run) workersOf(v *plan.Vertex) int { return r.hosts[v.Parallelism-1] + 1 }

// receiving holds the receiving ends of a run, and the edges of each node.
type receiving struct {
	in      map[plan.NodeID][]int // edges that carry rows, by receiving node; ordered by port
	out     map[plan.NodeID][]int // edges that carry rows, by emitting node
	inboxes []map[int]*inbox      // by edge, then by receiving subtask
	moved   []map[int]*inbox      // the same for rows that other processes have kept
	sides   []*sideInput          // by edge
}

func (e *receiving) init(r *run) {
	e.moved = make([]map[int]*inbox, len(r.plan.Edges))
	e.inboxes, e.sides = make([]map[int]*inbox, len(r.plan.Edges)), make([]*sideInput, len(r.plan.Edges))
	e.in, e.out = make(map[plan.NodeID][]int), make(map[plan.NodeID][]int)
	for i := range r.plan.Edges {
		edge := &r.plan.Edges[i]
		if carriesRows(r.plan, edge) {
			e.in[edge.ToNode] = append(e.in[edge.ToNode], i) // edges are ordered by port
			e.out[edge.FromNode] = append(e.out[edge.FromNode], i)
		}
	}
}

// builder makes the subtasks of a run.
type builder struct{ run *run }

// receive makes the receiving ends of edge i, if this process has subtasks that read the edge.
// For a side input this is one receiver, whose rows all readers share. For other edges there is
// an inbox for each reader. All inboxes share one receiver for the messages that end source
// shards.
func (r *run) receive(i int) error {
	e := &r.plan.Edges[i]
	to := &r.plan.Vertices[e.To]
	here, worker := r.localSubtasks(to), r.part.Worker
	if here.Empty() {
		return nil
	}
	if e.Role == plan.Side {
		name := r.plan.Nodes[e.FromNode].Title()
		s := newSideInput(name, r.plan.Shards, here.Len(), &r.sideMemory, func(err error) {
			r.record(r.edgeError(e, here.Lo, -1, fmt.Errorf("side input %d, the rows of %s: %w", e.Port, name, err)))
		})
		if r.mayHold(e) {
			s.readers.Add(1) // so that the rows are there when the run fails
		}
		r.receivers.sides[i] = s
		r.sides = append(r.sides, s)
		return r.network.Listen(transport.Address{Edge: i, Worker: worker}, s)
	}
	aligned := e.Partitioner == plan.Forward
	ends := newEnds(sharding.Range{Lo: 0, Hi: r.plan.Shards}, aligned, func(err error) { r.record(r.edgeError(e, here.Lo, -1, err)) })
	r.receivers.inboxes[i] = make(map[int]*inbox, here.Len())
	for t := here.Lo; t < here.Hi; t++ {
		r.receivers.inboxes[i][t] = r.newInbox(e, to.Ranges[t], t, ends, filepath.Join(r.scratch.dir, fmt.Sprintf("edge%d-subtask%d.arrow", i, t)))
	}
	// All inboxes share the ends, so all must exist before the first message.
	for t := here.Lo; t < here.Hi; t++ {
		if err := r.network.Listen(transport.Address{Edge: i, Inbox: t, Worker: worker}, r.receivers.inboxes[i][t]); err != nil {
			return err
		}
	}
	if aligned {
		return nil // all messages of a source shard, also the one that ends it, go to one inbox
	}
	return r.network.Listen(transport.Address{Edge: i, Inbox: transport.Ends, Worker: worker}, ends)
}

// newInbox makes an inbox of a subtask, whose rows beyond the budget go to the file at path.
func (r *run) newInbox(e *plan.Edge, dst sharding.Range, subtask int, ends *ends, path string) *inbox {
	in := newInbox(dst, ends)
	in.batchRows, in.joinBytes = r.env.BatchRows, r.transit.joinBytes
	in.mem, in.budget = r.env.Allocator, r.exchangeBudgets[subtask-r.subtaskRange.Lo]
	in.fail = func(shard int, err error) { r.record(r.edgeError(e, subtask, shard, err)) }
	in.spill = &spillFile{path: path, disk: r.env.Disk, mem: r.env.Allocator, total: &r.spilled, logger: r.env.Logger}
	r.inboxes = append(r.inboxes, in)
	return in
}

// edgeError returns err as a failure of the operator that receives an edge.
func (r *run) edgeError(e *plan.Edge, subtask, shard int, err error) *TaskError {
	n := &r.plan.Nodes[e.ToNode]
	return &TaskError{
		Operator: n.Title(), Node: n.ID, Site: n.Site, Within: n.Within, Vertex: e.To,
		Subtask: subtask, Parallelism: r.plan.Vertices[e.To].Parallelism, Shard: shard, Err: err,
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
			return fmt.Errorf("the function bound to it returned nil")
		}
		return nil
	})
	if err != nil {
		return l.task.taskError(l, err)
	}
	return nil
}

// link makes the link of a node in a subtask, with its side inputs and outgoing edges.
func (b *builder) link(t *subtask, id plan.NodeID) *link {
	r, n := b.run, &b.run.plan.Nodes[id]
	l := &link{task: t, node: n, context: b.context(t, n)}
	for _, i := range b.run.receivers.in[id] {
		if s := r.receivers.sides[i]; s != nil {
			port := r.plan.Edges[i].Port
			l.sides = append(l.sides, side{port: port, input: s})
			l.context.inputs[port] = s
		}
	}
	for _, i := range b.run.receivers.out[id] {
		to := &link{task: t, node: &r.plan.Nodes[r.plan.Edges[i].ToNode]}
		l.outs = append(l.outs, chainOutput{output: b.send(i), receiver: to})
	}
	return l
}

func (b *builder) context(t *subtask, n *plan.Node) *Context {
	r := b.run
	return &Context{
		Context: r.context, Node: *n,
		Subtask: t.index, Parallelism: t.vertex.Parallelism,
		Shards: r.plan.Shards, Range: t.vertex.Ranges[t.index], Here: r.localSubtasks(t.vertex), Seed: r.plan.Seed,
		BatchRows: r.env.BatchRows, Allocator: r.env.Allocator, RowAllocator: r.env.RowAllocator,
		Logger: r.env.Logger, Memory: r.slots[(t.index-r.subtaskRange.Lo)%len(r.slots)], SpillDir: r.scratch.dir, Disk: r.env.Disk,
		side: make([][]arrow.Record, len(n.Inputs)), inputs: make([]*sideInput, len(n.Inputs)), collect: r.env.Collector, observer: r.env.Observer, checked: r.env.CheckRows,
	}
}

// ports returns the data inputs of the head of a chain.
func (b *builder) ports(head *link) []port {
	var ports []port
	for _, i := range b.run.receivers.in[head.node.ID] {
		if b.run.receivers.inboxes[i] != nil {
			ports = append(ports, port{
				number: b.run.plan.Edges[i].Port,
				inbox:  b.run.receivers.inboxes[i][head.task.index], moved: b.run.receivers.moved[i][head.task.index],
			})
		}
	}
	return ports
}

// send makes a sending end of edge i.
func (b *builder) send(i int) output {
	r, e := b.run, &b.run.plan.Edges[i]
	to := &r.plan.Vertices[e.To]
	senders := newSenders(i, r.network, r.transit.gate)
	switch {
	case e.Role == plan.Side:
		return &directOutput{senders: senders, workers: r.workersOf(to)}
	case e.Partitioner == plan.Forward:
		return &directOutput{senders: senders, ranges: to.Ranges, hosts: r.hosts, wanted: r.wanted(e), mem: r.env.Allocator, messageBytes: r.transit.messageBytes}
	}
	return &splitOutput{
		wanted:  r.wanted(e),
		senders: senders, ranges: to.Ranges, hosts: r.hosts, sent: make([]sent, r.workersOf(to)), shards: r.plan.Shards,
		place: placementOf(r.plan, e, r.bind, r.env.CheckRows), mem: r.env.Allocator,
		batchRows: r.env.BatchRows, messageBytes: r.transit.messageBytes, keepBytes: r.transit.keepBytes,
	}
}

// joinQueues makes a gang for each queue that has ranks in this process, and connects the ranks
// of the queue. All workers do this in the order of the plan's queues.
func (r *run) joinQueues() error {
	for i := range r.plan.Queues {
		q := &r.plan.Queues[i]
		at := slices.IndexFunc(r.plan.Vertices, func(v plan.Vertex) bool { return v.Queue == q.Name })
		if at < 0 {
			return fmt.Errorf("queue %q has no vertex in the plan", q.Name)
		}
		v := &r.plan.Vertices[at]
		here := r.localSubtasks(v)
		if here.Empty() {
			continue
		}
		from, err := r.env.from(q)
		if err != nil {
			return err
		}
		if r.continued != nil && r.continued.leftOut[q.Name] {
			r.passQueue(q, from)
			continue
		}
		g := &gang{run: r, queue: q, here: here, multiProcess: r.workersOf(v) > 1, resumed: from}
		g.begin()
		r.gangs = append(r.gangs, g)
		if !g.multiProcess {
			g.group = localGroup{collective.NewLocalGroup(v.Parallelism)}
			continue
		}
		ranks := make([][]int, r.workersOf(v))
		for t, worker := range r.hosts[:v.Parallelism] {
			ranks[worker] = append(ranks[worker], t)
		}
		if g.group, err = r.part.Join(r.context, q.Name, ranks); err != nil {
			return &groupError{queue: q.Name, workers: len(ranks), err: err}
		}
	}
	return nil
}

// localGroup is the group of a queue whose ranks are all in this process.
type localGroup struct{ *collective.LocalGroup }

// Close does nothing, as the group has no goroutines.
func (localGroup) Close() error { return nil }

// gang makes one subtask for each rank that a queue has in this process. The subtask belongs to
// the queue's first vertex and emits the rows of its last vertex.
func (b *builder) gang(name string) error {
	r := b.run
	at := slices.IndexFunc(r.gangs, func(g *gang) bool { return g.queue.Name == name })
	if at < 0 {
		return nil // all subtasks of the queue are in other processes
	}
	g := r.gangs[at]
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
	if first == nil {
		return fmt.Errorf("queue %q has no beginning in the plan", name)
	}
	if err := b.open(g, first, parts); err != nil {
		return err
	}
	for _, m := range g.members {
		r.subtasks = append(r.subtasks, m.subtask)
		r.bodies = append(r.bodies, m.main)
	}
	return nil
}

// open makes the members of a gang. v is the queue's first vertex at the gang's parallelism.
func (b *builder) open(g *gang, v *plan.Vertex, parts queueParts) error {
	r, name := b.run, g.queue.Name
	g.vertex, g.parts = v, parts
	spec := GangSpec{Job: r.plan.Job, Queue: name, Sessions: r.env.Sessions, Subtasks: v.Parallelism, Here: g.here, From: g.resumed, RowsKept: g.generation > 0, Retain: r.env.Retained.keeper(name), Lend: r.env.Retained.lender(name)}
	if g.generation == 0 && r.continued != nil {
		spec.Kept = r.env.Retained.giver(name, func(shard int) bool { return r.keptHere(name, shard) })
	}
	spec.Files, spec.Settled = r.env.Retained.settler(name)
	r.env.Retained.forgetReport(name)
	g.keptRows = r.countKept(g)
	var loops []Loop
	err := guard(func() (err error) {
		loops, err = r.bind.Loops[name](spec)
		return err
	})
	if spec.Kept != nil { // rows that the loops have not taken are not needed
		r.env.Retained.releaseRows(func(queue string, shard int) bool { return queue != name || !r.keptHere(name, shard) })
	}
	if err != nil {
		return fmt.Errorf("open queue %q: %w", name, err)
	}
	if len(loops) != g.here.Len() {
		err := fmt.Errorf("open queue %q: %d loops for the %d subtasks here", name, len(loops), g.here.Len())
		for _, body := range loops {
			err = errors.Join(err, guard(body.Close))
		}
		return err
	}
	for i, body := range loops {
		b.member(g, g.here.Lo+i, body)
	}
	return nil
}

// countKept returns how many rows of an earlier run each member of a gang in this process begins with.
func (r *run) countKept(g *gang) []int64 {
	rows := make([]int64, g.here.Len())
	for i := range rows {
		owned := g.vertex.Ranges[g.here.Lo+i]
		rows[i] = r.env.Retained.counted(g.queue.Name, func(shard int) bool { return owned.Contains(shard) && r.keptHere(g.queue.Name, shard) })
	}
	return rows
}

// queueParts are the nodes of a queue that do not belong to a Stage of its Loops: queue-init,
// queue-close, and the criterion, which is -1 if there is none.
type queueParts struct{ head, tail, criterion plan.NodeID }

// member makes one subtask of a gang.
func (b *builder) member(g *gang, index int, body Loop) {
	t, parts := b.newSubtask(g.vertex, index), g.parts
	t.generation = g.generation
	m := &member{subtask: t, gang: g, body: body, comm: g.group.Rank(index)}
	m.head, m.tail = b.link(t, parts.head), b.link(t, parts.tail)
	m.betweenStages = &link{task: t, node: m.head.node, shardOf: noShard}
	m.criterion = m.betweenStages
	if parts.criterion >= 0 {
		m.criterion = &link{task: t, node: &b.run.plan.Nodes[parts.criterion], shardOf: noShard}
	}
	m.head.context.gang, m.head.context.Here, m.tail.context.Here = g, g.here, g.here
	t.links = []*link{m.head, m.tail}
	if g.generation == 0 { // the first gang of a process reads all of the inputs
		t.ports = b.ports(m.head)
		m.rowsIn = g.keptRows[index-g.here.Lo]
	}
	t.atEnd = m.leave
	m.head.shardOf, m.tail.shardOf = m.body.Shard, m.body.Shard
	g.members = append(g.members, m)
}
