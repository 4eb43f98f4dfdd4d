package task

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// outcome is the result of one worker: its share of the report, the sums of its shards, and
// what its sinks wrote.
type outcome struct {
	Elapsed  time.Duration `msgpack:"elapsed"`
	Vertices []vertexPart  `msgpack:"vertices"` // vertices with subtasks here, in plan order
	Queues   []QueueReport `msgpack:"queues"`   // queues with subtasks here; on workers other than 0 only their Stages are used
	Sums     []sumPart     `msgpack:"sums"`
	Peak     int64         `msgpack:"peak"`
	Spilled  int64         `msgpack:"spilled"`
	Written  []written     `msgpack:"written"`
}

// vertexPart holds the reports of consecutive subtasks of a vertex, beginning with First.
type vertexPart struct {
	Vertex   plan.VertexID   `msgpack:"vertex"`
	First    int             `msgpack:"first"`
	Subtasks []SubtaskReport `msgpack:"subtasks"`
}

// sumPart holds what one operator accumulated under a name: a sum for each shard that has one.
// The sums are not folded here, as the tree over shards spans workers.
type sumPart struct {
	Node   plan.NodeID `msgpack:"node"`
	Name   string      `msgpack:"name"`
	Shards []int       `msgpack:"shards"`
	Values []float64   `msgpack:"values"`
}

// written is a sink's description of what it wrote.
type written struct {
	Node plan.NodeID `msgpack:"node"`
	Data []byte      `msgpack:"data"`
}

// outcomes is the codec of outcome. It checks every length that it reads.
var outcomes = shared.Msgpack[outcome]()

// encode returns the outcome as bytes for other processes. Floating-point values keep their bits.
func (o *outcome) encode() ([]byte, error) {
	data, err := outcomes.Append(nil, *o)
	if err != nil {
		return nil, fmt.Errorf("encode the outcome of the run: %w", err)
	}
	return data, nil
}

// decodeOutcomes decodes the outcomes of all workers, by worker number, and checks that
// they can be outcomes of this plan.
func decodeOutcomes(p *plan.Plan, data [][]byte) ([]*outcome, error) {
	all := make([]*outcome, len(data))
	for w := range data {
		o, err := outcomes.Decode(data[w])
		if err == nil {
			err = o.check(p)
		}
		all[w] = &o
		if err != nil {
			return nil, fmt.Errorf("the outcome of worker %d: %w", w, err)
		}
	}
	return all, nil
}

// check returns an error if no run of the plan can have returned such an outcome.
func (o *outcome) check(p *plan.Plan) error {
	for i := range o.Vertices {
		v := &o.Vertices[i]
		if v.Vertex < 0 || int(v.Vertex) >= len(p.Vertices) {
			return fmt.Errorf("it has vertex %d, of %d", v.Vertex, len(p.Vertices))
		}
		if n := p.Vertices[v.Vertex].Parallelism; v.First < 0 || v.First > n || len(v.Subtasks) > n-v.First {
			return fmt.Errorf("it has %d subtasks from %d on of vertex %d, which has %d", len(v.Subtasks), v.First, v.Vertex, n)
		}
	}
	for i := range o.Queues {
		name := o.Queues[i].Name
		if !slices.ContainsFunc(p.Queues, func(q plan.Queue) bool { return q.Name == name }) {
			return fmt.Errorf("it has the queue %q, which is not in the plan", name)
		}
	}
	for i := range o.Sums {
		s := &o.Sums[i]
		if len(s.Shards) != len(s.Values) {
			return fmt.Errorf("it has %d sums of %d shards for %q", len(s.Values), len(s.Shards), s.Name)
		}
		for _, shard := range s.Shards {
			if shard < 0 || shard >= p.Shards {
				return fmt.Errorf("it has a sum of shard %d for %q, of %d shards", shard, s.Name, p.Shards)
			}
		}
	}
	return nil
}

// MergeOutcomes returns the report of a run, where workers[i] is the outcome that worker i
// returned. It is a pure function of its arguments, and the accumulators have the same bits as
// after a run in one part. Counts and times of stages are summed over the workers; everything
// else about a queue comes from worker 0. Elapsed is the time of the slowest worker.
func MergeOutcomes(p *plan.Plan, workers [][]byte) (*Report, error) {
	if p == nil {
		return nil, errors.New("there is no plan to merge outcomes of")
	}
	all, err := decodeOutcomes(p, workers)
	if err != nil {
		return nil, err
	}
	return merge(p, all)
}

// merge is like MergeOutcomes, for outcomes that were decoded and checked.
func merge(p *plan.Plan, all []*outcome) (*Report, error) {
	rep := &Report{Vertices: make([]VertexReport, len(p.Vertices))}
	have := make([][]bool, len(p.Vertices))
	for i := range p.Vertices {
		v := &p.Vertices[i]
		rep.Vertices[i] = VertexReport{ID: v.ID, Name: v.Name, Subtasks: make([]SubtaskReport, v.Parallelism)}
		have[i] = make([]bool, v.Parallelism)
	}
	for w, o := range all {
		rep.Elapsed = max(rep.Elapsed, o.Elapsed)
		rep.PeakMemory += o.Peak
		rep.Spilled += o.Spilled
		for i := range o.Vertices {
			v := &o.Vertices[i]
			for k := range v.Subtasks {
				t := v.First + k
				if have[v.Vertex][t] {
					return nil, fmt.Errorf("subtask %d of vertex %d is in the outcomes of two workers, the second of which is %d", t, v.Vertex, w)
				}
				have[v.Vertex][t] = true
				rep.Vertices[v.Vertex].Subtasks[t] = v.Subtasks[k]
			}
		}
	}
	for i := range have {
		if t := slices.Index(have[i], false); t >= 0 {
			return nil, fmt.Errorf("subtask %d of vertex %d is in the outcome of none of %d workers", t, i, len(all))
		}
	}
	rep.Queues = mergeQueues(p, all)
	rep.Accumulators = mergeSums(p, all)
	return rep, nil
}

// mergeQueues merges the queue reports of all workers, in plan order.
func mergeQueues(p *plan.Plan, all []*outcome) []QueueReport {
	var merged []QueueReport
	for i := range p.Queues {
		var whole *QueueReport
		for _, o := range all {
			at := slices.IndexFunc(o.Queues, func(q QueueReport) bool { return q.Name == p.Queues[i].Name })
			switch {
			case at < 0:
			case whole == nil:
				whole = new(o.Queues[at]) // the report of worker 0, which has subtask 0
				whole.Stages = slices.Clone(whole.Stages)
			default:
				whole.addStages(o.Queues[at].Stages)
			}
		}
		if whole != nil {
			merged = append(merged, *whole)
		}
	}
	return merged
}

// addStages adds the costs of the stages on another worker or in another gang.
func (q *QueueReport) addStages(stages []StageReport) {
	for _, s := range stages {
		at := slices.IndexFunc(q.Stages, func(have StageReport) bool { return have.Node == s.Node })
		if at < 0 {
			q.Stages = append(q.Stages, s)
			continue
		}
		sum := &q.Stages[at]
		sum.Calls += s.Calls
		sum.Bytes += s.Bytes
		sum.Busy += s.Busy
		if sum.Program == "" {
			sum.Program = s.Program
		}
	}
}

// mergeSums folds the sums that operators accumulated: within each shard in the order of nodes,
// then along the tree over shards. Neither order depends on parallelism. The sum of an operator
// for a shard comes from one worker, so the order of workers does not matter.
func mergeSums(p *plan.Plan, all []*outcome) []Accumulator {
	var parts []*sumPart
	for _, o := range all {
		for i := range o.Sums {
			parts = append(parts, &o.Sums[i])
		}
	}
	slices.SortStableFunc(parts, func(a, b *sumPart) int { return cmp.Compare(a.Node, b.Node) })
	a := accumulation{within: sharding.Range{Lo: 0, Hi: p.Shards}, byName: make(map[string]*shardSums)}
	for _, part := range parts {
		a.merge(part)
	}
	return a.fold()
}
