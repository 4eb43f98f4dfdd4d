package kmeans

import (
	"errors"
	"fmt"
)

var (
	errNoRows       = errors.New("there are no rows to cluster")
	errNoUsableRows = errors.New("there are no rows to cluster: the input is empty, or every row was skipped because its vector is null or not finite")
	errNoComponents = errors.New("the vectors have no components")
)

// noWeight returns the error for rows whose weights are all 0.
func (p Params) noWeight() error {
	return fmt.Errorf("every weight in column %q is 0: at least K rows need a positive one", p.WeightCol)
}

// overflow returns the error for numbers that overflow the precision.
func (p Params) overflow() error {
	if p.Precision == Single {
		return fmt.Errorf("sums or squared distances over column %q exceed the range of float32: scale the features down, or use double precision", p.VectorCol)
	}
	if p.WeightCol != "" {
		return fmt.Errorf("sums over column %q, weighed by column %q, exceed the range of float64: scale the features or the weights down", p.VectorCol, p.WeightCol)
	}
	return fmt.Errorf("sums over column %q exceed the range of float64: scale the features down", p.VectorCol)
}

// tooNear is a part of error messages. It says when different points are treated as one point:
// when the squares of their differences are below the smallest float64.
const tooNear = " (points less than about 1e-160 apart count as one: scale such features up)"

// tooFewPoints returns the error for a K that is greater than the number of distinct points.
// With cosine, it counts distinct directions.
func (p Params) tooFewPoints(distinct int, cosine bool) error {
	kind := "distinct points"
	switch {
	case cosine && distinct == 1:
		kind = "distinct direction"
	case cosine:
		kind = "distinct directions"
	case distinct == 1:
		kind = "distinct point"
	}
	if p.Precision == Single {
		return fmt.Errorf("%d clusters are more than the %d %s of positive weight that float32 tells apart: lower K, or use double precision", p.K, distinct, kind)
	}
	return fmt.Errorf("%d clusters are more than the %d %s of positive weight: lower K%s", p.K, distinct, kind, tooNear)
}
