package operators

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
)

// reads returns the use of an operator that reads the columns of a schema, and passes on none.
func reads(columns *arrow.Schema) engine.ColumnUse {
	use := engine.ColumnUse{Some: true}
	for _, f := range columns.Fields() {
		use.Reads = append(use.Reads, f.Name)
	}
	return use
}

// keeps returns the use of an operator that passes on all columns of a dataset, as the first
// columns that it emits. It also reads the named ones.
func keeps(d *engine.Dataset, read ...string) engine.ColumnUse {
	use := engine.ColumnUse{Some: true, Reads: read}
	if usable(d) {
		for i := range d.Schema().Len() {
			use.Passes = append(use.Passes, i)
		}
	}
	return use
}

// replacing returns the use, except that the operator makes column `at` itself and does not pass
// it on.
func replacing(use engine.ColumnUse, at int) engine.ColumnUse {
	if at < len(use.Passes) {
		use.Passes[at] = -1
	}
	return use
}
