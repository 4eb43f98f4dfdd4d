package main

import (
	"errors"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// shape is the size of a problem.
type shape struct {
	rawrows.Layout
	Even bool // whether all features of sparse rows are equally likely to be nonzero
}

// generate writes the files of a problem. A row depends only on the seed and the number of the
// row.
func generate(dir string, s shape, seed uint64) (err error) {
	out, err := rawrows.Create(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	draw := sharding.NewRandom(seed, "bench/linear coefficients", 0, 0)
	truth := make([]float64, s.Features)
	for j := range truth {
		truth[j] = draw.NormFloat64() / math.Sqrt(float64(s.Width()))
		if s.Sparse() {
			truth[j] *= 2
		}
	}
	columns := make([]int, s.Width())
	for i := range s.Rows {
		draw := sharding.NewRandom(seed, "bench/linear rows", 0, i)
		s.columns(&draw, columns)
		var margin float64
		for _, j := range columns {
			x := draw.NormFloat64()
			if s.Sparse() {
				out.Index(j)
			} else {
				x *= s.scale(j)
			}
			margin += x * truth[j]
			out.Value(x)
		}
		y := 0.0
		if draw.Float64() < 1/(1+math.Exp(-margin)) {
			y = 1
		}
		out.Label(y)
	}
	return nil
}

// columns sets columns to the columns of a row, in ascending order. For sparse rows they are
// drawn. The probability of column j is roughly proportional to (j+1)^(−2/3), similar to the
// frequencies of words in a text. With Even, all columns are equally likely.
func (s shape) columns(draw *sharding.Random, columns []int) {
	for p := range columns {
		columns[p] = p
		for s.Sparse() {
			u := draw.Float64()
			if !s.Even {
				u = u * u * u
			}
			columns[p] = int(float64(s.Features) * u)
			if !slices.Contains(columns[:p], columns[p]) {
				break
			}
		}
	}
	slices.Sort(columns)
}

// scale returns the standard deviation of dense column j, from 0.1 for the first column to 3
// for the last.
func (s shape) scale(j int) float64 {
	return 0.1 * math.Pow(30, float64(j)/float64(max(1, s.Features-1)))
}
