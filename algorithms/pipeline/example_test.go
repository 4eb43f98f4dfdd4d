package pipeline_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
)

func Example() {
	p := pipeline.Pipeline{Stages: []model.Stage{
		prepare.Imputer{Columns: []string{"age"}},
		prepare.OneHotEncoder{Columns: []string{"city"}, Unknown: prepare.Zeros},
		prepare.VectorAssembler{Columns: []string{"age", "city"}, Form: prepare.Dense},
	}}
	job := engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(p.Fit(people(b)), "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	m, err := pipeline.ModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := m.Scorer("city", "age")
	if err != nil {
		fmt.Println(err)
		return
	}
	row := s.NewRow()
	for _, city := range []string{"Oslo", "Kyiv", "Lima"} {
		row.Input(0).SetText(city)
		fmt.Println(s.Score(row), row.Cell("features").Values)
	}
	// Output:
	// <nil> [31 0 0 1]
	// <nil> [31 0 1 0]
	// <nil> [31 0 0 0]
}
