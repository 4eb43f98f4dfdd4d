package operators

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
)

// reads returns the ColumnUse of an operator that reads the given columns and emits no column
// unchanged.
func reads(columns *arrow.Schema) engine.ColumnUse {
	use := engine.ColumnUse{Some: true}
	for _, f := range columns.Fields() {
		use.Reads = append(use.Reads, f.Name)
	}
	return use
}

// keeps returns the ColumnUse of an operator that emits all columns of d unchanged, as its
// first columns, and reads the columns named by read.
func keeps(d *engine.Dataset, read ...string) engine.ColumnUse {
	use := engine.ColumnUse{Some: true, Reads: read}
	if usable(d) {
		for i := range d.Schema().Len() {
			use.Passes = append(use.Passes, i)
		}
	}
	return use
}

// replacing returns use with one change: the operator computes the column with index at instead
// of emitting it unchanged.
func replacing(use engine.ColumnUse, at int) engine.ColumnUse {
	if at < len(use.Passes) {
		use.Passes[at] = -1
	}
	return use
}
