package objective_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Example fits a price as a linear function of a size by least squares. All linear models are
// trained with the calls shown here.
func Example() {
	type house struct {
		Size, Price float64
	}
	job := engine.Define("prices", func(b *engine.Builder, _ struct{}) error {
		houses := operators.FromSlice(b, []house{{50, 110}, {80, 170}, {100, 210}, {120, 250}})
		table, err := rows.Check("prices", houses, rows.Columns{Features: []string{"size"}, Label: "price"}, rows.NumberLabel)
		if err != nil {
			return err
		}
		linear := objective.Linear{Table: table, Loss: objective.Squared{}}
		engine.Collect(optim.Minimize(b, optim.Problem{
			Name: "prices", Init: table.Init, Objective: linear,
			Closer: comqueue.Output(func(ctx *comqueue.ComContext) ([]string, error) {
				facts, err := table.FactsOf(ctx)
				if err != nil {
					return nil, err
				}
				c, err := linear.Coefficients(facts, optim.ResultOf(ctx).Parameters)
				return []string{fmt.Sprintf("price = %.3f·size + %.3f", c.Weights[0], c.Intercepts[0])}, err
			}),
		}), "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(2))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	model, err := engine.Rows[string](result, "model")
	fmt.Println(model, err)
	// Output: [price = 2.000·size + 10.000] <nil>
}
