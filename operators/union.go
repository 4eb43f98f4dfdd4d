package operators

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Union concatenates datasets: shard i of the result has the rows of shard i of each dataset,
// in the order of the datasets. Duplicates are kept. The datasets must have the same columns in
// the same order. A column that is nullable in any of them is nullable in the result. A dataset
// may occur more than once.
func Union(first *engine.Dataset, more ...*engine.Dataset) *engine.Dataset {
	const op = "Union"
	all := append([]*engine.Dataset{first}, more...)
	b := builderOf(op, all...)
	ports := make([]engine.Port, len(all))
	for i, d := range all {
		ports[i] = engine.Port{From: d}
		if d == nil {
			b.Errorf("%s: dataset %d is nil", op, i+1)
			return b.Poisoned(op)
		}
	}
	for _, d := range all {
		if d.Poisoned() {
			return b.Poisoned(op)
		}
	}
	fields := arrowrows.Arrow(first.Schema()).Fields()
	for i, d := range more {
		other := arrowrows.Arrow(d.Schema()).Fields()
		for k := range min(len(fields), len(other)) {
			nullable := fields[k].Nullable || other[k].Nullable
			fields[k].Nullable, other[k].Nullable = nullable, nullable
		}
		want, got := arrow.NewSchema(fields, nil), arrow.NewSchema(other, nil)
		if !got.Equal(want) {
			b.Errorf("%s: dataset %d has other columns than dataset 1: %s", op, i+2, columnDifference(want, got))
			return b.Poisoned(op)
		}
	}
	return addProjection(engine.Spec{Op: op, Schema: arrowrows.Schema(arrow.NewSchema(fields, nil)), Inputs: ports}, nil)
}
