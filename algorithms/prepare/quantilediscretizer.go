package prepare

import (
	"context"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// QuantileDiscretizer puts numbers into n buckets with about the same number of rows each. The
// bounds are the quantiles 1/n, 2/n, … (n-1)/n of the values that are not missing. They are
// exact, with linear interpolation. Equal bounds are merged, so there may be fewer than n
// buckets. Buckets are numbered as by Bucketizer.
type QuantileDiscretizer struct {
	// Columns are the columns of numbers. Required.
	Columns []string `json:"columns"`
	// Outputs names the columns of buckets. If Outputs is empty, the columns of buckets replace
	// Columns.
	Outputs []string `json:"outputs,omitempty"`
	// Buckets is the number of buckets, at least 2; 0 means 10.
	Buckets int `json:"buckets,omitempty"`
	// Unknown says what happens to null and NaN. Keep puts them into an additional bucket after
	// the last bucket.
	Unknown Unknown `json:"unknown"`
	// WeightCol names a column of row weights, numbers of 0 or more. A weight says how often
	// its row counts; rows of weight 0 are ignored. If WeightCol is empty, every row counts
	// once.
	WeightCol string `json:"weight_col,omitempty"`
}

// Kind returns "quantile-discretizer".
func (QuantileDiscretizer) Kind() string { return "quantile-discretizer" }

const (
	defaultBuckets = 10
	maxBuckets     = 10_000
)

// Validate returns everything that is wrong with the parameters.
func (p QuantileDiscretizer) Validate() error {
	errs := []error{checkNames(p.Columns, p.Outputs), checkEnum(p.Unknown), p.Unknown.encoders()}
	if p.Buckets != 0 && (p.Buckets < 2 || p.Buckets > maxBuckets) {
		errs = append(errs, wrong("Buckets is %d: want 2 to %d, or 0 for %d", p.Buckets, maxBuckets, defaultBuckets))
	}
	return errors.Join(errs...)
}

func (p QuantileDiscretizer) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return indexFields(schema, p.Columns, p.Outputs, numberColumns, "numbers")
}

// Fit learns the quantiles.
func (p QuantileDiscretizer) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		n := p.Buckets
		if n == 0 {
			n = defaultBuckets
		}
		var wanted []float64
		for i := 1; i < n; i++ {
			wanted = append(wanted, float64(i)/float64(n))
		}
		return survey{
			name: p.Kind(), columns: p.Columns, weight: p.WeightCol,
			passes: append([]pass{moments(p.Columns, make([]bool, len(p.Columns)), nil)}, selection(quantileTargets(wanted))...),
			finish: func(_ context.Context, f *facts, inputs []model.Input) (model.Model, error) {
				m := &BucketModel{Learned: Learned{p.Kind(), inputs, f.Rows}, Columns: p.Columns, Outputs: OutputNames(p.Columns, p.Outputs), Unknown: p.Unknown}
				for c := range p.Columns {
					bounds := make([]float64, len(wanted))
					for i := range wanted {
						bounds[i] = f.quantile(c, i, wanted)
					}
					m.Bounds = append(m.Bounds, increasing(bounds))
				}
				return m, nil
			},
		}.add(rows)
	})
}

// increasing removes bounds that are not greater than the bound before them.
func increasing(bounds []float64) []float64 {
	kept := bounds[:1]
	for _, v := range bounds[1:] {
		if v > kept[len(kept)-1] {
			kept = append(kept, v)
		}
	}
	return kept
}

// Apply adds the columns of buckets to rows.
func (p QuantileDiscretizer) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}
