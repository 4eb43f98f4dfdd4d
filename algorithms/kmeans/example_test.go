package kmeans_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Example runs a job that clusters points and gives each point its cluster.
func Example() {
	type point struct {
		Position []float64 `column:"position,dim=2"`
	}
	type clustered struct {
		Position []float64
		Cluster  int64
		Distance float64
	}
	job := engine.Define("towns", func(b *engine.Builder, _ struct{}) error {
		points := operators.FromSlice(b, []point{
			{[]float64{0, 0}}, {[]float64{8, 6}}, {[]float64{0, 2}}, {[]float64{8, 8}},
		})
		model := kmeans.Train(points, kmeans.Params{VectorCol: "position", K: 2, Seed: 1})
		engine.Collect(model, "model")
		engine.Collect(kmeans.Predict(points, model, kmeans.PredictOptions{}), "points")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	model, err := kmeans.ModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("centers", model.Centers, "inertia", model.Inertia)
	rows, err := engine.Rows[clustered](result, "points")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range rows {
		fmt.Println(row.Position, "in cluster", row.Cluster, "at", row.Distance)
	}
	// Output:
	// centers [[8 7] [0 1]] inertia 4
	// [0 0] in cluster 1 at 1
	// [8 6] in cluster 0 at 1
	// [0 2] in cluster 1 at 1
	// [8 8] in cluster 0 at 1
}

// This example shows that a model predicts without a job.
func ExampleModel_Predict() {
	model := &kmeans.Model{
		Centers: [][]float64{{0, 1}, {8, 7}}, Sizes: []float64{2, 2}, Dim: 2,
	}
	cluster, distance := model.Predict([]float64{5, 3})
	fmt.Println(cluster, distance)
	// Output: 1 5
}

// This example trains clusters by repeatedly cutting a cluster in two, as is suitable for many
// clusters. A few updates over all rows then improve the centres.
func ExampleTrainBisecting() {
	type reading struct {
		Values []float64 `column:"values,dim=1"`
	}
	readings := []reading{{[]float64{1}}, {[]float64{2}}, {[]float64{11}}, {[]float64{12}}, {[]float64{21}}, {[]float64{22}}}
	run := func(train func(points *engine.Dataset) *engine.Dataset) *kmeans.Model {
		job := engine.Define("readings", func(b *engine.Builder, _ struct{}) error {
			engine.Collect(train(operators.FromSlice(b, readings)), "model")
			return nil
		})
		result, err := engine.Run(context.Background(), job, struct{}{})
		if err != nil {
			panic(err)
		}
		defer result.Release()
		model, err := kmeans.ModelOf(result, "model")
		if err != nil {
			panic(err)
		}
		return model
	}
	cut := run(func(points *engine.Dataset) *engine.Dataset {
		return kmeans.TrainBisecting(points, kmeans.BisectingParams{Params: kmeans.Params{VectorCol: "values", K: 3, Seed: 1}})
	})
	better := run(func(points *engine.Dataset) *engine.Dataset {
		return kmeans.Train(points, kmeans.Params{VectorCol: "values", Init: kmeans.Given, Centers: cut.Centers})
	})
	fmt.Println(better.Sizes, better.Inertia)
	// Output: [2 2 2] 1.5
}
