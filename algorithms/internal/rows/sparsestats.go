package rows

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// For sparse rows, one pass gives the means and standard deviations of nearly all columns. The
// variance is computed as the mean of the squares minus the square of the mean. The difference
// loses digits if the mean is large compared with the deviation. But the mean of a column that
// is absent from many rows is not large: if the column occurs in a fraction p of the rows, the
// square of its mean is at most p/(1−p) times its variance. Only columns whose mean exceeds
// about three times their deviation, such as a column that is 1 in every row, need a second
// pass.

// farMean is the largest ratio of the squared mean to the variance for which the variance is
// computed in one pass. The difference of the two sums then loses about three bits.
const farMean = 8

// sumEntries adds Σ weight·x and Σ weight·x² of column j of the window to out[2·j] and
// out[2·j+1]. It also updates s.high, which has the largest absolute values over the shards of
// the subtask.
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

// sparseMeans computes means and standard deviations from the sums, and decides which columns
// need a second pass.
func (s *survey) sparseMeans(ctx *comqueue.ComContext, sums []float64) error {
	s.twice = nil
	for j := range s.mean {
		mean, square := sums[2*j]/s.facts.Weight, sums[2*j+1]/s.facts.Weight
		if !kernel.Finite(mean) {
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

// spreadEntries is the second pass, for the columns j with s.twice[j]. For each such column,
// three sums over the rows that have the column are added to out[3·j:3·j+3]: Σ weight·(x−mean),
// Σ weight·(x−mean)² and Σ weight. It updates the extremes of the columns.
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

// statisticsWithAbsent does what statistics does, for a sparse column that took a second pass.
// sums has the three sums that spreadEntries computes for the column. Rows without the column
// are treated as rows with 0.
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
