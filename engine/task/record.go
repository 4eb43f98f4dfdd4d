package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// result assembles the outcome from the counts of the subtasks, which have all ended.
func (r *run) result() *outcome {
	o := &outcome{Peak: r.budget.Peak(), Spilled: r.spilled.Load(), Elapsed: time.Since(r.began)}
	rows := make([][]SubtaskReport, len(r.plan.Vertices)) // reports of the subtasks in this process
	members := make(map[*subtask]*member)
	for _, queue := range r.passed {
		o.Queues = append(o.Queues, r.env.Retained.reportOf(queue))
	}
	for _, first := range r.gangs { // in plan order
		o.Queues = append(o.Queues, first.report())
		for _, g := range first.generations() {
			for _, m := range g.members {
				members[m.subtask] = m
			}
		}
	}
	for _, t := range r.subtasks { // in order for each vertex
		if m := members[t]; m != nil {
			m.reportInto(rows)
			continue
		}
		rows[t.vertex.ID] = append(rows[t.vertex.ID], t.row())
	}
	r.reportPassed(rows)
	r.env.Retained.reportInto(r, rows)
	for i := range rows {
		if v := &r.plan.Vertices[i]; len(rows[i]) > 0 {
			o.Vertices = append(o.Vertices, vertexPart{Vertex: v.ID, First: r.localSubtasks(v).Lo, Subtasks: rows[i]})
		}
	}
	o.Sums = r.sums()
	return o
}

// row returns the report of a subtask outside of queues.
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

// reportInto divides the report of a member among the vertices of its queue. Rows are counted at
// the first and the last vertex, and times at the vertices of the stages.
func (m *member) reportInto(rows [][]SubtaskReport) {
	busy := make(map[plan.NodeID]time.Duration)
	waiting := make(map[plan.NodeID]time.Duration)
	inStages := m.deciding
	if m.criterion != m.betweenStages {
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
		var s SubtaskReport
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
		if m.generation == 0 {
			s.Shards = v.Ranges[m.index].Len()
			rows[v.ID] = append(rows[v.ID], s)
			continue
		}
		// The plan does not have this subtask. Its report is added to the report of the plan's
		// subtask that owns its first shard.
		row := sharding.Owner(m.run.plan.Shards, v.Parallelism, m.vertex.Ranges[m.index].Lo)
		rows[v.ID][row].add(s)
	}
}

// add adds the report o of a subtask of a later gang to s.
func (s *SubtaskReport) add(o SubtaskReport) {
	s.RowsIn, s.RowsOut = s.RowsIn+o.RowsIn, s.RowsOut+o.RowsOut
	s.Busy, s.Waiting = s.Busy+o.Busy, s.Waiting+o.Waiting
	for i := range o.Operators { // of the same chain
		own := &s.Operators[i]
		own.RowsIn, own.RowsOut = own.RowsIn+o.Operators[i].RowsIn, own.RowsOut+o.Operators[i].RowsOut
		for _, c := range o.Operators[i].Counters {
			if k := slices.IndexFunc(own.Counters, func(had Counter) bool { return had.Name == c.Name }); k >= 0 {
				own.Counters[k].Value += c.Value
			} else {
				own.Counters = append(own.Counters, c)
			}
		}
		slices.SortFunc(own.Counters, func(a, b Counter) int { return strings.Compare(a.Name, b.Name) })
	}
}

// sums returns the sums that operators accumulated, and passes them to the Observer.
func (r *run) sums() []sumPart {
	var parts []sumPart
	for _, t := range r.subtasks {
		for _, l := range t.links {
			for _, name := range slices.Sorted(maps.Keys(l.context.sums)) {
				part := l.context.sums[name].part(l.node.ID, name)
				if o := r.env.Observer; o != nil {
					o.Sums(part.Node, part.Name, part.Shards, part.Values)
				}
				parts = append(parts, part)
			}
		}
	}
	return append(parts, r.env.Retained.sums()...)
}

// place describes what a subtask is working on. Other goroutines may call it.
func (t *subtask) place() string {
	l := t.current.Load()
	if l == nil {
		l = t.links[0]
	}
	var b strings.Builder
	if l.node.Within != "" {
		b.WriteString(l.node.Within + ": ")
	}
	fmt.Fprintf(&b, "operator %s", l.node.Title())
	if l.node.Site != "" {
		fmt.Fprintf(&b, " (%s)", l.node.Site)
	}
	fmt.Fprintf(&b, ", subtask %d of %d", t.index, t.vertex.Parallelism)
	if shard := l.currentShard(); shard >= 0 {
		fmt.Fprintf(&b, ", shard %d", shard)
	}
	return b.String()
}
