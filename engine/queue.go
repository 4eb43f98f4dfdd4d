package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// QueueSpec describes a queue (a loop of supersteps) to add.
type QueueSpec struct {
	// Name is the queue's name in plans, progress and results. If a queue of the job has that
	// name already, "-2", "-3" and so on is appended.
	Name string
	// MaxSupersteps is the maximum number of supersteps; 0 if only the criterion ends the queue.
	MaxSupersteps int
	// HasCriterion says that Loop.Stop is called after each superstep.
	HasCriterion bool
	// CriterionFunc is the user's criterion, for the fingerprint.
	CriterionFunc any
	// Inputs are the data and side inputs; there may be none.
	Inputs []Port
	// Opening describes, in its Attrs and Funcs, the functions that are called before the first
	// stage.
	Opening StageSpec
	// Stages are the stages of a superstep in order, including those that begin and
	// end inner loops. A queue without stages only counts its supersteps.
	Stages []StageSpec
	// Schema is the schema of the rows that the queue emits when it ends.
	Schema Schema
	// CloseFunc is the user's function that emits these rows, for the fingerprint.
	CloseFunc any
	// Loop returns the function that makes the queue's Loops. nodes are the node numbers of
	// Stages, in order.
	Loop func(nodes []NodeID) OpenLoops
}

// StageSpec describes one stage.
type StageSpec struct {
	Kind  StageKind
	Op    string // for StageCommunicate: the collective, such as "AllGather"
	Name  string // such as "assign cluster", or the buffer of an AllReduce
	Attrs []Attr
	// Site is the user's line that added the stage, of Builder.Site; "" means the line that adds the queue.
	Site string
	// Instance is the type of the instances of the stage, if each subtask has one. It becomes an attribute.
	Instance string
	// Func is the user's function that the stage calls, for the fingerprint.
	// Funcs are further functions, if stages are fused.
	Func  any
	Funcs []any
	// Order says how the stage reduces floating-point values.
	Order Reduction
	// RankState says that the stage keeps a state for each subtask that cannot be divided, so that
	// the queue continues only at its own parallelism.
	RankState bool
	// NamedAfterFunc says that Name is the name of a function. Savepoints then compare the stage by its
	// place and kind alone.
	NamedAfterFunc bool
	// Unkept says that the stage has a state that cannot be saved, so that the queue begins at
	// superstep 1 again if its subtasks are lost.
	Unkept bool
}

// stageOps has the kind of operator (plan.Node.Op) of each kind of stage.
var stageOps = map[plan.StageKind]string{
	plan.QueueInit:   "QueueInit",
	plan.Compute:     "Compute",
	plan.Send:        "AllReduceSend",
	plan.Sum:         "AllReduceSum",
	plan.Recv:        "AllReduceRecv",
	plan.RepeatBegin: "RepeatBegin",
	plan.RepeatEnd:   "RepeatEnd",
	plan.Criterion:   "Criterion",
	plan.QueueClose:  "QueueClose",
}

// AddQueue adds a queue and returns the rows that it emits at the end. In the graph a queue
// consists of a node that takes the inputs, a node for each stage, a node for the criterion if
// there is one, and a node that emits the rows. Each node has a control edge from the node before
// it; sum, receive and other collectives have a by-subtask edge instead. Feedback edges lead from
// the end of a loop to its beginning. AddQueue handles misuse as Add does.
func (b *Builder) AddQueue(q QueueSpec) *Dataset {
	b.MustBuild(fmt.Sprintf("queue %q", q.Name), aBuilder)
	if b.unusable() || poisonedInput(q.Inputs) {
		return b.Poisoned("Queue")
	}
	schema, err := b.checkQueue(&q)
	if err != nil {
		b.Errorf("queue %q: %w", q.Name, err)
		return b.Poisoned("Queue")
	}
	w := queueWriter{b: b, name: b.queueName(q.Name)}
	w.add(plan.QueueInit, q.Opening, nil, q.Inputs)
	first := plan.NodeID(len(b.graph.Nodes))
	nodes := make([]NodeID, len(q.Stages))
	for i, s := range q.Stages {
		nodes[i] = w.stage(s)
	}
	if q.HasCriterion {
		w.add(plan.Criterion, StageSpec{Func: q.CriterionFunc}, nil, nil, w.after())
	}
	if w.last >= first { // without stages and criterion there is no node to go back to
		w.feedback(first)
	}
	w.add(plan.QueueClose, StageSpec{Func: q.CloseFunc}, schema, nil, w.after())
	b.bind.Loops[w.name] = q.Loop(nodes)
	b.graph.Queues = append(b.graph.Queues, plan.Queue{Name: w.name, MaxSupersteps: q.MaxSupersteps, HasCriterion: q.HasCriterion})
	return &Dataset{builder: b, node: w.last, schema: schema}
}

// queueName returns name, with a number appended if another queue of the job has this name.
func (b *Builder) queueName(name string) string {
	taken := func(name string) bool {
		_, ok := b.bind.Loops[name]
		return ok
	}
	free := name
	for n := 2; taken(free); n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}

// checkQueue returns the schema of the queue's rows, or an error if the specification is wrong.
func (b *Builder) checkQueue(q *QueueSpec) (*arrow.Schema, error) {
	switch {
	case q.Name == "":
		return nil, errors.New("the queue has no name")
	case q.MaxSupersteps < 0:
		return nil, fmt.Errorf("the maximum of supersteps is %d: want at least 1", q.MaxSupersteps)
	case q.MaxSupersteps == 0 && !q.HasCriterion:
		return nil, errors.New("nothing ends the loop: set a maximum of supersteps or a criterion")
	case q.Schema.IsZero():
		return nil, errors.New("the queue emits no rows: say how it closes")
	case q.Loop == nil:
		return nil, errors.New("the queue has no loop")
	}
	if err := checkStages(q.Stages); err != nil {
		return nil, err
	}
	if err := b.checkPorts(q.Inputs); err != nil {
		return nil, err
	}
	return checkSchema(arrowrows.Arrow(q.Schema))
}

// checkStages checks that send, sum and receive occur only in a row, and that inner
// loops are properly nested and not empty.
func checkStages(stages []StageSpec) error {
	depth := 0
	for i, s := range stages {
		var before plan.StageKind
		if i > 0 {
			before = stages[i-1].Kind
		}
		switch s.Kind {
		case plan.Compute, plan.Send:
		case plan.Communicate:
			if s.Op == "" {
				return fmt.Errorf("stage %d communicates, but does not say by which collective", i+1)
			}
		case plan.Sum:
			if before != plan.Send {
				return fmt.Errorf("stage %d sums what no stage before it sends", i+1)
			}
		case plan.Recv:
			if before != plan.Sum {
				return fmt.Errorf("stage %d receives what no stage before it sums", i+1)
			}
		case plan.RepeatBegin:
			depth++
		case plan.RepeatEnd:
			if depth--; depth < 0 {
				return fmt.Errorf("stage %d ends an inner loop that was not begun", i+1)
			}
			if before == plan.RepeatBegin {
				return fmt.Errorf("stage %d ends an inner loop without stages", i+1)
			}
		default:
			return fmt.Errorf("stage %d is of a kind that the engine adds itself", i+1)
		}
		if (before == plan.Send && s.Kind != plan.Sum) || (before == plan.Sum && s.Kind != plan.Recv) {
			return fmt.Errorf("stage %d interrupts an AllReduce: want send, sum and receive in a row", i+1)
		}
	}
	if len(stages) > 0 {
		if last := stages[len(stages)-1].Kind; last == plan.Send || last == plan.Sum {
			return errors.New("the last AllReduce lacks its receiving stage")
		}
	}
	if depth > 0 {
		return errors.New("an inner loop is not ended")
	}
	return nil
}

// queueWriter adds the nodes of a queue in order.
type queueWriter struct {
	b     *Builder
	name  string
	last  plan.NodeID
	begun []plan.NodeID // RepeatBegin nodes of inner loops that have not ended
}

// after returns a control edge from the last node.
func (w *queueWriter) after() plan.Input {
	return plan.Input{From: w.last, Partitioner: plan.Forward, Role: plan.Control}
}

// stage adds one of the user's stages after the last node.
func (w *queueWriter) stage(s StageSpec) plan.NodeID {
	in := w.after()
	if s.Kind.Exchanges() {
		in.Partitioner = plan.BySubtask
	}
	w.add(s.Kind, s, nil, nil, in)
	switch s.Kind {
	case plan.RepeatBegin:
		w.begun = append(w.begun, w.last)
	case plan.RepeatEnd:
		w.feedback(w.begun[len(w.begun)-1])
		w.begun = w.begun[:len(w.begun)-1]
	}
	return w.last
}

// add adds a node. The first node has ports, which are the queue's inputs; every other node has
// the edge in, which comes from the previous node.
func (w *queueWriter) add(kind plan.StageKind, s StageSpec, schema *arrow.Schema, ports []Port, in ...plan.Input) {
	op := stageOps[kind]
	if kind == plan.Communicate {
		op = s.Op
	}
	attrs := slices.Clone(s.Attrs)
	if s.Instance != "" {
		attrs = append(attrs, Attr{Key: plan.InstanceAttr, Value: s.Instance})
	}
	w.last = w.b.addNode(plan.Node{
		Op:    op,
		Name:  s.Name,
		Attrs: attrs,
		Func:  funcIdentities(append([]any{s.Func}, s.Funcs...)...),
		Queue: w.name,
		Stage: kind,
		Order: s.Order, RankState: s.RankState, Unkept: s.Unkept, NamedAfterFunc: s.NamedAfterFunc,
	}, schema, ports)
	n := &w.b.graph.Nodes[w.last]
	n.Inputs = append(n.Inputs, in...)
	n.Site = cmp.Or(s.Site, n.Site)
}

// feedback adds a feedback edge from the last node to the node to, which is the first node of a
// loop.
func (w *queueWriter) feedback(to plan.NodeID) {
	n := &w.b.graph.Nodes[to]
	n.Inputs = append(n.Inputs, plan.Input{From: w.last, Partitioner: plan.Forward, Role: plan.Feedback})
}
