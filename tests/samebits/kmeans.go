package main

import (
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// cluster trains k-means on points and predicts their clusters. It collects the model under a
// name and writes the predictions to a file.
func (e *env) cluster(b *engine.Builder, name string, points *engine.Dataset, p kmeans.Params) {
	model := kmeans.Train(points, p)
	engine.Collect(model, modelPrefix+name)
	predicted := kmeans.Predict(points, model, kmeans.PredictOptions{VectorCol: p.VectorCol, NonFinite: p.NonFinite})
	operators.WriteCSV(predicted, e.Out+"/"+name+".csv", operators.CSVWriteOptions{})
}

// irisClusters clusters the bundled iris data.
func irisClusters(b *engine.Builder, e *env) error {
	rows := operators.ReadCSV(b, e.Iris, operators.CSVOptions{
		Header: true, TrimSpace: true,
		Names: []string{"sepal_length", "sepal_width", "petal_length", "petal_width", "species"},
	})
	points := operators.Vectorize(rows, "features", "sepal_length", "sepal_width", "petal_length", "petal_width")
	e.cluster(b, "parallel", points, kmeans.Params{VectorCol: "features", K: 3})
	e.cluster(b, "plus-plus", points, kmeans.Params{VectorCol: "features", K: 4, Init: kmeans.KMeansPlusPlus})
	e.cluster(b, "random-cosine", points, kmeans.Params{VectorCol: "features", K: 5, Init: kmeans.Random, Distance: kmeans.Cosine})
	return nil
}

// point is a row of generated data. The values of Any and Other have magnitudes from 1e-8 to
// 1e16. The values of Tiny are about 1e-8, the values of Noise about 1e14, and the values of
// Huge about 1e15.
type point struct {
	Any, Tiny, Huge, Noise, Other float64
	Weight                        float64
}

// makePoint draws row i. Tiny and Huge indicate one of nine groups.
func (e *env) makePoint(draws sharding.Random, i int64) point {
	if i%1009 == 0 {
		e.pause(30, int(i))
	}
	group := float64(draws.IntN(9))
	return point{
		Any:    wide(&draws),
		Tiny:   float64(group*1e-8) + float64(draws.NormFloat64()*1e-9),
		Huge:   float64(group*1e15) + float64(draws.NormFloat64()*1e14),
		Noise:  draws.NormFloat64() * 1e14,
		Other:  wide(&draws),
		Weight: 0.25 + draws.Float64(),
	}
}

// wideClusters clusters 100,000 generated rows, whose components have magnitudes from 1e-8 to
// 1e16.
func wideClusters(b *engine.Builder, e *env) error {
	rows := operators.Generate(b, 100_000, e.makePoint)
	points := operators.Vectorize(rows, "features", "any", "tiny", "huge", "noise", "other")
	common := kmeans.Params{VectorCol: "features", K: 9, MaxIter: 6}
	parallel, plus := common, common
	parallel.WeightCol = "weight"
	plus.Init = kmeans.KMeansPlusPlus
	e.cluster(b, "parallel", points, parallel)
	e.cluster(b, "plus-plus", points, plus)
	return nil
}

// files reads sparse vectors, clusters them, and writes rows in every format.
func files(b *engine.Builder, e *env) error {
	rows := operators.ReadLibSVM(b, e.Heart, operators.LibSVMOptions{})
	p := kmeans.Params{VectorCol: "features", K: 3, MaxIter: 8}
	model := kmeans.Train(rows, p)
	engine.Collect(model, modelPrefix+"sparse")
	predicted := operators.Rebalance(kmeans.Predict(rows, model, kmeans.PredictOptions{}))
	operators.WriteArrow(predicted, e.Out+"/one.arrow", operators.ArrowWriteOptions{})
	operators.WriteArrow(predicted, e.Out+"/arrow", operators.ArrowWriteOptions{PerShard: true})
	operators.WriteCSV(predicted, e.Out+"/csv", operators.CSVWriteOptions{PerShard: true})
	return nil
}

// clusterings adds further variants of clustering: single precision, bisecting k-means,
// mini-batches, and k-means with so many centres that distance bounds are stored for groups of
// centres.
func clusterings(b *engine.Builder, e *env) error {
	rows := operators.Generate(b, samples, e.makeSample)
	points := operators.Vectorize(rows, "features", "any", "tiny", "huge", "unit", "other")
	plain := kmeans.Params{VectorCol: "features", WeightCol: "weight", K: 4, MaxIter: 5}
	single, many := plain, plain
	single.Precision = kmeans.Single
	many.K, many.Init = 48, kmeans.Random
	bisecting, batches := plain, plain
	batches.MaxIter = 12
	for _, s := range []struct {
		name  string
		stage model.Stage
	}{
		{"single", single},
		{"many", many},
		{"bisecting", kmeans.BisectingParams{Params: bisecting, Trials: 2}},
		{"batches", kmeans.MiniBatchParams{Params: batches, BatchSize: 200}},
	} {
		e.train(b, s.name, points, s.stage, "cluster", "distance")
	}
	return nil
}
