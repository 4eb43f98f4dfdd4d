package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
)

// report puts together what the subtasks counted. They have all ended.
func (r *run) report() *Report {
	rep := &Report{PeakMemory: r.budget.Peak(), Spilled: r.spilled.Load()}
	rep.Vertices = make([]VertexReport, len(r.plan.Vertices))
	for i := range r.plan.Vertices {
		v := &r.plan.Vertices[i]
		rep.Vertices[i] = VertexReport{ID: v.ID, Name: v.Name}
	}
	members := make(map[*subtask]*member)
	for _, g := range r.gangs {
		rep.Queues = append(rep.Queues, g.report())
		for _, m := range g.members {
			members[m.subtask] = m
		}
	}
	r.orderQueues(rep)
	for _, t := range r.subtasks {
		if m := members[t]; m != nil {
			m.reportInto(rep)
			continue
		}
		v := &rep.Vertices[t.vertex.ID]
		v.Subtasks = append(v.Subtasks, t.row())
	}
	rep.Accumulators = r.accumulators()
	return rep
}

// orderQueues sorts the queues as in the plan; gangs were made in the order of
// vertices.
func (r *run) orderQueues(rep *Report) {
	at := make(map[string]int)
	for i := range r.plan.Queues {
		at[r.plan.Queues[i].Name] = i
	}
	slices.SortFunc(rep.Queues, func(a, b QueueReport) int { return at[a.Name] - at[b.Name] })
}

// row is the report of a subtask outside of queues.
func (t *subtask) row() SubtaskReport {
	s := SubtaskReport{
		RowsIn: t.rowsIn, Shards: t.vertex.Ranges[t.index].Len(),
		Busy: t.elapsed - t.waiting, Waiting: t.waiting,
	}
	for _, l := range t.links {
		s.Operators = append(s.Operators, OperatorReport{
			Node: l.node.ID, RowsIn: l.rowsIn, RowsOut: l.rowsOut, Counters: counterList(l.context.counters),
		})
		s.RowsOut += l.rowsOut * int64(len(l.outs))
		if l.node.Sink || len(l.outs) == 0 && len(l.next) == 0 {
			s.RowsOut += l.rowsIn
		}
	}
	return s
}

// reportInto spreads a member over the vertices of its queue: rows to the first
// and last, time to where the stages are.
func (m *member) reportInto(rep *Report) {
	busy := make(map[plan.NodeID]time.Duration)
	waiting := make(map[plan.NodeID]time.Duration)
	inStages := m.deciding
	if m.criterion != m.between {
		busy[m.criterion.node.ID] = m.deciding
	}
	eachStage(m.stages, func(s *boundStage) {
		busy[s.Node] += s.busy
		waiting[s.Node] += s.waiting
		inStages += s.busy + s.waiting
	})
	for i := range m.run.plan.Vertices {
		v := &m.run.plan.Vertices[i]
		if v.Queue != m.gang.queue.Name {
			continue
		}
		s := SubtaskReport{Shards: v.Ranges[m.index].Len()}
		for _, c := range v.Chain {
			o := OperatorReport{Node: c.Node}
			s.Busy += busy[c.Node]
			s.Waiting += waiting[c.Node]
			switch c.Node {
			case m.head.node.ID:
				o.RowsIn, o.Counters = m.rowsIn, counterList(m.head.context.counters)
				s.RowsIn = m.rowsIn
				s.Waiting += m.waiting
				s.Busy += max(m.elapsed-m.waiting-inStages, 0)
			case m.tail.node.ID:
				o.RowsOut = m.tail.rowsOut
				s.RowsOut = m.tail.rowsOut * int64(len(m.tail.outs))
			}
			s.Operators = append(s.Operators, o)
		}
		rep.Vertices[v.ID].Subtasks = append(rep.Vertices[v.ID].Subtasks, s)
	}
}

// accumulators folds what operators accumulated, in the order of nodes.
func (r *run) accumulators() []Accumulator {
	var links []*link
	for _, t := range r.subtasks {
		for _, l := range t.links {
			if len(l.context.sums) > 0 {
				links = append(links, l)
			}
		}
	}
	slices.SortStableFunc(links, func(a, b *link) int { return int(a.node.ID - b.node.ID) })
	a := accumulation{shards: r.plan.Shards, byName: make(map[string]*shardSums)}
	for _, l := range links {
		a.merge(l.context.sums)
	}
	return a.fold()
}

// place says where a subtask is. Other goroutines may ask.
func (t *subtask) place() string {
	l := t.at.Load()
	if l == nil {
		l = t.links[0]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "operator %s", operatorName(l.node))
	if l.node.Site != "" {
		fmt.Fprintf(&b, " (%s)", l.node.Site)
	}
	fmt.Fprintf(&b, ", subtask %d of %d", t.index, t.vertex.Parallelism)
	if shard := l.at(); shard >= 0 {
		fmt.Fprintf(&b, ", shard %d", shard)
	}
	return b.String()
}
