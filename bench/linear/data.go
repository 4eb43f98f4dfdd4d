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
	Even bool // every feature of sparse rows is as likely as any other
}

// generate writes the files of a problem. A row depends only on the seed and its number.
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

// columns draws the columns of a row, ascending. Column j of sparse rows is drawn roughly in
// proportion to (j+1)^(−2/3), as words occur in a text; with Even, all columns are equally
// likely.
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

// scale is the standard deviation of a dense column, from 0.1 to 3.
func (s shape) scale(j int) float64 {
	return 0.1 * math.Pow(30, float64(j)/float64(max(1, s.Features-1)))
}
