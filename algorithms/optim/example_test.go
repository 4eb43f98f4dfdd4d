package optim_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// houseRow is a row of the example.
type houseRow struct {
	Size  float64 `column:"size"`
	Price float64 `column:"price"`
}

// leastSquares is an objective in which the price of a house is a linear function of its size.
type leastSquares struct {
	rows  comqueue.PartitionedData
	total float64
}

func (o leastSquares) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	return optim.Evaluator{
		Dim: 2, Weight: o.total,
		PenaltyFactors: []float64{1, 0}, // no penalty on the constant
		Evaluate: func(shard int, v, out []float64) error {
			frame := o.rows.Get(ctx, shard)
			sizes, prices := frame.Floats("size"), frame.Floats("price")
			for i, x := range sizes {
				r := float64(v[0]*x) + v[1] - prices[i]
				out[0] += r * r / 2
				out[1] += float64(r * x)
				out[2] += r
			}
			return nil
		},
	}, nil
}

// fit is the row that the example's Closer returns.
type fit struct {
	Slope    float64 `column:"slope"`
	Constant float64 `column:"constant"`
	Reason   string  `column:"reason"`
}

func ExampleMinimize() {
	job := engine.Define("prices", func(b *engine.Builder, _ struct{}) error {
		rows := comqueue.PartitionedRows("rows")
		houses := operators.FromSlice(b, []houseRow{{1, 5}, {2, 7}, {3, 9}, {4, 11}})
		model := optim.Minimize(b, optim.Problem{
			Name: "least squares",
			Init: func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
				return q.InitWithPartitionedData(rows, houses)
			},
			Objective: leastSquares{rows, 4},
			Settings:  optim.Settings{Tol: 1e-10},
			Closer: comqueue.Output(func(ctx *comqueue.ComContext) ([]fit, error) {
				r := optim.ResultOf(ctx)
				return []fit{{r.Parameters[0], r.Parameters[1], string(r.Reason)}}, nil
			}),
		})
		engine.Collect(model, "model")
		return nil
	})
	r, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Release()
	fits, err := engine.Rows[fit](r, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("price = %.3f·size + %.3f (%s)\n", fits[0].Slope, fits[0].Constant, fits[0].Reason)
	// Output: price = 2.000·size + 3.000 (gradient)
}
