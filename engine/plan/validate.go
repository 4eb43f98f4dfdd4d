package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Validate returns all mistakes in the graph together, as Misuse values joined by errors.Join,
// or nil. After maxMisuses mistakes it only counts further mistakes. As graphs come from user
// code and from the network, Validate assumes nothing about them, and takes time linear in the
// size of the graph.
//
// A graph is valid if:
//
//   - the number of shards is a power of two; facts, queues, columns of a schema
//     and results of Collect have distinct names; all text is UTF-8;
//   - a node's id is its position, and its inputs come from earlier nodes, except for
//     the feedback edges of a queue;
//   - hash and range edges have keys that exist in the sender's schema and can be
//     compared, other edges have no keys; side edges are broadcast and broadcast edges
//     are side or feedback edges; control, feedback and by-subtask edges stay
//     within a queue;
//   - sinks have an input and no consumer;
//   - the nodes of each queue form a line as described at checkQueue.
func (g *Graph) Validate() error {
	if g == nil {
		return errors.New("plan: no graph")
	}
	c := checker{g: g, columns: make([]map[string]string, len(g.Nodes))}
	c.job()
	c.queueNames()
	for i := range g.Nodes {
		c.node(i)
		for port := range g.Nodes[i].Inputs {
			c.input(i, port)
		}
	}
	c.collects()
	c.queues()
	return c.err()
}

// checker is the state of one call of Validate.
type checker struct {
	g *Graph
	misuses
	// columns[i] maps the columns of node i to their types. It is made when it is first
	// needed. With it, checking many edges from a node with many columns takes linear
	// time.
	columns []map[string]string
	// stages maps the name of each queue to its nodes, in order.
	stages map[string][]int
}

// misuse records a mistake at node i.
func (c *checker) misuse(i int, format string, args ...any) {
	n := &c.g.Nodes[i]
	site := n.Site
	if site == "" {
		site = "node " + strconv.Itoa(i)
	}
	c.add(i, plain(clip(site, 200)), plain(label(n)), format, args...)
}

// ref returns the name of node i for a message about another node.
func (c *checker) ref(i int) string {
	n := &c.g.Nodes[i]
	if n.Site != "" {
		return fmt.Sprintf("%s (%s)", label(n), plain(clip(n.Site, 200)))
	}
	return fmt.Sprintf("%s (node %d)", label(n), i)
}

// job checks the shards, the job's name, the facts, and that there are nodes.
func (c *checker) job() {
	g := c.g
	if sharding.ValidShards(g.Shards) != nil {
		c.add(-1, "", "", "%d shards: want a power of two between 1 and %d; set it with --shards", g.Shards, sharding.MaxShards)
	}
	if len(g.Nodes) == 0 {
		c.add(-1, "", "", "the job has no operators; end it in a sink such as Collect or WriteCSV")
	}
	if !utf8.ValidString(g.Job) {
		c.add(-1, "", "", "job name %+q is not UTF-8", clip(g.Job, 60))
	}
	seen := make(map[string]bool, len(g.Facts))
	for i, f := range g.Facts {
		switch {
		case f.Name == "":
			c.add(-1, "", "", "fact %d has no name", i)
		case seen[f.Name]:
			c.add(-1, "", "", "fact %q is recorded twice", clip(f.Name, 60))
		case !utf8.ValidString(f.Name) || !utf8.ValidString(f.Value):
			c.add(-1, "", "", "fact %+q is not UTF-8; quote what it holds", clip(f.Name, 60))
		}
		seen[f.Name] = true
	}
}

// node checks everything about a node except its inputs.
func (c *checker) node(i int) {
	n := &c.g.Nodes[i]
	if int(n.ID) != i {
		c.misuse(i, "has id %d at position %d of the graph", n.ID, i)
	}
	if n.Op == "" {
		c.misuse(i, "the node does not say what kind of operator it is")
	}
	if !n.Stage.Valid() {
		c.misuse(i, "unknown kind of stage %d", int(n.Stage))
	}
	if !n.Order.Valid() {
		c.misuse(i, "unknown kind of reduction %d", int(n.Order))
	}
	if !validText(n) {
		c.misuse(i, "a name or parameter is not UTF-8; quote it")
	}
	for _, a := range n.Attrs {
		if a.Key == "" {
			c.misuse(i, "a parameter with value %q has no name", clip(a.Value, 60))
		}
	}
	c.schema(i)
	if n.Sink {
		if !slices.ContainsFunc(n.Inputs, func(in Input) bool { return in.Role == Data }) {
			c.misuse(i, "the sink has no input")
		}
		if n.Queue != "" {
			c.misuse(i, "a sink cannot be a stage of queue %q; write what the queue returns", clip(n.Queue, 60))
		}
	}
}

func (c *checker) schema(i int) {
	n := &c.g.Nodes[i]
	seen := make(map[string]bool, len(n.Schema))
	for k, col := range n.Schema {
		switch {
		case col.Name == "":
			c.misuse(i, "column %d has no name", k)
		case seen[col.Name]:
			c.misuse(i, "column %q occurs twice; rename one", clip(col.Name, 60))
		case col.Type == "":
			c.misuse(i, "column %q has no type", clip(col.Name, 60))
		}
		seen[col.Name] = true
	}
}

// validText reports whether every string of n is UTF-8. If it is not, the node cannot
// be written to JSON and read back without a change.
func validText(n *Node) bool {
	ok := utf8.ValidString(n.Op) && utf8.ValidString(n.Name) && utf8.ValidString(n.Func) &&
		utf8.ValidString(n.Site) && utf8.ValidString(n.Within) && utf8.ValidString(n.Queue)
	for _, a := range n.Attrs {
		ok = ok && utf8.ValidString(a.Key) && utf8.ValidString(a.Value)
	}
	for _, col := range n.Schema {
		ok = ok && utf8.ValidString(col.Name) && utf8.ValidString(col.Type)
	}
	for _, in := range n.Inputs {
		ok = ok && utf8.ValidString(in.Func)
		for _, key := range in.Keys {
			ok = ok && utf8.ValidString(key)
		}
	}
	return ok
}

// input checks one incoming edge of node i.
func (c *checker) input(i, port int) {
	n := &c.g.Nodes[i]
	in := &n.Inputs[port]
	if !in.Partitioner.Valid() {
		c.misuse(i, "input %d has unknown partitioner %d", port, int(in.Partitioner))
		return
	}
	if !in.Role.Valid() {
		c.misuse(i, "input %d has unknown role %d", port, int(in.Role))
		return
	}
	if in.From < 0 || int(in.From) >= len(c.g.Nodes) {
		c.misuse(i, "input %d comes from node %d, which does not exist", port, in.From)
		return
	}
	if in.Role != Feedback && int(in.From) >= i {
		c.later(i, port)
		return
	}
	from := &c.g.Nodes[in.From]
	if from.Sink {
		c.misuse(i, "input %d comes from %s, a sink, which emits no rows", port, c.ref(int(in.From)))
	}
	c.port(i, port)
	c.keys(i, port)
}

// port checks that the partitioner and the role of an edge are compatible with each other
// and with the queues of the nodes that it connects.
func (c *checker) port(i, port int) {
	n := &c.g.Nodes[i]
	in := &n.Inputs[port]
	from := &c.g.Nodes[in.From]
	within := n.Queue != "" && n.Queue == from.Queue
	switch in.Role {
	case Data:
		if in.Partitioner == Broadcast {
			c.misuse(i, "input %d is broadcast data: every subtask would process all rows; make it a side input", port)
		}
	case Side:
		if in.Partitioner != Broadcast {
			c.misuse(i, "side input %d is partitioned by %s; a side input is broadcast", port, in.Partitioner)
		}
	case Control, Feedback:
		if !within {
			c.misuse(i, "input %d is a %s edge from %s, which is not in the same queue", port, in.Role, c.ref(int(in.From)))
			return
		}
	}
	if within {
		return // checkQueue checks the edges within a queue
	}
	if in.Partitioner == BySubtask {
		c.misuse(i, "input %d is partitioned by-subtask, which only stages of one queue can be", port)
	}
	if from.Queue != "" && from.Stage != QueueClose {
		c.misuse(i, "input %d reads %s, a stage of queue %q; only what its %s stage emits leaves a queue",
			port, c.ref(int(in.From)), clip(from.Queue, 60), QueueClose)
	}
	if n.Queue != "" && n.Stage != QueueInit {
		c.misuse(i, "input %d comes from outside queue %q; a queue takes its inputs at its %s stage",
			port, clip(n.Queue, 60), QueueInit)
	}
}

// keys checks the key columns of an edge against the sender's schema.
func (c *checker) keys(i, port int) {
	in := &c.g.Nodes[i].Inputs[port]
	if in.Partitioner != Hash && in.Partitioner != Range {
		if len(in.Keys) > 0 {
			c.misuse(i, "input %d has key columns, which partitioner %s does not use", port, in.Partitioner)
		}
		return
	}
	if len(in.Keys) == 0 {
		c.misuse(i, "input %d is partitioned by %s without a key column", port, in.Partitioner)
		return
	}
	types := c.typesOf(int(in.From))
	seen := make(map[string]bool, len(in.Keys))
	for _, key := range in.Keys {
		kind, ok := types[key]
		switch {
		case seen[key]:
			c.misuse(i, "key column %q is named twice", clip(key, 60))
		case !ok && !c.full():
			c.misuse(i, "key column %q does not exist in the rows of %s%s", clip(key, 60), c.ref(int(in.From)),
				didYouMean(key, columnNames(c.g.Nodes[in.From].Schema)))
		case !ok:
			c.dropped++
		case !Keyable(kind):
			c.misuse(i, "key column %q is of type %s, which has no %s partition; use a column of numbers, text, bytes or times",
				clip(key, 60), plain(clip(kind, 60)), in.Partitioner)
		}
		seen[key] = true
	}
}

func (c *checker) typesOf(i int) map[string]string {
	if c.columns[i] == nil {
		m := make(map[string]string, len(c.g.Nodes[i].Schema))
		for _, col := range c.g.Nodes[i].Schema {
			m[col.Name] = col.Type
		}
		c.columns[i] = m
	}
	return c.columns[i]
}

func columnNames(schema []Column) []string {
	names := make([]string, len(schema))
	for i, col := range schema {
		names[i] = col.Name
	}
	return names
}

// Keyable reports whether columns of a type, given as in Column.Type, can be
// keys of hash and range edges: all but vectors, nested types and null.
func Keyable(kind string) bool {
	base, _, _ := strings.Cut(strings.ToLower(kind), "[")
	base, _, _ = strings.Cut(base, "<")
	base, _, _ = strings.Cut(base, "(")
	if strings.Contains(base, "vector") || strings.Contains(base, "sparse") ||
		strings.Contains(base, "list") || strings.Contains(base, "union") {
		return false
	}
	switch strings.TrimSpace(base) {
	case "", "null", "struct", "map", "extension", "run_end_encoded":
		return false
	}
	return true
}

// later reports an input from the node itself or a later node. If the input
// closes a cycle, later reports the cycle.
func (c *checker) later(i, port int) {
	if c.full() {
		c.dropped++
		return
	}
	from := int(c.g.Nodes[i].Inputs[port].From)
	path := c.pathBetween(i, from)
	if path == nil {
		c.misuse(i, "input %d comes from the later %s; inputs come from earlier nodes", port, c.ref(from))
		return
	}
	const shown = 8
	var b strings.Builder
	for k, node := range append(path, i) {
		if k >= shown && k < len(path) {
			if k == shown {
				fmt.Fprintf(&b, " → … %d more", len(path)-shown)
			}
			continue
		}
		if k > 0 {
			b.WriteString(" → ")
		}
		b.WriteString(c.ref(node))
	}
	c.misuse(i, "input %d closes a cycle: %s", port, b.String())
}

// pathBetween returns the nodes on a path from first to last, both included, or nil if
// there is no path. The path has no feedback edges. The search is breadth first and goes
// from last against the direction of the edges.
func (c *checker) pathBetween(first, last int) []int {
	next := map[int]int{last: -1}
	for queue := []int{last}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == first {
			var path []int
			for ; at >= 0; at = next[at] {
				path = append(path, at)
			}
			return path
		}
		for _, in := range c.g.Nodes[at].Inputs {
			from := int(in.From)
			if _, seen := next[from]; seen || in.Role == Feedback || from < 0 || from >= len(c.g.Nodes) {
				continue
			}
			next[from] = at
			queue = append(queue, from)
		}
	}
	return nil
}

// collects checks that no two results have the same name.
func (c *checker) collects() {
	seen := make(map[string]int)
	for i := range c.g.Nodes {
		n := &c.g.Nodes[i]
		if !n.Sink || n.Op != "Collect" {
			continue
		}
		name := resultName(n)
		if first, ok := seen[name]; ok {
			c.misuse(i, "result %q is already collected at %s; give one another name", clip(name, 60), c.ref(first))
			continue
		}
		seen[name] = i
	}
}

// resultName returns the name of the result of a Collect: the node's label or, if it has
// no label, its "name" parameter.
func resultName(n *Node) string {
	if n.Name == "" {
		for _, a := range n.Attrs {
			if a.Key == "name" {
				return a.Value
			}
		}
	}
	return n.Name
}
