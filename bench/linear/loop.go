package main

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/superstep-ml/superstep/bench/internal/usage"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// loopSolver is the line.Solver of the hand-written loop.
const loopSolver = "loop"

// loopTask is a training without the engine. A programmer who has the kernels, and who knows
// the method of package optim, would write it. All rows are in one block in memory with one
// accumulator, and one goroutine processes them.
type loopTask struct {
	Dir   string
	Shape shape
	L2    float64
}

// run trains until an iteration lowers the objective by at most a relative 1e-10. The clock
// starts with the survey of the columns.
func (t loopTask) run() (outcome, error) {
	raw, err := readRows(t.Dir, t.Shape.Layout)
	if err != nil {
		return outcome{}, err
	}
	runtime.GC() // so that the time of the loop does not include collecting garbage from reading
	began := time.Now()
	l, err := newLoop(raw, t.L2)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{Method: "LBFGS", Survey: time.Since(began).Seconds()}
	l.minimise(func(value float64) bool {
		n := len(out.Trace)
		out.Trace = append(out.Trace, point{time.Since(began).Seconds(), value})
		return n == 0 || n < 500 && out.Trace[n-1].Objective-value > 1e-10*abs(value)
	})
	out.Total, out.Reads = time.Since(began).Seconds(), l.reads
	if out.Peak, err = usage.PeakRSS(); err != nil {
		out.Peak = 0 // unknown on this system
	}
	return out, nil
}

// block has rows one after the other, dense or sparse.
type block struct {
	n, d   int
	dense  []float64 // n×d
	sparse kernel.CSR
	minus  []float64 // sign of the margin in the loss: -1 for rows with the higher label, 1 for rows with the lower label
}

// newBlock returns rows in the layout of the kernels. The labels may be any two numbers.
func newBlock(r rawRows) (block, error) {
	b := block{n: len(r.Labels), d: r.Features, minus: make([]float64, len(r.Labels))}
	lower, higher := r.Labels[0], r.Labels[0]
	for _, y := range r.Labels {
		if y < lower {
			lower = y
		}
		if y > higher {
			higher = y
		}
	}
	middle := lower/2 + higher/2
	for i, y := range r.Labels {
		// No branch depends on the class, because the processor would mispredict such a branch
		// half of the time.
		if (y-lower)*(higher-y) != 0 || lower == higher {
			return b, fmt.Errorf("row %d: the label %v beside %v and %v: want two classes", i, y, lower, higher)
		}
		b.minus[i] = math.Copysign(1, middle-y)
	}
	if r.Indices == nil {
		b.dense = r.Values
		return b, nil
	}
	from := make([]int64, b.n+1)
	for i := range from {
		from[i] = int64(i * r.PerRow)
	}
	b.sparse = kernel.CSR{RowPtr: from, Col: r.Indices, Val: r.Values}.Checked(b.d)
	return b, nil
}

// cut returns the rows [lo, hi). They share the memory of b.
func (b *block) cut(lo, hi int) block {
	part := block{n: hi - lo, d: b.d, minus: b.minus[lo:hi]}
	if b.dense != nil {
		part.dense = b.dense[lo*b.d : hi*b.d]
	} else {
		part.sparse = b.sparse.Range(lo, hi)
	}
	return part
}

// pick copies some rows into a new block.
func (b *block) pick(rows []int) block {
	part := block{n: len(rows), d: b.d}
	if b.dense == nil {
		part.sparse.RowPtr = []int64{0}
	}
	for _, i := range rows {
		part.minus = append(part.minus, b.minus[i])
		if b.dense != nil {
			part.dense = append(part.dense, b.dense[i*b.d:(i+1)*b.d]...)
			continue
		}
		col, val := b.sparse.Row(i)
		part.sparse.Col, part.sparse.Val = append(part.sparse.Col, col...), append(part.sparse.Val, val...)
		part.sparse.RowPtr = append(part.sparse.RowPtr, int64(len(part.sparse.Col)))
	}
	return part
}

// times writes the products of the rows with w to out.
func (b *block) times(w, out []float64) {
	if b.dense != nil {
		kernel.DotRows(b.dense, b.n, b.d, w, out)
	} else {
		kernel.DotCSR(b.sparse, w, out)
	}
}

// addTo adds to out each row multiplied by its element of coef.
func (b *block) addTo(coef, out []float64) {
	if b.dense != nil {
		kernel.AddScaledRows(b.dense, b.n, b.d, coef, out)
	} else {
		kernel.AddScaledCSR(b.sparse, coef, out)
	}
}

// deviations returns the standard deviations of the columns, and their largest absolute values.
// For dense rows it makes two passes; the second pass has the correction of Chan, Golub and
// LeVeque (1983). For sparse rows it makes one pass, which is exact enough because the means of
// sparse columns are small compared with the deviations.
func (b *block) deviations() (std, top []float64) {
	std, top = make([]float64, b.d), make([]float64, b.d)
	n := float64(b.n)
	if b.dense == nil {
		sums := make([]float64, 2*b.d)
		kernel.AddMomentsCSR(b.sparse, sums, top)
		for j := range std {
			mean := sums[2*j] / n
			std[j] = math.Sqrt(max(0, sums[2*j+1]/n-float64(mean*mean)))
		}
		return std, top
	}
	mean, rest, squares := make([]float64, b.d), make([]float64, b.d), make([]float64, b.d)
	ones := make([]float64, 64)
	for i := range ones {
		ones[i] = 1
	}
	for lo := 0; lo < b.n; lo += len(ones) {
		part := b.cut(lo, min(lo+len(ones), b.n))
		part.addTo(ones[:part.n], mean)
	}
	kernel.Scale(1/n, mean)
	high, low := make([]float64, b.d), make([]float64, b.d)
	for i := range b.n {
		row := b.dense[i*b.d : (i+1)*b.d]
		mean, rest, squares, high, low := mean[:len(row)], rest[:len(row)], squares[:len(row)], high[:len(row)], low[:len(row)]
		for j, x := range row {
			t := x - mean[j]
			rest[j] += t
			squares[j] += float64(t * t)
			if x > high[j] {
				high[j] = x
			}
			if x < low[j] {
				low[j] = x
			}
		}
	}
	for j := range std {
		shift := rest[j] / n
		std[j], top[j] = math.Sqrt(max(0, squares[j]/n-float64(shift*shift))), max(high[j], -low[j])
	}
	return std, top
}

// chunkRows returns the number of rows in a chunk, which is the same as in Superstep. A chunk
// of sparse rows fills most of a first-level cache, and a chunk of dense rows fills a part of a
// second-level cache.
func (b *block) chunkRows() int {
	if b.dense == nil {
		return min(max(36<<10/(12*(len(b.sparse.Val)/b.n+1))&^3, 4), 256)
	}
	return min(max(128<<10/(8*b.d)&^3, 4), 512)
}
