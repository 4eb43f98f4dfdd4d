package rows

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// For sparse rows, one pass gives means and deviations of nearly all columns. The variance is
// then the mean of the squares less the square of the mean. This loses digits where the mean is
// large compared with the deviation. A column that is absent from some rows has no such mean:
// if it occurs in a share p of the rows, the square of its mean is at most p/(1−p) times its
// variance. Only columns with a mean above about thrice their deviation, such as one that is 1
// everywhere, take a second pass.

// farMean is the largest ratio of the square of the mean to the variance for which the variance
// is the difference of two sums. That difference then loses three bits.
const farMean = 8

// sumEntries adds Σ weight·x and Σ weight·x² of each column of the window to out, side by side.
// It also notes the largest absolute values over the shards of the subtask.
func (s *survey) sumEntries(b *Block, out []float64) {
	lo, hi := s.space.declaredRange(s.window.Lo, s.window.Hi)
	first := int32(s.window.Lo)
	top := s.high
	if b.Weight == nil && s.space.identity() && s.window.Len() == s.facts.Dim() {
		kernel.AddMomentsCSR(b.Sparse, out, top)
		return
	}
	for i := range b.N {
		col, val := b.Sparse.Row(i)
		col, val = within(col, val, lo, hi)
		weight := 1.0
		if b.Weight != nil {
			weight = b.Weight[i]
		}
		if weight == 0 {
			continue
		}
		for p, x := range val {
			j := s.space.number(col[p]) - first
			pair := out[2*j : 2*j+2]
			wx := float64(weight * x)
			pair[0] += wx
			pair[1] += float64(wx * x)
			if size := math.Abs(x); size > top[j] {
				top[j] = size
			}
		}
	}
}

// sparseMeans computes means and deviations from the sums, and decides which columns take a
// second pass.
func (s *survey) sparseMeans(ctx *comqueue.ComContext, sums []float64) error {
	s.twice = nil
	for j := range s.mean {
		mean, square := sums[2*j]/s.facts.Weight, sums[2*j+1]/s.facts.Weight
		if !finite(mean) {
			return s.overflow(j)
		}
		variance := square - float64(mean*mean)
		s.mean[j], s.deviation[j] = mean, math.Sqrt(max(0, variance))
		if float64(mean*mean) <= float64(farMean*variance) {
			continue
		}
		if s.twice == nil {
			s.twice = make([]bool, len(s.mean))
		}
		s.twice[j] = true
		s.high[j], s.low[j] = math.Inf(-1), math.Inf(1)
	}
	columnSpread.Put(ctx, nil)
	if s.twice != nil {
		columnSpread.Put(ctx, make([]float64, 3*len(s.mean)))
	}
	return nil
}

// spreadEntries is the second pass. For each of its columns it adds Σ weight·(x−mean), Σ
// weight·(x−mean)² and Σ weight to out, side by side, over the rows that have the column. It
// notes the extremes.
func (s *survey) spreadEntries(b *Block, out []float64) {
	lo, hi := s.space.declaredRange(s.window.Lo, s.window.Hi)
	first := int32(s.window.Lo)
	for i := range b.N {
		weight := 1.0
		if b.Weight != nil {
			weight = b.Weight[i]
		}
		if weight == 0 {
			continue
		}
		col, val := b.Sparse.Row(i)
		col, val = within(col, val, lo, hi)
		for p, x := range val {
			j := s.space.number(col[p]) - first
			if !s.twice[j] {
				continue
			}
			t := x - s.mean[j]
			wt := float64(weight * t)
			sums := out[3*j : 3*j+3]
			sums[0] += wt
			sums[1] += float64(wt * t)
			sums[2] += weight
			s.high[j], s.low[j] = max(s.high[j], x), min(s.low[j], x)
		}
	}
}

// statisticsWithAbsent is statistics for a column that took a second pass. It counts the rows
// without the column as zeros.
func (s *survey) statisticsWithAbsent(j int, sums []float64, high, low float64) (mean, std, top float64) {
	rest, squares := sums[0], sums[1]
	if absent := s.facts.Weight - sums[2]; absent > 0 {
		at := s.mean[j]
		rest -= float64(absent * at)
		squares += float64(float64(absent*at) * at)
		high, low = max(high, 0), min(low, 0)
	}
	return s.statistics(j, rest, squares, high, low)
}
