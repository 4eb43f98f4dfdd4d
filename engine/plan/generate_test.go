package plan

import (
	"fmt"

	"pgregory.net/rapid"
)

// randomGraph draws a valid graph. It has sources, chains, branches, every partitioner, nodes
// with several data and side inputs, single nodes, sinks, and queues with reductions and inner
// loops.
func randomGraph(t *rapid.T) *Graph {
	d := drawer{t: t, g: &Graph{
		Job:    rapid.SampledFrom([]string{"", "job", "a \"b\"\n→"}).Draw(t, "job"),
		Shards: 1 << rapid.IntRange(0, 7).Draw(t, "log2 shards"),
		Seed:   rapid.Uint64().Draw(t, "seed"),
	}}
	for i := range rapid.IntRange(0, 2).Draw(t, "facts") {
		d.g.Facts = append(d.g.Facts, Fact{fmt.Sprint("fact", i), rapid.String().Draw(t, "fact")})
	}
	d.add(Node{Op: "Range"})
	for range rapid.IntRange(0, 25).Draw(t, "steps") {
		d.step()
	}
	return d.g
}

// drawer adds random nodes to a graph.
type drawer struct {
	t    *rapid.T
	g    *Graph
	open []NodeID // nodes whose rows may be read
}

var drawnSchema = []Column{{"k", "int64", false}, {"x", "float64", true}, {"v", "vector[3]", false}}

// add appends a node with the schema drawnSchema. Later nodes may read its rows.
func (d *drawer) add(n Node) NodeID {
	n.Schema = drawnSchema
	id := d.plain(n)
	d.open = append(d.open, id)
	return id
}

// plain appends a node without a change of its schema. Later nodes do not read its rows.
func (d *drawer) plain(n Node) NodeID {
	n.ID = NodeID(len(d.g.Nodes))
	n.Site = fmt.Sprintf("job.go:%d", n.ID)
	d.g.Nodes = append(d.g.Nodes, n)
	return n.ID
}

func (d *drawer) data() Input {
	in := Input{
		From:        rapid.SampledFrom(d.open).Draw(d.t, "from"),
		Partitioner: rapid.SampledFrom([]Partitioner{Forward, Forward, Forward, Rebalance, Hash, Range, Custom}).Draw(d.t, "partitioner"),
	}
	switch in.Partitioner {
	case Hash:
		in.Keys = []string{"k"}
	case Range:
		in.Keys = []string{"x", "k"}
	case Custom:
		in.Func = "main.place main.go:7"
	}
	return in
}

func (d *drawer) side() Input {
	return Input{From: rapid.SampledFrom(d.open).Draw(d.t, "side"), Partitioner: Broadcast, Role: Side}
}

// inputs draws between least and most data inputs and up to two side inputs, in mixed order.
func (d *drawer) inputs(least, most int) []Input {
	var ins []Input
	for range rapid.IntRange(least, most).Draw(d.t, "data inputs") {
		ins = append(ins, d.data())
	}
	for range max(0, rapid.IntRange(-3, 2).Draw(d.t, "side inputs")) {
		ins = append(ins, d.side())
	}
	if len(ins) < 2 {
		return ins
	}
	return rapid.Permutation(ins).Draw(d.t, "ports")
}

func (d *drawer) single() bool { return rapid.IntRange(0, 5).Draw(d.t, "single") == 0 }

func (d *drawer) step() {
	switch rapid.IntRange(0, 9).Draw(d.t, "step") {
	case 0:
		d.add(Node{Op: "ReadCSV", Attrs: []Attr{{"path", rapid.String().Draw(d.t, "path")}}, Single: d.single()})
	case 1, 2, 3, 4:
		d.add(Node{Op: "Map", Func: "main.f main.go:9", Inputs: []Input{d.data()}, Single: d.single()})
	case 5, 6:
		d.add(Node{Op: "Union", Inputs: d.inputs(1, 3), Single: d.single()})
	case 7:
		d.plain(Node{Op: "Collect", Name: fmt.Sprint(len(d.g.Nodes)), Inputs: d.inputs(1, 1), Sink: true, Single: d.single()})
	default:
		d.queue()
	}
}

func (d *drawer) queue() {
	t := d.t
	q := Queue{
		Name:          fmt.Sprint("queue ", len(d.g.Queues)),
		MaxSupersteps: rapid.IntRange(0, 2).Draw(t, "max"),
		HasCriterion:  rapid.Bool().Draw(t, "criterion"),
	}
	if !q.HasCriterion {
		q.MaxSupersteps++
	}
	d.g.Queues = append(d.g.Queues, q)
	single := d.single()
	stage := func(op string, kind StageKind, in ...Input) NodeID {
		return d.plain(Node{Op: op, Queue: q.Name, Stage: kind, Inputs: in, Single: single})
	}
	last := stage("QueueInit", QueueInit, d.inputs(0, 2)...)
	after := func(op string, kind StageKind) {
		in := Input{From: last, Role: Control}
		if kind.Exchanges() {
			in = Input{From: last, Partitioner: BySubtask}
		}
		last = stage(op, kind, in)
	}
	first := NodeID(len(d.g.Nodes))
	back := func(to NodeID) {
		n := &d.g.Nodes[to]
		n.Inputs = append(n.Inputs, Input{From: last, Role: Feedback})
	}
	var loops []NodeID
	for range rapid.IntRange(0, 6).Draw(t, "stages") {
		switch k := rapid.IntRange(0, 6).Draw(t, "stage"); {
		case k < 2:
			after("Compute", Compute)
		case k == 6:
			after("AllGather", Communicate)
		case k < 4:
			after("AllReduceSend", Send)
			after("AllReduceSum", Sum)
			d.g.Nodes[last].Order = rapid.SampledFrom([]Reduction{ShardTree, RankTree}).Draw(t, "order")
			after("AllReduceRecv", Recv)
		case k == 4:
			after("RepeatBegin", RepeatBegin)
			loops = append(loops, last)
		case len(loops) > 0:
			after("RepeatEnd", RepeatEnd)
			back(loops[len(loops)-1])
			loops = loops[:len(loops)-1]
		}
	}
	for k := len(loops) - 1; k >= 0; k-- {
		after("RepeatEnd", RepeatEnd)
		back(loops[k])
	}
	if q.HasCriterion {
		after("Criterion", Criterion)
		back(first)
	} else if last >= first && rapid.Bool().Draw(t, "feedback") {
		back(first)
	}
	after("QueueClose", QueueClose)
	d.g.Nodes[last].Schema = drawnSchema
	d.open = append(d.open, last)
}
