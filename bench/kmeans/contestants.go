package main

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/usage"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// outcome is the result of a contestant.
type outcome struct {
	Pass           float64     `json:"pass"`    // seconds per pass over the rows
	CPU            float64     `json:"cpu"`     // seconds of processor time per pass; 0 if unknown
	Total          float64     `json:"total"`   // seconds from the first byte read to the model
	Peak           int64       `json:"peak"`    // largest resident size of the contestant's process, in bytes; 0 if unknown
	SingleDistance float64     `json:"settled"` // share of rows for which one distance is enough to assign them; for loops only
	Emptied        bool        `json:"emptied"` // whether a cluster became empty; for loops only, which leave it empty
	Inertia        float64     `json:"inertia"`
	Centers        [][]float64 `json:"centers"`
}

// task is the task of a contestant.
type task struct {
	Contestant string // kind of the contestant, one of the constants below
	Threads    int
	Dir        string
	Shape      shape
}

// Kinds of contestants, by their names in tables.
const (
	loopKind    = "loop"
	engineKind  = "engine"
	singleKind  = "engine float32"
	sklearnKind = "scikit-learn"
	elkanKind   = "scikit-learn elkan"
)

// run runs the contestant, which is a loop or the engine, in this process.
func (t task) run() (outcome, error) {
	switch t.Contestant {
	case engineKind:
		return runEngine(t, kmeans.Double)
	case singleKind:
		return runEngine(t, kmeans.Single)
	}
	return runLoop(t)
}

// measure runs a loop or the engine twice in this process, the second time with only one move
// of the centres. The processor time per pass is computed from the difference of the two runs.
// The peak memory is read after the first run.
func (t task) measure() (outcome, error) {
	runtime.GC() // the contestant must not pay for earlier garbage
	began := usage.CPU()
	out, err := t.run()
	if err != nil {
		return out, err
	}
	all := usage.CPU() - began
	if out.Peak, err = usage.PeakRSS(); err != nil {
		out.Peak = 0 // unknown on this system
	}
	fewer := t
	if fewer.Shape.Moves = 1; t.Shape.Moves == 1 {
		return out, nil
	}
	runtime.GC()
	began = usage.CPU()
	if _, err := fewer.run(); err != nil {
		return out, err
	}
	out.CPU = (all - (usage.CPU() - began)).Seconds() / float64(t.Shape.Moves-1)
	return out, nil
}

// runEngine trains with algorithms/kmeans.
func runEngine(t task, precision kmeans.Precision) (outcome, error) {
	first, err := firstRows(t.Dir, t.Shape)
	if err != nil {
		return outcome{}, err
	}
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows, err := rawrows.Dataset(b, t.Dir, t.Shape.layout())
		if err != nil {
			return err
		}
		engine.Collect(kmeans.Train(rows, kmeans.Params{
			VectorCol: rawrows.VectorColumn, Init: kmeans.Given, Centers: asRows(first, t.Shape.Features), MaxIter: t.Shape.Moves, Tol: -1, Precision: precision,
		}), "model")
		return nil
	})
	began := time.Now()
	result, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(t.Threads))
	if err != nil {
		return outcome{}, err
	}
	defer result.Release()
	model, err := kmeans.ModelOf(result, "model")
	if err != nil {
		return outcome{}, err
	}
	total := time.Since(began)
	queue := result.Queue("kmeans")
	if queue == nil || queue.Supersteps != t.Shape.passes() {
		return outcome{}, fmt.Errorf("the engine did not make %d supersteps: the centres settled before, or a cluster was empty; give more rows, more noise or fewer iterations", t.Shape.passes())
	}
	return outcome{
		Pass: queue.Elapsed.Seconds() / float64(queue.Supersteps), Total: total.Seconds(),
		Inertia: model.Inertia, Centers: model.Centers,
	}, nil
}

// runLoop does the same work as runEngine, but without the engine.
func runLoop(t task) (outcome, error) {
	s := t.Shape
	began := time.Now()
	rows, err := rawrows.Read(t.Dir, s.layout())
	if err != nil {
		return outcome{}, err
	}
	x := rows.Values
	assign, means, last := make([]int32, s.Rows), append([]float64(nil), x[:s.Clusters*s.Features]...), make([]float64, s.Clusters*s.Features)
	pass := onePass(s)
	if t.Threads > 1 {
		pass = splitPass(s, t.Threads)
	}
	ready := time.Now()
	var inertia float64
	var emptied bool
	for range s.passes() {
		copy(last, means)
		var empty bool
		inertia, empty = pass(x, assign, means)
		emptied = emptied || empty
	}
	done := time.Now()
	return outcome{
		Pass: done.Sub(ready).Seconds() / float64(s.passes()), Total: done.Sub(began).Seconds(),
		SingleDistance: singleDistanceShare(x, s, last, assign), Emptied: emptied, Inertia: inertia, Centers: asRows(last, s.Features),
	}, nil
}

// passFunc assigns each row to the nearest of the means, and then sets each of the means to the
// mean of its cluster. It returns the inertia, and whether a cluster was empty.
type passFunc func(x []float64, assign []int32, means []float64) (inertia float64, empty bool)

// onePass returns a pass of the plain loop over all rows with one accumulator.
func onePass(s shape) passFunc {
	nearest := kernel.NewAssigner[float64](s.Clusters, s.Features)
	return func(x []float64, assign []int32, means []float64) (float64, bool) {
		nearest.Set(means)
		sums := make([]float64, s.Clusters*(s.Features+1))
		inertia := nearest.Accumulate(x, s.Rows, nil, assign, sums, 0)
		return inertia, divide(sums, s, means)
	}
}

// splitPass returns a pass of the plain loop that divides the rows equally among goroutines.
func splitPass(s shape, threads int) passFunc {
	var nearest []*kernel.Assigner[float64]
	for range threads {
		nearest = append(nearest, kernel.NewAssigner[float64](s.Clusters, s.Features))
	}
	return func(x []float64, assign []int32, means []float64) (float64, bool) {
		sums, inertia := make([][]float64, threads), make([]float64, threads)
		var all sync.WaitGroup
		for t := range threads {
			all.Go(func() {
				lo, hi := t*s.Rows/threads, (t+1)*s.Rows/threads
				own := make([]float64, s.Clusters*(s.Features+1))
				nearest[t].Set(means)
				inertia[t] = nearest[t].Accumulate(x[lo*s.Features:hi*s.Features], hi-lo, nil, assign[lo:hi], own, 0)
				sums[t] = own
			})
		}
		all.Wait()
		for t := 1; t < threads; t++ {
			inertia[0] += inertia[t]
			for i, v := range sums[t] {
				sums[0][i] += v
			}
		}
		return inertia[0], divide(sums[0], s, means)
	}
}

// divide sets means to the mean of each cluster that has rows, and returns true if a cluster
// has no rows.
func divide(sums []float64, s shape, means []float64) (empty bool) {
	d := s.Features
	for a := range s.Clusters {
		own := sums[a*(d+1) : (a+1)*(d+1)]
		if own[d] == 0 {
			empty = true
			continue
		}
		for j, v := range own[:d] {
			means[a*d+j] = v / own[d]
		}
	}
	return empty
}

// singleDistanceShare returns the share of rows whose distance to their centre is less than
// half the distance from that centre to the nearest other centre. For such rows no other
// distance is needed, because no other centre can be nearer.
func singleDistanceShare(x []float64, s shape, centers []float64, assign []int32) float64 {
	d := s.Features
	reach := make([]float64, s.Clusters)
	for a := range reach {
		for b := range s.Clusters {
			h := kernel.SquaredDistance(centers[a*d:(a+1)*d], centers[b*d:(b+1)*d]) / 4
			if b != a && (reach[a] == 0 || h < reach[a]) {
				reach[a] = h
			}
		}
	}
	n := 0
	for i, a := range assign {
		if kernel.SquaredDistance(x[i*d:(i+1)*d], centers[int(a)*d:int(a+1)*d]) < reach[a] {
			n++
		}
	}
	return float64(n) / float64(s.Rows)
}

// asRows returns the rows of a row-major matrix with d columns. The rows share the memory of m.
func asRows(m []float64, d int) [][]float64 {
	rows := make([][]float64, len(m)/d)
	for i := range rows {
		rows[i] = m[i*d : (i+1)*d]
	}
	return rows
}

// sklearnScript trains with scikit-learn and prints an outcome.
//
//go:embed sklearn.py
var sklearnScript string
