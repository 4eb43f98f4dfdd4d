package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/usage"
	"github.com/superstep-ml/superstep/engine"
)

// outcome is the result of a contestant.
type outcome struct {
	// Trace has the objective after each step, with the seconds since the start.
	Trace []point `json:"trace"`
	// Total is the time until the model is complete, in seconds. It is set for Superstep and
	// the loop. Only Superstep's Total, which task.run measures, includes reading the rows.
	Total float64 `json:"total"`
	// Survey is the time spent on statistics of the columns, in seconds. It is set for
	// Superstep and the loop.
	Survey float64 `json:"survey"`
	Reads  float64 `json:"reads"` // number of passes over the rows; 0 if unknown
	Method string  `json:"method"`
	Peak   int64   `json:"peak"` // largest resident size in bytes; 0 if unknown
}

type point struct {
	Seconds   float64 `json:"seconds"`
	Objective float64 `json:"objective"`
}

// until returns the time and the number of steps after which the objective was within tolerance
// of the optimum. ok is false if the objective never was.
func (o outcome) until(optimum float64) (seconds float64, steps int, ok bool) {
	for i, p := range o.Trace {
		if p.Objective <= optimum+tolerance*abs(optimum) {
			return p.Seconds, i, true
		}
	}
	return 0, 0, false
}

// tolerance is the relative distance from the optimum at which the clock stops.
const tolerance = 1e-6

func abs(v float64) float64 { return max(v, -v) }

// task is a training with Superstep.
type task struct {
	Dir      string
	Shape    shape
	L1, L2   float64
	Parallel int
	Method   optim.Method
}

// run trains with algorithms/logistic. The stopping tolerances of the training are so small that
// the objective always comes within the constant tolerance of the optimum first.
func (t task) run() (outcome, error) {
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows, err := rawrows.Dataset(b, t.Dir, t.Shape.Layout)
		if err != nil {
			return err
		}
		engine.Collect(logistic.Train(rows, logistic.Params{
			VectorCol: rawrows.VectorColumn, LabelCol: rawrows.LabelColumn, L1: t.L1, L2: t.L2, NoIntercept: true, NoStandardize: true,
			Method: t.Method, Tol: 1e-8, LossTol: 1e-10, MaxIter: 500,
		}), "model")
		return nil
	})
	began := time.Now()
	result, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(t.Parallel))
	if err != nil {
		return outcome{}, err
	}
	defer result.Release()
	out := outcome{Total: time.Since(began).Seconds()}
	m, err := logistic.ModelOf(result, "model")
	if err != nil {
		return outcome{}, err
	}
	survey := result.Queue("logistic.Train facts")
	times := optim.StepCosts(result, "logistic")
	if survey == nil || len(times) < len(m.Summary.Record) {
		return outcome{}, fmt.Errorf("the run has no times of its supersteps")
	}
	out.Survey = survey.Elapsed.Seconds()
	passed := out.Survey
	for i, r := range m.Summary.Record {
		passed += times[i].Elapsed.Seconds()
		out.Trace = append(out.Trace, point{passed, r.Loss})
	}
	out.Reads, out.Method = m.Summary.Reads, m.Summary.Method
	if out.Peak, err = usage.PeakRSS(); err != nil {
		out.Peak = 0 // unknown on this system
	}
	return out, nil
}

// sklearnScript trains with scikit-learn and prints an outcome.
//
//go:embed scikit.py
var sklearnScript string

// sparkScript trains with Spark MLlib and prints an outcome.
//
//go:embed spark.py
var sparkScript string

// sparkSolver is the line.Solver of Spark MLlib.
const sparkSolver = "spark"
