// Command queue trains a logistic regression by gradient descent, written directly on comqueue.
package main

import (
	"embed"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/fixedmath"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

//go:embed data/heart_scale.libsvm
var bundled embed.FS // 270 patients, 13 features, label +1 (ill) or -1

type args struct { // the job's arguments are the program's flags
	Steps int     `help:"Gradient steps." default:"30"`
	Rate  float64 `help:"Learning rate: how far to go along the gradient." default:"0.01"`
	LBFGS bool    `help:"Find the minimum by one call of optim.MinimizeRows instead." name:"lbfgs"`
}

var (
	patients = comqueue.PartitionedRows("patients")
	features = patients.Sparse("features") // names and types are checked when the job is built
	label    = patients.Floats("label")
	weights  = shared.Replicated("weights", shared.Float64s()) // the intercept, then one weight per feature; the same on every subtask
	gradient = shared.Scratch[[]float64]("gradient")           // sums over patients: one derivative per weight, then the loss
)

// slopes adds the gradient and the loss of each patient in one shard to out.
func slopes(ctx *comqueue.ComContext, shard int, out []float64) error {
	x, w := features.Get(ctx, shard), weights.Get(ctx)
	for i, y := range label.Get(ctx, shard) {
		margin := w[0]
		for j := x.Offsets[i]; j < x.Offsets[i+1]; j++ {
			margin += float64(w[x.Indices[j]+1] * x.Values[j]) // the conversion forbids fused multiply-add: same bits everywhere
		}
		slope := float64(-y * fixedmath.Sigmoid(-y*margin))
		out[0] += slope
		for j := x.Offsets[i]; j < x.Offsets[i+1]; j++ {
			out[x.Indices[j]+1] += float64(slope * x.Values[j])
		}
		out[len(w)] += fixedmath.Softplus(-y * margin)
	}
	return nil
}

// train is the job. In each superstep, its queue computes the gradient, sums it over all
// subtasks by an AllReduce, and takes a step against it.
var train = engine.Define("logistic-regression", func(b *engine.Builder, a args) error {
	rows := operators.ReadLibSVM(b, "data/heart_scale.libsvm", operators.LibSVMOptions{FS: bundled})
	n := 1 + operators.VectorSize(rows, "features")
	if a.LBFGS {
		engine.Collect(optim.MinimizeRows(rows, n, logLoss, optim.Settings{}), "minimum")
		return nil
	}
	model := comqueue.New(b, "descent").InitWithPartitionedData(patients, rows).
		Begin(func(ctx *comqueue.ComContext) error { // runs once and creates the state
			weights.Put(ctx, make([]float64, n))
			return nil
		}).
		Init(func(ctx *comqueue.ComContext) error { // runs whenever a subtask joins and allocates scratch
			gradient.Put(ctx, make([]float64, n+1))
			return nil
		}).
		Add(comqueue.ForEachShard(gradient, slopes)).
		Add(comqueue.AllReduce(gradient)). // gives every subtask the sums over all shards
		Add(comqueue.Named("descend", comqueue.Do(func(ctx *comqueue.ComContext) error {
			for j, slope := range gradient.Get(ctx)[:n] {
				weights.Get(ctx)[j] -= float64(a.Rate * slope)
			}
			ctx.Report("loss", gradient.Get(ctx)[n])
			return converging(gradient.Get(ctx)[n], weights.Get(ctx), a.Rate)
		}))).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]float64, error) { return weights.Get(ctx), nil })).
		SetMaxIter(a.Steps).Exec()
	operators.Print(operators.Select(operators.ZipWithIndex(model, "coefficient"), "coefficient", "value"), operators.PrintOptions{})
	return nil
})

func main() { engine.Main(train, engine.AfterRun(report)) }
