package plan

import (
	"slices"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/internal/humanize"
)

// queueNames checks the declarations of queues and lists the nodes of each queue.
func (c *checker) queueNames() {
	c.stages = make(map[string][]int, len(c.g.Queues))
	for i := range c.g.Queues {
		q := &c.g.Queues[i]
		name := clip(q.Name, 60)
		if _, twice := c.stages[q.Name]; twice {
			c.add(-1, "", "", "queue %q is declared twice; give one another name", name)
			continue
		}
		c.stages[q.Name] = nil
		switch {
		case q.Name == "":
			c.add(-1, "", "", "queue %d has no name", i)
		case !utf8.ValidString(q.Name):
			c.add(-1, "", "", "queue name %+q is not UTF-8", name)
		case q.MaxSupersteps < 0:
			c.add(-1, "", "", "queue %q has a maximum of %d supersteps; want at least 1", name, q.MaxSupersteps)
		}
	}
	for i := range c.g.Nodes {
		n := &c.g.Nodes[i]
		if (n.Queue == "") != (n.Stage == NoStage) {
			c.misuse(i, "stage %s of queue %q: a node is both or neither a stage and of a queue", n.Stage, clip(n.Queue, 60))
		}
		if n.Queue == "" {
			continue
		}
		if _, declared := c.stages[n.Queue]; !declared {
			c.misuse(i, "queue %q is not declared", clip(n.Queue, 60))
			continue
		}
		c.stages[n.Queue] = append(c.stages[n.Queue], i)
	}
}

func (c *checker) queues() {
	done := make(map[string]bool, len(c.g.Queues))
	for i := range c.g.Queues {
		q := &c.g.Queues[i]
		if done[q.Name] || q.Name == "" {
			continue
		}
		done[q.Name] = true
		c.checkQueue(q, c.stages[q.Name])
	}
}

// checkQueue checks queue q, whose nodes are given in order. They must form one line:
//
//	queue-init, stages, [criterion], queue-close
//
// The stages in between are compute; communicate; send, sum and recv in a row; or an inner
// loop, which is stages between repeat-begin and repeat-end. Apart from feedback, each node but
// the first has one input, which comes from the node before it. This input is a by-subtask edge
// for communicate, sum and recv, and a forward edge for the other stages. A feedback edge leads
// from each repeat-end to its repeat-begin. Another feedback edge leads from the last node
// before queue-close to the first node after queue-init; a queue without a criterion may lack
// it. All nodes are Single, or none is.
func (c *checker) checkQueue(q *Queue, nodes []int) {
	if len(nodes) == 0 {
		c.add(-1, "", "", "queue %q has no stages", clip(q.Name, 60))
		return
	}
	if q.MaxSupersteps == 0 && !q.HasCriterion {
		c.misuse(nodes[0], "queue %q would never end: it has neither a maximum number of supersteps nor a criterion; set at least one", clip(q.Name, 60))
	}
	if !c.order(q, nodes) {
		return // the checks below rely on the order
	}
	first, end := nodes[1], nodes[len(nodes)-2]
	begins := make(map[int]int) // repeat-begin -> its repeat-end
	var open []int
	for k, i := range nodes {
		switch c.g.Nodes[i].Stage {
		case RepeatBegin:
			open = append(open, i)
		case RepeatEnd:
			begins[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
		if c.g.Nodes[i].Single != c.g.Nodes[nodes[0]].Single {
			c.misuse(i, "the stages of queue %q differ in whether a single subtask runs them", clip(q.Name, 60))
		}
		if k > 0 {
			c.link(i, nodes[k-1])
		} else {
			c.initInputs(i)
		}
	}
	for _, i := range nodes[1:] {
		repeatEnd, isRepeat := begins[i]
		outer, inner := 0, 0
		for port, in := range c.g.Nodes[i].Inputs {
			switch {
			case in.Role != Feedback || !in.Partitioner.Valid():
			case in.Partitioner != Forward && in.Partitioner != BySubtask && in.Partitioner != Broadcast:
				c.misuse(i, "feedback input %d is partitioned by %s, but carries no rows", port, in.Partitioner)
			case isRepeat && int(in.From) == repeatEnd:
				inner++
			case i == first && int(in.From) == end && len(nodes) > 2:
				outer++
			default:
				c.misuse(i, "feedback input %d does not lead from the end of queue %q, or of its inner loop, to its beginning", port, clip(q.Name, 60))
			}
		}
		if isRepeat && inner == 0 {
			c.misuse(i, "the inner loop has no feedback edge from its %s", RepeatEnd)
		}
		// The criterion comes after all inner loops, so it is not the repeat-end of an inner
		// loop.
		if i == first && outer == 0 && q.HasCriterion {
			c.misuse(i, "the criterion of queue %q has no feedback edge to its first stage", clip(q.Name, 60))
		}
	}
}

// order checks the sequence of stages and reports whether it is valid.
func (c *checker) order(q *Queue, nodes []int) bool {
	before := len(c.found) + c.dropped
	name := clip(q.Name, 60)
	kind := func(k int) StageKind {
		if k < 0 || k >= len(nodes) {
			return NoStage
		}
		return c.g.Nodes[nodes[k]].Stage
	}
	depth, criteria := 0, 0
	for k, i := range nodes {
		prev, this := kind(k-1), kind(k)
		switch {
		case (this == QueueInit) != (k == 0):
			c.misuse(i, "queue %q must begin with its one %s stage", name, QueueInit)
		case (this == QueueClose) != (k == len(nodes)-1):
			c.misuse(i, "queue %q must end with its one %s stage", name, QueueClose)
		case (prev == Send) != (this == Sum), (prev == Sum) != (this == Recv):
			c.misuse(i, "in queue %q, stage %s follows %s; a reduction is %s, %s and %s in a row", name, this, prev, Send, Sum, Recv)
		case prev == Criterion && this != QueueClose:
			c.misuse(i, "in queue %q, stage %s follows the criterion, which comes last", name, this)
		}
		switch this {
		case RepeatBegin:
			depth++
		case RepeatEnd:
			depth--
			if depth < 0 {
				c.misuse(i, "in queue %q, a %s has no %s", name, RepeatEnd, RepeatBegin)
				depth = 0
			}
		case Criterion:
			criteria++
			if depth > 0 {
				c.misuse(i, "in queue %q, the criterion is inside an inner loop", name)
			}
		}
	}
	last := nodes[len(nodes)-1]
	if depth > 0 {
		c.misuse(last, "in queue %q, %s not closed by a %s", name, humanize.Count(depth, "inner loop"), RepeatEnd)
	}
	if q.HasCriterion != (criteria == 1) || criteria > 1 {
		c.misuse(last, "queue %q has %s, but is declared with criterion=%t", name, humanize.Count(criteria, "criterion stage"), q.HasCriterion)
	}
	return len(c.found)+c.dropped == before
}

// link checks that node i has one input apart from feedback, and that this input comes from the
// previous stage. before is the node of that stage.
func (c *checker) link(i, before int) {
	n := &c.g.Nodes[i]
	want := Forward
	if n.Stage.Exchanges() {
		want = BySubtask
	}
	links := 0
	for port, in := range n.Inputs {
		if in.Role == Feedback {
			continue
		}
		links++
		if int(in.From) != before || in.Partitioner != want || in.Role == Side {
			c.misuse(i, "input %d must be the %s edge from the stage before, %s", port, want, c.ref(before))
		}
	}
	if links != 1 {
		c.misuse(i, "has %d inputs; a stage has one, from the stage before, %s", links, c.ref(before))
	}
}

// initInputs checks that node i, the first of a queue, has no inputs other than data and
// side inputs.
func (c *checker) initInputs(i int) {
	n := &c.g.Nodes[i]
	if slices.ContainsFunc(n.Inputs, func(in Input) bool {
		return in.Role != Data && in.Role != Side || in.Partitioner == BySubtask
	}) {
		c.misuse(i, "%s takes data and side inputs only", QueueInit)
	}
}
