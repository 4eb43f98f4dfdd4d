package kmeans

import (
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Train clusters the rows of points and returns the model as a dataset of one row, whose column
// "model" has the bytes of Model.Encode. The dataset can be collected and read with ModelOf, or
// passed to Predict.
//
// The queue is named "kmeans" and reports "inertia" and "movement" for every superstep. Errors
// about the parameters, or about the columns that they name, are reported when the job is
// built, with the caller's line.
func Train(points *engine.Dataset, p Params) *engine.Dataset {
	return trainBy("kmeans.Train", points, p, p.Validate(), true, firstCenters)
}

// trainBy adds a training that starts from the centres that the function centers returns. If
// the parameter on is false, Lloyd's algorithm only evaluates these centres. problem is an
// error in the parameters, or nil.
func trainBy(op string, points *engine.Dataset, p Params, problem error, on bool, centers func(b *engine.Builder, rows *engine.Dataset, in input, p Params) *engine.Dataset) *engine.Dataset {
	b, refused := model.Begin(op, points, problem)
	if refused != nil {
		return refused
	}
	p = p.withDefaults(b.Seed())
	rows, in, err := checkPoints(points, p)
	if err != nil {
		return model.Refuse(b, op, err)
	}
	first := centers(b, rows, in, p)
	if !on {
		p.MaxIter = 0
	}
	return lloyd{in, p}.addQueue(b, rows, first)
}

// centerRow is a row of a dataset of first centres.
type centerRow struct {
	Center []float64 `column:"center"`
	// Updates is the number of updates of the centres so far. Settled is set if no further
	// update is needed. Both are the same in every row.
	Updates int64 `column:"updates"`
	Settled bool  `column:"settled"`
}

// firstCenters returns the dataset of K first centres.
func firstCenters(b *engine.Builder, rows *engine.Dataset, in input, p Params) *engine.Dataset {
	switch p.Init {
	case Given:
		given := make([]centerRow, p.K)
		for i, c := range p.Centers {
			given[i].Center = append([]float64(nil), c...)
		}
		return operators.FromSlice(b, given).Named("given centroids")
	case Random:
		return randomInit{in, p}.addQueue(b, rows)
	case KMeansPlusPlus:
		return plusPlus{in, p}.addQueue(b, rows)
	}
	return parallelInit{in, p}.addQueue(b, rows)
}
