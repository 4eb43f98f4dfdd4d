package gbdt

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// These objects are used to measure metrics.
var (
	// measures has two values for each metric of each set, set by set: a sum over rows and the
	// divisor of the sum.
	measures = shared.Scratch[[]float64]("measures")
	// ordering is used by metrics that depend on the order of rows. It has the number of values
	// of each set, and then the pairs of the rows, set by set. ordered has the concatenated
	// contents of ordering from all subtasks.
	ordering = shared.Scratch[[]float64]("ordering")
	ordered  = shared.Scratch[[]float64]("ordered")
)

// putBuffers puts the buffers whose lengths depend on the training into the session.
func (q *boosting) putBuffers(ctx *comqueue.ComContext, s *state) {
	measures.Put(ctx, make([]float64, 2*len(s.sets)*len(s.metrics)))
	if s.base != nil { // the prior is known: trees are grown from now on
		limits.Put(ctx, nil)
		sums.Put(ctx, nil)
		return
	}
	outputs := 0
	if s.priorByMean() {
		outputs = s.outputs
	}
	limits.Put(ctx, make([]float64, s.outputs+1))
	sums.Put(ctx, make([]int64, 2*(outputs+1)))
}

// measure adds the sums and divisors of the metrics on the rows of a shard to out.
func (q *boosting) measure(ctx *comqueue.ComContext, shard int, out []float64) error {
	s := trained.Get(ctx)
	r := &s.view
	for a, m := range s.sets {
		if m.spans[shard].Rows == 0 {
			continue
		}
		show(r, m.data, m.spans[shard], m.queries, m.margin, m.weight)
		for b := range s.metrics {
			if at := 2 * (a*len(s.metrics) + b); s.metrics[b].sum != nil {
				s.metrics[b].sum(r, s.room, out[at:at+2])
			}
		}
	}
	return nil
}

// order collects the pairs of this subtask's rows for the metrics that depend on the order of
// rows.
func (q *boosting) order(ctx *comqueue.ComContext) error {
	s := trained.Get(ctx)
	flat, _ := ordering.Lookup(ctx)
	flat = kernel.Sized(flat, len(s.sets))
	r := &s.view
	for a, m := range s.sets {
		before := len(flat)
		for _, span := range m.data.Shards {
			show(r, m.data, span, m.queries, m.margin, m.weight)
			flat = appendPairs(r, flat)
		}
		flat[a] = float64(len(flat) - before)
	}
	ordering.Put(ctx, flat)
	return nil
}

// pairsOfSet returns the pairs of one set from all subtasks, in descending order.
func pairsOfSet(all []float64, sets, set int) []pair {
	var pairs []pair
	for len(all) > 0 {
		own := all[sets:]
		for a := range sets {
			n := int(all[a])
			if a == set {
				pairs = append(pairs, pairsOf(own[:n])...)
			}
			own = own[n:]
		}
		all = own
	}
	sortPairs(pairs)
	return pairs
}

// note computes the metrics of the round on subtask 0, and decides whether training is over.
func (q *boosting) note(ctx *comqueue.ComContext) error {
	if ctx.TaskID() != 0 {
		return nil
	}
	s := trained.Get(ctx)
	sums := measures.Get(ctx)
	var values [][]Value
	for a, m := range s.sets {
		var pairs []pair
		if q.ordered {
			pairs = pairsOfSet(ordered.Get(ctx), len(s.sets), a)
		}
		own := make([]Value, len(s.metrics))
		for b := range s.metrics {
			if at := 2 * (a*len(s.metrics) + b); s.metrics[b].ordered != nil {
				own[b] = Value(s.metrics[b].ordered(pairs))
			} else {
				own[b] = Value(s.metrics[b].value(sums[at : at+2]))
			}
			ctx.Report(m.name+" "+s.metrics[b].name, float64(own[b]))
		}
		values = append(values, own)
	}
	s.Log = append(s.Log, values)
	if err := s.checkDivergence(sums); err != nil {
		return fmt.Errorf("round %d: %w", s.params.round(ctx.StepNo()), err)
	}
	return s.updateBest(ctx.StepNo())
}

// checkDivergence returns an error if the margins have diverged, that is, if the first metric on the
// training rows is not finite. sums has the total and the divisor of this metric. Metrics that
// may be undefined for other reasons are ignored: metrics that depend on the order of rows,
// user-defined metrics, all metrics of a user-defined objective, and metrics whose rows have no
// weight. An infinite metric is not an error if it was infinite after the first round too,
// because the margins may still approach the labels. With the link Exponential it is always an
// error.
func (s *state) checkDivergence(sums []float64) error {
	if s.params.NoTrainMetrics || len(s.metrics) == 0 || s.params.Objective == Custom {
		return nil
	}
	m, now := &s.metrics[0], float64(s.Log[len(s.Log)-1][0][0])
	if m.ordered != nil || m.custom || !(sums[1] > 0) || kernel.Finite(now) {
		return nil
	}
	if math.IsInf(now, 0) && s.loss.link() != Exponential && !kernel.Finite(float64(s.Log[0][0][0])) {
		return nil
	}
	return fmt.Errorf("the metric %s of the training rows is %v, as the margins have diverged: %s", m.name, now, divergedAdvice)
}

// updateBest updates the best round, and decides whether to stop. It returns an error if training
// would stop although the metric was NaN in all rounds.
func (s *state) updateBest(round int) error {
	if s.params.EarlyStoppingRounds == 0 {
		s.Best = round
		return nil
	}
	set := 0
	if !s.params.NoTrainMetrics {
		set = 1
	}
	m := &s.metrics[0]
	now := float64(s.Log[round-1][set][0])
	if s.Best == 0 || m.better(now, float64(s.Log[s.Best-1][set][0]), s.params.EarlyStoppingTolerance) {
		s.Best = round
		if s.dropped != nil {
			s.dropped.keepBest()
		}
	}
	s.Stop = round-s.Best >= s.params.EarlyStoppingRounds
	if best := float64(s.Log[s.Best-1][set][0]); best != best && (s.Stop || round == s.params.NumTrees) {
		return fmt.Errorf("no round is the best of %d: the metric %s on the set %q, which early stopping goes by, is defined in none of them: choose other metrics or rows", round, m.name, s.sets[set].name)
	}
	return nil
}

// stopped reports whether training is over. It is the stop criterion of the queue.
func (q *boosting) stopped(ctx *comqueue.ComContext) (bool, error) { return trained.Get(ctx).Stop, nil }

// Value is the value of a metric. It is NaN where the metric is not defined. NaN and infinities
// are null in JSON.
type Value float64

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) {
	if !kernel.Finite(float64(v)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Value) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*v = Value(math.NaN())
		return nil
	}
	var f float64
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	*v = Value(f)
	return nil
}
