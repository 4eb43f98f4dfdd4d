package main

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/usage"
	"github.com/superstep-ml/superstep/engine"
)

// peersScript trains with another library and prints an outcome.
//
//go:embed peers.py
var peersScript string

// sparkScript trains with Spark MLlib and prints an outcome.
//
//go:embed spark.py
var sparkScript string

// task is a training with Superstep.
type task struct {
	Dir     string
	Layout  rawrows.Layout
	Threads int
	Trees   int
	Policy  string
	Budget  int64 // memory budget in bytes; 0 selects the default
}

// train adds the training to a job.
func (t task) train(rows *engine.Dataset) *engine.Dataset {
	if t.Policy == inForest {
		return forest.Train(rows, forest.Params{VectorCol: rawrows.VectorColumn, LabelCol: rawrows.LabelColumn, Task: forest.Classification,
			NumTrees: t.Trees, MaxDepth: -1, Seed: 1})
	}
	p := gbdt.Params{VectorCol: rawrows.VectorColumn, LabelCol: rawrows.LabelColumn, Objective: gbdt.Logistic, AbsentIsZero: t.Layout.Sparse(),
		NumTrees: t.Trees, MaxDepth: 6, NoTrainMetrics: true}
	if t.Policy == byLeaf {
		p.GrowPolicy, p.MaxDepth, p.MaxLeaves = gbdt.LossGuide, -1, 255
	}
	return gbdt.Train(rows, p)
}

// run trains, predicts all rows, and measures the model on the test rows.
func (t task) run() (outcome, error) {
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows, err := rawrows.Dataset(b, t.Dir, t.Layout)
		if err == nil {
			engine.Collect(t.train(rows), "model")
		}
		return err
	})
	before, err := usage.PeakRSS()
	if err != nil {
		before = 0 // unknown on this system
	}
	began := time.Now()
	options := []engine.Option{engine.Parallelism(t.Threads)}
	if t.Budget > 0 {
		options = append(options, engine.MemoryBudget(t.Budget), engine.SpillDir(t.Dir))
	}
	result, err := engine.Run(context.Background(), job, struct{}{}, options...)
	if err != nil {
		return outcome{}, err
	}
	defer result.Release()
	out := outcome{Train: time.Since(began).Seconds()}
	if peak, err := usage.PeakRSS(); err == nil && t.Budget == 0 { // with a budget, the peak would include mapped files
		width := int64(t.Layout.Width())
		if t.Layout.Sparse() {
			width += width / 2 // for the indices
		}
		out.Peak = peak - before - 8*int64(t.Layout.Rows)*(width+1)
	}
	predict, err := predictor(result, t)
	if err != nil {
		return outcome{}, err
	}
	rows, err := readTable(t.Dir, t.Layout)
	if err != nil {
		return outcome{}, err
	}
	began = time.Now()
	predict(rows)
	out.Predict = time.Since(began).Seconds()
	other := t.Layout
	other.Rows = max(1, t.Layout.Rows/10)
	if rows, err = readTable(filepath.Join(t.Dir, testDir), other); err != nil {
		return outcome{}, err
	}
	report, err := evaluate.MeasureBinary(rows.Labels, predict(rows), nil, evaluate.BinaryOptions{})
	if err != nil {
		return outcome{}, err
	}
	out.LogLoss, out.AUC = report.LogLoss, report.AUC
	return out, nil
}

// predictor returns a function that computes the probability of class 1 for each row of a
// table.
func predictor(result *engine.Result, t task) (func(x *table) []float64, error) {
	margins := func(e *tree.Ensemble, absent tree.Absent, x *table) []float64 {
		s, out := e.Scorer(), make([]float64, x.Rows*e.Outputs)
		if x.Sparse() {
			s.Sparse(tree.CSR{RowPtr: x.starts, Col: x.Indices, Val: x.Values}, absent, out, t.Threads)
		} else {
			s.Dense(x.Values, x.Rows, out, t.Threads)
		}
		return out
	}
	if t.Policy == inForest {
		m, err := forest.ModelOf(result, "model")
		if err != nil {
			return nil, err
		}
		return func(x *table) []float64 {
			shares := margins(m.Trees, tree.AbsentIsMissing, x)
			p := make([]float64, x.Rows)
			for i := range p {
				p[i] = shares[2*i+1]
			}
			return p
		}, nil
	}
	m, err := gbdt.ModelOf(result, "model")
	if err != nil {
		return nil, err
	}
	if m.Columns != nil {
		return nil, fmt.Errorf("the model is over %d of the columns alone", len(m.Columns))
	}
	return func(x *table) []float64 {
		absent := tree.AbsentIsMissing
		if m.AbsentIsZero {
			absent = tree.AbsentIsZero
		}
		p := margins(m.Ensemble, absent, x)
		for i, v := range p {
			p[i] = 1 / (1 + math.Exp(-v))
		}
		return p
	}, nil
}

// table has rows in memory.
type table struct {
	*rawrows.Table
	starts []int64 // for sparse rows: the index of each row's first value, as in tree.CSR.RowPtr
}

// readTable reads the files of a table.
func readTable(dir string, l rawrows.Layout) (*table, error) {
	rows, err := rawrows.Read(dir, l)
	x := &table{Table: rows}
	for i := 0; l.Sparse() && i <= l.Rows; i++ {
		x.starts = append(x.starts, int64(i*l.PerRow))
	}
	return x, err
}
