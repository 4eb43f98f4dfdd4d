package operators

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
)

// reads says that an operator looks at the columns of a schema, and hands on none.
func reads(columns *arrow.Schema) engine.ColumnUse {
	use := engine.ColumnUse{Some: true}
	for _, f := range columns.Fields() {
		use.Reads = append(use.Reads, f.Name)
	}
	return use
}

// keeps says that an operator hands on all columns of a dataset, which come first among those
// that it emits, and looks at the named ones besides.
func keeps(d *engine.Dataset, read ...string) engine.ColumnUse {
	use := engine.ColumnUse{Some: true, Reads: read}
	if usable(d) {
		for i := range d.Schema().Len() {
			use.Passes = append(use.Passes, i)
		}
	}
	return use
}

// instead says that an operator makes one of the columns that it would hand on itself.
func instead(use engine.ColumnUse, at int) engine.ColumnUse {
	if at < len(use.Passes) {
		use.Passes[at] = -1
	}
	return use
}
