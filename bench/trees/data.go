package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// testDir is the name of the folder of test rows, within the folder of training rows.
const testDir = "test"

// generate writes a table. A row depends only on the seed, the purpose and the number of the
// row.
func generate(dir string, l rawrows.Layout, seed uint64, purpose string) (err error) {
	out, err := rawrows.Create(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	columns, values, full := make([]int, l.Width()), make([]float64, l.Width()), make([]float64, l.Features)
	for i := range l.Rows {
		draw := sharding.NewRandom(seed, "bench/trees "+purpose, 0, i)
		drawColumns(&draw, l, columns)
		clear(full)
		for k, j := range columns {
			values[k] = drawValue(&draw, l, j)
			full[j] = values[k]
			if l.Sparse() {
				out.Index(j)
			}
			out.Value(values[k])
		}
		y := 0.0
		if draw.Float64() < 1/(1+math.Exp(-margin(l, full))) {
			y = 1
		}
		out.Label(y)
	}
	return nil
}

// drawColumns draws the columns of a row, in ascending order. In sparse rows, columns with low
// numbers are more frequent.
func drawColumns(draw *sharding.Random, l rawrows.Layout, columns []int) {
	for p := range columns {
		columns[p] = p
		for l.Sparse() {
			u := draw.Float64()
			columns[p] = int(float64(l.Features) * u * u)
			if !slices.Contains(columns[:p], columns[p]) {
				break
			}
		}
	}
	slices.Sort(columns)
}

// drawValue draws a value. The distributions of columns take turns: normal, log-normal, whole
// numbers, and normal but at least −0.5. In sparse rows, every third column has only the value
// 1.
func drawValue(draw *sharding.Random, l rawrows.Layout, j int) float64 {
	x := draw.NormFloat64()
	switch {
	case l.Sparse() && j%3 == 0:
		return 1
	case j%4 == 1:
		return math.Exp(x)
	case j%4 == 2:
		return math.Round(3 * x)
	case j%4 == 3:
		return max(x, -0.5)
	}
	return x
}

// margin returns the true log odds of a row: a sum of linear terms, absolute values, steps,
// sines and products of two columns.
func margin(l rawrows.Layout, x []float64) float64 {
	m := -0.2
	for j := 0; j+5 < len(x) && j < 60; j += 6 {
		m += 0.4*x[j] - 0.15*math.Abs(x[j+2]) + 0.5*math.Sin(2*x[j+3])
		if x[j] > 0.3 && x[j+1] < 1.2 {
			m += 0.8
		}
		m += 0.25 * x[j+4] * max(-2, min(2, x[j+3]))
	}
	if l.Sparse() {
		for j := 60; j < len(x); j++ {
			m += 0.05 * math.Sin(float64(j)) * max(-2, min(2, x[j]))
		}
	}
	return m
}

// prepare writes the training rows and the test rows.
func prepare(dir string, l rawrows.Layout, seed uint64) error {
	test := l
	test.Rows = max(1, l.Rows/10)
	if err := os.MkdirAll(filepath.Join(dir, testDir), 0o755); err != nil {
		return err
	}
	return errors.Join(generate(dir, l, seed, "training"), generate(filepath.Join(dir, testDir), test, seed, "test"))
}
