package gbdt

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Draws of rows depend only on (seed, purpose, shard, round, row within the shard).

// round returns the number of the round of a superstep, from 1. If training continues a model,
// it includes the model's rounds.
func (p *Params) round(step int) int {
	if p.Start != nil {
		return p.Start.Rounds() + step
	}
	return step
}

// sampling reports whether the trees of a round use only a part of the rows.
func (p *Params) sampling(round int) bool {
	return p.ValidationFraction > 0 || p.Subsample < 1 || p.oneSided(round)
}

// oneSided reports whether GOSS draws rows in a round. The first 1/LearningRate rounds use all
// rows, because gradients have little information before a few trees are made.
func (p *Params) oneSided(round int) bool {
	return p.GOSS && float64(round)*p.rate(round) > 1
}

// beginSampling computes the scores of rows for GOSS, and starts the search for the score above
// which all rows are taken.
func (q *boosting) beginSampling(ctx *comqueue.ComContext) error {
	s := trained.Get(ctx)
	if !s.params.oneSided(s.params.round(ctx.StepNo())) {
		q.scores.skip(ctx, &s.goss)
		return nil
	}
	s.factor = kernel.Sized(s.factor, s.data.Rows)
	err := s.eachGradient(func(first, n int) {
		score := s.factor[first : first+n]
		clear(score)
		for k := range s.outputs {
			for i := range score {
				score[i] += math.Abs(s.grad[k][i] * s.hess[k][i])
			}
		}
	})
	if err != nil {
		return err
	}
	if s.held != nil {
		s.goss.group = kernel.Sized(s.goss.group, s.data.Rows)
		for i, out := range s.held {
			s.goss.group[i] = 0
			if out {
				s.goss.group[i] = -1
			}
		}
	}
	s.goss.at, s.goss.groups, s.goss.rows = 1-s.params.TopRate, 1, s.data.Rows
	s.goss.value = func(i int) float64 { return s.factor[i] }
	q.scores.begin(ctx, &s.goss)
	return nil
}

// eachGradient computes the gradients of all rows, shard by shard, and calls f for each shard,
// which has n rows beginning with the row first of the subtask.
func (s *state) eachGradient(f func(first, n int)) error {
	r := &s.view
	for _, span := range s.data.Shards {
		show(r, s.data, span, s.queries, s.margin, s.weight)
		if err := s.loss.gradients(r, s.grad, s.hess); err != nil {
			return err
		}
		f(span.First, span.Rows)
	}
	return nil
}

// draw determines which rows are in the bag of a round.
func (s *state) draw(round int) {
	p := s.params
	if !p.sampling(round) {
		s.bag, s.rows = nil, nil
		return
	}
	s.bag, s.rows = kernel.Sized(s.bag, s.data.Rows), s.rows[:0]
	for _, span := range s.data.Shards {
		random := sharding.NewRandom(p.Seed, "gbdt rows", span.Shard, round)
		for i := range span.Rows {
			at := span.First + i
			in := s.held == nil || !s.held[at]
			if in {
				in = s.take(at, &random, uint64(i), round)
			}
			if s.bag[at] = in; in {
				s.rows = append(s.rows, int32(at))
			}
		}
	}
}

// take reports whether a row that is not held out is in the bag, and sets the factor of its
// gradients.
func (s *state) take(at int, random *sharding.Random, i uint64, round int) bool {
	p := s.params
	switch {
	case p.oneSided(round):
		if s.factor[at] >= s.goss.found[0] {
			s.factor[at] = 1
			return true
		}
		rest := 1 - p.TopRate
		s.factor[at] = rest / p.OtherRate
		return random.Float64At(i)*rest < p.OtherRate
	case p.Subsample < 1:
		return random.Float64At(i) < p.Subsample
	}
	return true
}
