package rows

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// statRows is the number of dense rows that are summed at a time. It is small, so that the rows
// stay in the cache while one column after the other is summed.
const statRows = 64

// ones returns weights of 1.
func ones() (one [statRows]float64) {
	for i := range one {
		one[i] = 1
	}
	return one
}

// sumColumns adds Σ weight·x of each column of the window to out. For sparse rows it adds two
// sums per column, Σ weight·x and Σ weight·x²; see sumEntries.
func sumColumns(ctx *comqueue.ComContext, shard int, out []float64) error {
	s := surveyor.Get(ctx)
	b := *s.blocks.at(shard)
	width := s.window.Len()
	if s.table.layout == SparseRows {
		s.sumEntries(b, out)
		return nil
	}
	one := ones()
	for lo := 0; lo < b.N; lo += statRows {
		part := b.Rows(lo, min(lo+statRows, b.N))
		weight := part.Weight
		if weight == nil {
			weight = one[:part.N]
		}
		if width == b.D {
			kernel.AddScaledRows(part.Dense, part.N, b.D, weight, out)
			continue
		}
		for i := range part.N {
			kernel.Axpy(weight[i], part.Dense[i*b.D+s.window.Lo:i*b.D+s.window.Hi], out)
		}
	}
	return nil
}

// means divides the sums of the window by the total weight. For sparse columns it also computes
// the standard deviations from the sums, except for columns that need a second pass.
func means(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	sums := columnSums.Get(ctx)
	if s.table.layout == SparseRows {
		return s.sparseMeans(ctx, sums)
	}
	for j := range s.mean {
		s.mean[j] = sums[j] / s.facts.Weight
		if !kernel.Finite(s.mean[j]) {
			return s.overflow(j)
		}
	}
	return nil
}

// leastSize is the smallest number whose square is a normal float64. If all absolute values of
// a column are smaller, its standard deviation is inaccurate or underflows to 0.
const leastSize = 0x1p-511

// named returns the user's name for the column with index at in the window.
func (s *survey) named(at int) string {
	j := s.window.Lo + at
	if s.facts.Columns != nil {
		j = int(s.facts.Columns[j])
	}
	if j < len(s.table.components) {
		return s.table.components[j]
	}
	return fmt.Sprintf("column %q: component %d", s.table.vector, j)
}

// overflow returns the error for the column with index at in the window, whose statistics
// exceed float64.
func (s *survey) overflow(at int) error {
	name := s.named(at)
	if s.facts.Weight > manyWeights*float64(s.facts.Rows) {
		return fmt.Errorf("%s: the weights in column %q are so large, %v in all, that weighted sums exceed float64: scale them down", name, s.table.columns.Weight, s.facts.Weight)
	}
	return fmt.Errorf("%s: the values are so large that their mean or spread exceeds float64: scale them down", name)
}

// spreadColumns adds Σ weight·(x−mean) of each column of the window to the first half of out,
// and Σ weight·(x−mean)² of each column to the second half. It updates the extremes of the
// columns.
func spreadColumns(ctx *comqueue.ComContext, shard int, out []float64) error {
	s := surveyor.Get(ctx)
	b := *s.blocks.at(shard)
	width := s.window.Len()
	if s.table.layout == SparseRows {
		if len(out) > 0 {
			s.spreadEntries(b, out)
		}
		return nil
	}
	rest, squares := out[:width], out[width:]
	for i := range b.N {
		weight := 1.0
		if b.Weight != nil {
			weight = b.Weight[i]
		}
		if weight > 0 {
			spreadRow(b.Dense[i*b.D+s.window.Lo:i*b.D+s.window.Hi], s.mean, weight, rest, squares, s.high, s.low)
		}
	}
	return nil
}

// spreadRow does for one dense row what spreadColumns does for a shard.
func spreadRow(row, mean []float64, weight float64, rest, squares, high, low []float64) {
	mean, rest, squares = mean[:len(row)], rest[:len(row)], squares[:len(row)]
	high, low = high[:len(row)], low[:len(row)]
	for j, x := range row {
		t := x - mean[j]
		wt := float64(weight * t)
		rest[j] += wt
		squares[j] += float64(wt * t)
		if x > high[j] {
			high[j] = x
		}
		if x < low[j] {
			low[j] = x
		}
	}
}

// extremes writes to out the largest value of each column, followed by the negative of the
// smallest value of each column. These are the extremes over all shards of the subtask, since a
// maximum does not depend on the order. So extremes writes them in the first call, for the
// first range of shards, and writes nothing in later calls.
func extremes(ctx *comqueue.ComContext, _ sharding.Range, out []float64) (bool, error) {
	s := surveyor.Get(ctx)
	if s.handedOver {
		return true, nil
	}
	s.handedOver = true
	for j := range s.high {
		out[j], out[len(s.high)+j] = s.high[j], -s.low[j]
	}
	return true, nil
}

// extremesOfShard is never called, since extremes handles every range of shards.
func extremesOfShard(*comqueue.ComContext, int, []float64) error { return nil }

// note stores the statistics of the window in the facts and begins the next window.
func note(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	spread, extreme := columnSpread.Get(ctx), columnRange.Get(ctx)
	width := s.window.Len()
	for j := range width {
		var mean, std, top float64
		high, low := extreme[j], -extreme[width+j]
		switch {
		case s.table.layout != SparseRows:
			mean, std, top = s.statistics(j, spread[j], spread[width+j], high, low)
		case s.twice != nil && s.twice[j]:
			mean, std, top = s.statisticsWithAbsent(j, spread[3*j:3*j+3], high, low)
		default:
			mean, std, top = s.mean[j], s.deviation[j], high
		}
		if !kernel.Finite(mean) || !kernel.Finite(std) {
			return s.overflow(j)
		}
		if 0 < top && top < leastSize && high != low {
			return fmt.Errorf("%s: the values are so small that their squares underflow: scale them up", s.named(j))
		}
		if ctx.TaskID() == 0 {
			at := s.window.Lo + j
			s.facts.Mean[at], s.facts.Std[at], s.facts.MaxAbs[at] = mean, std, top
		}
	}
	if s.window.Hi >= s.facts.Dim() {
		s.window.Lo = s.facts.Dim()
		return s.facts.keep(ctx)
	}
	s.begin(ctx, s.window.Hi)
	return nil
}

// A column is treated as constant if its standard deviation is at most constantSpread times its
// largest absolute value: its values then differ only by rounding errors.
const constantSpread = 0x1p-49

// statistics returns the mean, the standard deviation and the largest absolute value of column
// j of the window. rest and squares are the sums that spreadColumns computes for the column,
// over all rows; high and low are the extremes of the column.
func (s *survey) statistics(j int, rest, squares, high, low float64) (mean, std, top float64) {
	if high < low { // no row has a weight
		return 0, 0, 0
	}
	top = max(math.Abs(high), math.Abs(low))
	if high == low {
		return high, 0, top
	}
	total, mean := s.facts.Weight, s.mean[j]
	shift := rest / total
	mean += shift
	std = math.Sqrt(max(0, squares/total-float64(shift*shift)))
	if std <= constantSpread*top {
		std = 0
	}
	return mean, std, top
}
