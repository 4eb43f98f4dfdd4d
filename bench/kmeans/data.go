package main

import (
	"errors"

	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// shape is the size of a problem.
type shape struct {
	Rows     int
	Features int
	Clusters int
	// Components is the number of normal distributions from which the rows are drawn. If it is
	// 0, rows are drawn uniformly from the unit cube and have no clusters.
	Components int
	// Moves is the number of times that the centres are moved. One more pass evaluates the last
	// centres.
	Moves int
}

// bytes returns the size of the rows in bytes.
func (s shape) bytes() int64 { return int64(s.Rows) * int64(s.Features) * 8 }

// passes returns the number of times that all rows are assigned.
func (s shape) passes() int { return s.Moves + 1 }

// layout returns the layout of the files of rows.
func (s shape) layout() rawrows.Layout {
	return rawrows.Layout{Rows: s.Rows, Features: s.Features, Unlabelled: true}
}

// generateRows writes rows drawn from a mixture, or uniform rows if s.Components is 0. noise is
// the standard deviation in each feature. A row depends only on the seed and the index of the
// row.
func generateRows(dir string, s shape, noise float64, seed uint64) (err error) {
	out, err := rawrows.Create(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	draw := sharding.NewRandom(seed, "bench/kmeans components", 0, 0)
	means := make([]float64, s.Components*s.Features)
	for i := range means {
		means[i] = draw.NormFloat64()
	}
	for i := range s.Rows {
		draw := sharding.NewRandom(seed, "bench/kmeans rows", 0, i)
		if s.Components == 0 {
			for range s.Features {
				out.Value(draw.Float64())
			}
			continue
		}
		for _, mean := range means[draw.IntN(s.Components)*s.Features:][:s.Features] {
			out.Value(mean + float64(noise*draw.NormFloat64()))
		}
	}
	return nil
}

// firstRows returns the first k rows, which are the first centres of all contestants.
func firstRows(dir string, s shape) ([]float64, error) {
	l := s.layout()
	l.Rows = s.Clusters
	first, err := rawrows.Read(dir, l)
	return first.Values, err
}
