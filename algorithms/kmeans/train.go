package kmeans

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Train clusters the rows of points and returns the model as a dataset of one
// row, whose column "model" holds what Model.Encode returns. Collect it and read
// it with ModelOf, or give it to Predict.
//
// Its queue is named "kmeans" and reports "inertia" and "movement" for every
// superstep. What is wrong with the parameters or with the columns they name is
// reported when the job is built, with the caller's line.
func Train(points *engine.Dataset, p Params) *engine.Dataset {
	const op = "kmeans.Train"
	b := builderOf(op, points)
	if err := p.Validate(); err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	if points.Poisoned() {
		return points
	}
	p = p.withDefaults(b.Seed())
	rows, in, err := checkPoints(points, p)
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	return lloyd{in, p}.addQueue(b, rows, firstCenters(b, rows, in, p))
}

// builderOf returns the builder of a dataset. Where the dataset is nil there is
// no builder to record that with: the job's function ends.
func builderOf(op string, d *engine.Dataset) *engine.Builder {
	if d == nil || d.Builder() == nil {
		panic(engine.Misuse{Err: fmt.Errorf("%s: the dataset is nil", op)})
	}
	d.Builder().MustBuild(op, "dataset")
	return d.Builder()
}

// centerRow is a row of the datasets of first centres.
type centerRow struct {
	Center []float64 `column:"center"`
	// Updates is how often the centres were moved so far, and Settled that it was enough;
	// the same in every row.
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
