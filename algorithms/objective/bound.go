package objective

import (
	"errors"
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// A Kinked loss is minimised through Smooth in rounds. Each round minimises the smooth
// objective, beginning at the parameters that the previous round found. Then bound computes
// sums that are reduced over shards. From these sums, gap computes how far the mean Kinked loss
// at the parameters may be above its minimum. If it may be too far, refine moves the
// multipliers:
//
//	minimise F with Smooth{Loss}                 any optimiser for smooth functions
//	sums = Σ over shards of bound(shard, v)      one read
//	objective, bound = gap(v, sums, l1, l2)      bound ≤ minimum ≤ objective
//	until objective − bound ≤ tolerance: refine each shard, begin again

// boundLen returns the number of sums of bound.
func (e *evaluator) boundLen() int { return 5 + 2*e.d }

// bound computes, for each row of the shard, the multiplier of the smooth loss at v. It adds to
// out what gap needs: the sum of the losses without smoothing, the terms of the dual objective,
// the pulls (negative slopes with respect to the margin), and the pulls times features. Rows
// with positive and with negative pulls have separate sums, so that gap can balance the two.
// bound reads the rows once.
func (e *evaluator) bound(shard int, v, out []float64) error {
	s, smooth := e.at(shard), e.loss.(Smooth)
	if s.next == nil {
		s.next = make([]float64, s.N)
	}
	mu := s.mu
	if mu == 0 {
		mu = smooth.mu()
	}
	e.point(s, v)
	up, down := out[5:5+e.d], out[5+e.d:5+2*e.d]
	for lo := 0; lo < s.N; lo += s.chunk {
		if err := e.interrupted(); err != nil {
			return err
		}
		part := s.Rows(lo, min(lo+s.chunk, s.N))
		m := e.margin[:part.N]
		e.margins(&part, part.Offset, m)
		upper, lower := e.coef[:part.N], e.batch.Work[:part.N]
		for i, margin := range m {
			a, w, shift := 0.0, 1.0, 0.0
			if s.prox != nil {
				a = s.prox[lo+i]
			}
			if s.weight != nil {
				w = s.weight[lo+i]
			}
			if part.Offset != nil {
				shift = part.Offset[i]
			}
			row := smooth.Loss.line(part.Label[i])
			r := row.c - float64(row.s*margin)
			alpha, _ := row.maximizer(r, a, mu)
			s.next[lo+i] = alpha
			upper[i], lower[i] = 0, 0
			if w == 0 {
				continue
			}
			out[0] += float64(w * row.value(r))
			part := float64(w * (float64(alpha*(row.c-float64(row.s*shift))) - float64(row.epsilon*math.Abs(alpha))))
			if pull := float64(w * float64(row.s*alpha)); pull > 0 {
				out[1] += part
				out[3] += pull
				upper[i] = pull
			} else {
				out[2] += part
				out[4] += pull
				lower[i] = pull
			}
		}
		if part.Dense != nil {
			kernel.AddScaledRows(part.Dense, part.N, e.d, upper, up)
			kernel.AddScaledRows(part.Dense, part.N, e.d, lower, down)
		} else {
			e.addEntries(&part, upper, up)
			e.addEntries(&part, lower, down)
		}
	}
	e.scaleSums(up, out[3])
	e.scaleSums(down, out[4])
	return nil
}

// scaleSums converts sums of pulls times unscaled features to sums of pulls times scaled
// features. total is the sum of the pulls.
func (e *evaluator) scaleSums(sums []float64, total float64) {
	for j, inverse := range e.inverse {
		if e.centred {
			sums[j] -= float64(e.mean[j] * total)
		}
		sums[j] *= inverse
	}
}

// value returns the loss of a row for r.
func (l line) value(r float64) float64 {
	switch {
	case r > l.epsilon:
		return l.hi * (r - l.epsilon)
	case r < -l.epsilon:
		return l.lo * (r + l.epsilon)
	case r == r:
		return 0
	}
	return r
}

// gap returns the mean Kinked loss plus the penalty at v as objective, and a lower bound of the
// minimum of this objective as bound. The bound is the dual objective at the multipliers that
// bound computed. sums has the sums that bound computes, reduced over all shards. Without a
// penalty on the coefficients the dual gives no bound, and bound is −Inf.
func (e *evaluator) gap(v, sums []float64, l1, l2 float64) (objective, bound float64) {
	objective = sums[0] / e.weight
	for j, value := range v {
		x := math.Abs(e.factor(j) * value)
		objective += float64(l1*x) + float64(0.5*float64(l2*float64(x*x)))
	}
	if !(l2 > 0) {
		return objective, math.Inf(-1)
	}
	// An intercept has no penalty, so at a valid dual point the positive and the negative pulls
	// add up to 0. The sum with the larger absolute value is reduced, which keeps the
	// multipliers within their bounds.
	up, down := 1.0, 1.0
	if e.intercept {
		switch above, below := sums[3], -sums[4]; {
		case above > below:
			up = below / above
		case below > above:
			down = above / below
		}
	}
	bound = (float64(up*sums[1]) + float64(down*sums[2])) / e.weight
	for j := range e.d {
		f := e.factor(j)
		if f == 0 {
			continue
		}
		pull := (float64(up*sums[5+j]) + float64(down*sums[5+e.d+j])) / e.weight
		if over := math.Abs(pull)/f - l1; over > 0 {
			bound -= float64(over*over) / (2 * l2)
		}
	}
	return objective, bound
}

// refine sets the centres of the smooth loss to the multipliers of the last bound, and reduces
// μ. It does not read the rows. The stored margins of the shard stay valid, but losses and
// gradients change.
func (e *evaluator) refine(shard int) error {
	s, smooth := e.at(shard), e.loss.(Smooth)
	if s.next == nil {
		return errors.New("smoothing is refined by the multipliers of a bound, and none was found")
	}
	if s.mu == 0 {
		s.mu = smooth.mu()
	}
	s.mu /= smooth.shrink()
	if s.prox == nil {
		s.prox = make([]float64, s.N)
	}
	copy(s.prox, s.next)
	return nil
}
