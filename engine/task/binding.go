package task

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/superstep-ml/superstep/engine/plan"
)

// Bindings connects the nodes of a plan to code. A node outside of queues has either
// a Source or an Operator. The nodes of a queue have neither: the queue's Loops run them.
type Bindings struct {
	Sources   map[plan.NodeID]func() Source
	Operators map[plan.NodeID]func() Operator
	// Partitions holds, by receiving node and port, the functions that compute the destination
	// shards of rows on custom and range edges. A hash edge may have an entry; without one it
	// uses the documented hash.
	Partitions map[Port]Partition
	// Sinks holds the Sink of each node that commits results. Nodes of sinks that only show rows
	// have no entry.
	Sinks map[plan.NodeID]Sink
	// Loops holds the function that makes the Loops of each queue, by the queue's name.
	Loops map[string]OpenLoops
	// RowByRow is true for an operator if the i-th row that it emits in a shard comes from the
	// i-th row of its input. A failure of a later operator can then name the row that was read.
	RowByRow map[plan.NodeID]bool
}

// Port identifies an input of a node.
type Port struct {
	Node plan.NodeID
	Port int
}

// checkBindings checks that everything in a plan that needs a binding has one, and that there
// are no other bindings. It returns all mistakes, and calls none of the bound functions.
func checkBindings(p *plan.Plan, b *Bindings) error {
	c := bindingChecker{p: p, b: b, ports: make(map[Port]*plan.Edge), loops: make(map[string]*plan.Queue)}
	for i := range p.Edges {
		e := &p.Edges[i]
		c.ports[Port{Node: e.ToNode, Port: e.Port}] = e
	}
	for i := range p.Queues {
		c.loops[p.Queues[i].Name] = &p.Queues[i]
	}
	for _, v := range p.Vertices {
		for k, member := range v.Chain {
			c.node(&p.Nodes[member.Node], k == 0)
		}
	}
	for i := range p.Edges {
		c.edge(&p.Edges[i])
	}
	for i := range p.Queues {
		c.queue(&p.Queues[i])
	}
	c.extra()
	if err := errors.Join(c.errs...); err != nil {
		return fmt.Errorf("the bindings do not fit the plan of job %q: %w", p.Job, err)
	}
	return nil
}

type bindingChecker struct {
	p     *plan.Plan
	b     *Bindings
	ports map[Port]*plan.Edge
	loops map[string]*plan.Queue
	errs  []error
}

func (c *bindingChecker) add(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// describe returns the text by which messages refer to a node.
func describe(n *plan.Node) string {
	if n.Site == "" {
		return fmt.Sprintf("node %d, operator %s", n.ID, n.Title())
	}
	return fmt.Sprintf("node %d, operator %s (%s)", n.ID, n.Title(), n.Site)
}

func (c *bindingChecker) node(n *plan.Node, head bool) {
	source, operator := c.b.Sources[n.ID] != nil, c.b.Operators[n.ID] != nil
	switch {
	case n.Queue != "":
		if source || operator {
			c.add("%s: it is a stage of queue %q, whose loop is bound instead of a source or operator", describe(n), n.Queue)
		}
	case source == operator:
		c.add("%s: want exactly one of a source and an operator, have %s", describe(n), map[bool]string{true: "both", false: "neither"}[source])
	case source && !head:
		c.add("%s: a source is bound to an operator that has an input", describe(n))
	}
	if c.b.Sinks[n.ID] != nil && !n.Sink {
		c.add("%s: a sink is bound, and the node is not a sink", describe(n))
	}
}

func (c *bindingChecker) edge(e *plan.Edge) {
	to := &c.p.Nodes[e.ToNode]
	if !carriesRows(c.p, e) {
		return
	}
	bound := c.b.Partitions[Port{Node: e.ToNode, Port: e.Port}] != nil
	switch {
	case e.Role == plan.Side:
	case e.Partitioner == plan.Broadcast:
		c.add("%s: input %d is broadcast, which only side inputs can be", describe(to), e.Port)
	case (e.Partitioner == plan.Custom || e.Partitioner == plan.Range) && !bound:
		c.add("%s: input %d is partitioned by %v, and no partition function is bound", describe(to), e.Port, e.Partitioner)
	}
	if bound && (e.Role == plan.Side || e.Partitioner != plan.Custom && e.Partitioner != plan.Range && e.Partitioner != plan.Hash) {
		c.add("%s: a partition function is bound to input %d, which does not use one", describe(to), e.Port)
	}
	if e.Role == plan.Data && c.p.Vertices[e.To].Chain[0].Node != e.ToNode {
		c.add("%s: the plan gives it both the rows of an edge and those of the operator it is chained to", describe(to))
	}
	if e.Role == plan.Data && c.b.Sources[e.ToNode] != nil {
		c.add("%s: a source is bound to an operator that has an input", describe(to))
	}
	if from := &c.p.Nodes[e.FromNode]; from.Queue != "" && from.Stage != plan.QueueClose {
		c.add("%s: its input %d comes from a stage of queue %q that emits no rows", describe(to), e.Port, from.Queue)
	}
}

func (c *bindingChecker) queue(q *plan.Queue) {
	switch {
	case c.b.Loops[q.Name] == nil:
		c.add("queue %q: no loop is bound", q.Name)
	case q.MaxSupersteps <= 0 && !q.HasCriterion:
		c.add("queue %q: it has neither a maximum nor a criterion, and would not end", q.Name)
	}
}

// extra reports bindings of nodes, inputs and queues that do not exist. Nodes that are not
// needed may have bindings, although they do not run.
func (c *bindingChecker) extra() {
	needed := plan.Needed(c.p.Nodes)
	inPlan := func(id plan.NodeID) bool { return id >= 0 && int(id) < len(needed) }
	missing := func(kind string, ids []plan.NodeID) {
		for _, id := range ids {
			if !inPlan(id) {
				c.add("%s is bound to node %d, which is not in the plan", kind, id)
			}
		}
	}
	missing("a source", slices.Sorted(maps.Keys(c.b.Sources)))
	missing("an operator", slices.Sorted(maps.Keys(c.b.Operators)))
	missing("a sink", slices.Sorted(maps.Keys(c.b.Sinks)))
	ports := slices.SortedFunc(maps.Keys(c.b.Partitions), func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
	})
	for _, port := range ports {
		if c.ports[port] == nil && (!inPlan(port.Node) || needed[port.Node]) {
			c.add("a partition function is bound to input %d of node %d, which is no exchange of the plan", port.Port, port.Node)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.b.Loops)) {
		if c.loops[name] == nil {
			c.add("a loop is bound to queue %q, which is not in the plan", name)
		}
	}
}

// carriesRows reports whether an edge is an exchange of rows. All other edges are within a
// queue: they order its stages or carry its collectives.
func carriesRows(p *plan.Plan, e *plan.Edge) bool {
	if e.Role != plan.Data && e.Role != plan.Side || e.Partitioner == plan.BySubtask {
		return false
	}
	q := p.Nodes[e.ToNode].Queue
	return q == "" || p.Nodes[e.FromNode].Queue != q
}
