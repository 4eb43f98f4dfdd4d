package rows

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// statRows is how many rows the statistics of dense features take at a time. So few rows stay
// in the cache while one column after the other is summed.
const statRows = 64

// ones returns weights of 1.
func ones() (one [statRows]float64) {
	for i := range one {
		one[i] = 1
	}
	return one
}

// sumColumns adds Σ weight·x of each column of the window to out. For sparse rows it adds Σ
// weight·x and Σ weight·x² column by column; see sparsestats.go.
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

// means divides the sums of the window by the weight. The deviations of most sparse columns
// follow from these sums too.
func means(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	sums := columnSums.Get(ctx)
	if s.table.layout == SparseRows {
		return s.sparseMeans(ctx, sums)
	}
	for j := range s.mean {
		s.mean[j] = sums[j] / s.facts.Weight
		if !finite(s.mean[j]) {
			return s.overflow(j)
		}
	}
	return nil
}

// leastSize is the least absolute value whose square is a normal number. If all values of a
// column that is not constant are smaller, its deviation has few bits left, or none.
const leastSize = 0x1p-511

// named returns the user's name for a column of the window.
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

// overflow returns the error for a column whose statistics exceed float64.
func (s *survey) overflow(at int) error {
	name := s.named(at)
	if s.facts.Weight > manyWeights*float64(s.facts.Rows) {
		return fmt.Errorf("%s: the weights in column %q are so large, %v in all, that weighted sums exceed float64: scale them down", name, s.table.columns.Weight, s.facts.Weight)
	}
	return fmt.Errorf("%s: the values are so large that their mean or spread exceeds float64: scale them down", name)
}

// spreadColumns adds Σ weight·(x−mean) of each column of the window to out, and after these Σ
// weight·(x−mean)² of each. It notes the extremes.
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

// spreadRow is spreadColumns for one dense row.
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

// extremes writes the largest values and the negatives of the smallest ones. They were taken
// over all shards of the subtask together, since the order does not matter. So they go into the
// buffer of the first node of the tree that asks for them, and into no other.
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

// extremesOfShard is never called, since extremes folds all shards.
func extremesOfShard(*comqueue.ComContext, int, []float64) error { return nil }

// note makes the statistics of the window and begins the next one.
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
		if !finite(mean) || !finite(std) {
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

// constantSpread is the largest ratio of deviation to largest absolute value of a column that
// counts as constant: its values differ by rounding alone.
const constantSpread = 0x1p-49

// statistics returns mean, deviation and largest absolute value of column j of the
// window from its sums over all rows.
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
