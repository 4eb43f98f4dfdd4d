package task

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
)

// Queues often give their rows, such as first centres or cut points of bins, to all subtasks of another
// queue. If a run fails in the other queue, the processes that are left keep these rows, which one of
// them sends to those that lack them. The queue that had made them is then left out, and so are its
// inputs.

// maxHeldSide limits the bytes of a side input that is kept for the next run.
const maxHeldSide = 64 << 20

// sideKey identifies a side input in the plans of a graph, whatever their parallelism.
type sideKey struct {
	From plan.NodeID `msgpack:"from"`
	To   plan.NodeID `msgpack:"to"`
	Port int         `msgpack:"port"`
}

func keyOf(e *plan.Edge) sideKey { return sideKey{e.FromNode, e.ToNode, e.Port} }

// mayHold reports whether the rows of an edge are kept if the run fails.
func (r *run) mayHold(e *plan.Edge) bool {
	return r.env.Retained != nil && e.Role == plan.Side && r.plan.Vertices[e.From].Queue != ""
}

// complete returns the rows of the input if all are there and few enough to be kept. They are
// borrowed.
func (s *sideInput) complete() ([]arrow.Record, bool) {
	select {
	case <-s.done:
	default:
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records, !s.dropped && sizeOf(s.records) <= maxHeldSide
}

func sizeOf(records []arrow.Record) (bytes int64) {
	for _, rows := range records {
		bytes += batch.Size(rows)
	}
	return bytes
}

// prefill gives the input all of its rows, which are borrowed. No message arrives then.
func (s *sideInput) prefill(records []arrow.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rows := range records {
		if s.memory.take(s, batch.Size(rows)) {
			rows.Retain()
			s.byShard[0] = append(s.byShard[0], rows)
		} else {
			s.forget()
		}
	}
	if err := s.memory.checkFits(s); err != nil {
		return err
	}
	s.openShards, s.records = 0, s.byShard[0]
	for i := range s.ended {
		s.ended[i] = true
	}
	close(s.done)
	return nil
}

// holdSides keeps the complete side inputs of a run that has failed. Those that no subtask here reads stay as
// an earlier run has left them: this process may be the only one that has them. mu is held.
func (k *Retained) holdSides(r *run) {
	held := make(map[sideKey][]arrow.Record)
	for i, s := range r.receivers.sides {
		e := &r.plan.Edges[i]
		if !r.mayHold(e) {
			continue
		}
		key := keyOf(e)
		if s == nil {
			if before, there := k.sides[key]; there {
				held[key] = before
				delete(k.sides, key)
			}
		} else if records, ok := s.complete(); ok {
			for _, rows := range records {
				rows.Retain()
			}
			held[key] = slices.Clone(records)
		}
	}
	k.releaseSides()
	k.sides = held
}

// holdReports keeps the reports of queues that had ended, if subtask 0 was in this process. mu is held.
func (k *Retained) holdReports(r *run) {
	for _, first := range r.gangs {
		all := first.generations()
		last := all[len(all)-1]
		if last.here.Lo == 0 && last.done && last.members[0].closed.Load() {
			k.reports[first.queue.Name] = first.report()
		}
	}
}

// releaseSides releases the side inputs that are kept. mu is held.
func (k *Retained) releaseSides() {
	for _, records := range k.sides {
		for _, rows := range records {
			rows.Release()
		}
	}
	k.sides = nil
}

// heldSides returns, by edge, the workers that have kept the rows of a side input.
func heldSides(p *plan.Plan, held []holding) map[int][]int {
	sides := make(map[int][]int)
	for i := range p.Edges {
		e := &p.Edges[i]
		if e.Role != plan.Side || p.Vertices[e.From].Queue == "" {
			continue
		}
		for w := range held {
			if slices.Contains(held[w].Sides, keyOf(e)) {
				sides[i] = append(sides[i], w)
			}
		}
	}
	return sides
}

// leftOut returns the queues that need not run: they have done all of their supersteps, whoever reads
// their rows gets them from a process that has kept them, and a process has kept their report.
func leftOut(p *plan.Plan, ended []string, held []holding, sides map[int][]int) map[string]bool {
	out := make(map[string]bool)
	for _, queue := range ended {
		if reporter(held, queue) < 0 {
			continue
		}
		edges, kept := 0, 0
		for i := range p.Edges {
			if e := &p.Edges[i]; p.Vertices[e.From].Queue == queue && carriesRows(p, e) {
				edges++
				if len(sides[i]) > 0 {
					kept++
				}
			}
		}
		out[queue] = edges > 0 && edges == kept
	}
	return out
}

// reporter returns the first worker that has kept the report of a queue, or -1.
func reporter(held []holding, queue string) int {
	return slices.IndexFunc(held, func(h holding) bool { return slices.Contains(h.Reports, queue) })
}

// takeSides gives the side inputs of this process the rows that it has kept.
func (r *run) takeSides() error {
	k := r.env.Retained
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, holders := range r.continued.sides {
		s := r.receivers.sides[i]
		if s != nil && slices.Contains(holders, r.part.Worker) {
			if err := s.prefill(k.sides[keyOf(&r.plan.Edges[i])]); err != nil {
				return err
			}
		}
	}
	return nil
}

// resendSides sends kept side inputs to the workers that lack them, if this worker is the first that
// has them.
func (r *run) resendSides() {
	if r.continued == nil {
		return
	}
	for i, holders := range r.continued.sides {
		e := &r.plan.Edges[i]
		if holders[0] != r.part.Worker || !r.continued.leftOut[r.plan.Vertices[e.From].Queue] {
			continue
		}
		records := r.env.Retained.sides[keyOf(e)]
		for to := range r.workersOf(&r.plan.Vertices[e.To]) {
			if slices.Contains(holders, to) {
				continue
			}
			r.running.Go(func() {
				if err := r.resend(r.context, i, to, records); err != nil {
					r.record(r.edgeError(e, 0, -1, err))
				}
			})
		}
	}
}

// resend sends the rows of a side input as those of source shard 0.
func (r *run) resend(ctx context.Context, edge, to int, records []arrow.Record) error {
	senders := newSenders(edge, r.network, r.transit.gate)
	at := destination{worker: to}
	var all sent
	for _, rows := range records {
		rows.Retain()
		all.messages, all.rows = all.messages+1, all.rows+rows.NumRows()
		if err := senders.send(ctx, at, transport.Message{To: -1, Rows: rows}, batch.Size(rows)); err != nil {
			return err
		}
	}
	for shard := range r.plan.Shards {
		if err := senders.send(ctx, at, transport.Message{Shard: shard, To: -1, Last: true, Sent: all.messages, SentRows: all.rows}, 0); err != nil {
			return err
		}
		all = sent{}
	}
	return nil
}

// passQueue does for a queue that is left out what its members would do at the end.
func (r *run) passQueue(q *plan.Queue, from *Cut) {
	for i := range r.plan.Vertices {
		v := &r.plan.Vertices[i]
		if v.Queue != q.Name {
			continue
		}
		here := r.localSubtasks(v)
		for t := here.Lo; t < here.Hi; t++ {
			(&subtask{run: r, vertex: v, index: t}).reportProgress(int32(v.Ranges[t].Len()))
		}
	}
	if f := r.env.Progress; f != nil && from != nil && r.part.Worker == 0 {
		f(Progress{Queue: q.Name, Step: from.Step, Compute: from.Compute, Communicate: from.Communicate})
	}
}

// reportPassed adds the reports of the subtasks of queues that are left out.
func (r *run) reportPassed(rows [][]SubtaskReport) {
	if r.continued == nil {
		return
	}
	for i := range r.plan.Vertices {
		v := &r.plan.Vertices[i]
		if !r.continued.leftOut[v.Queue] {
			continue
		}
		here := r.localSubtasks(v)
		for t := here.Lo; t < here.Hi; t++ {
			s := SubtaskReport{Shards: v.Ranges[t].Len()}
			for _, c := range v.Chain {
				s.Operators = append(s.Operators, OperatorReport{Node: c.Node})
			}
			rows[i] = append(rows[i], s)
		}
	}
}
