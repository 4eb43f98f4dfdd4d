package operators

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Rename renames a column: from is the old name, and to is the new name. The column keeps its
// index and values.
func Rename(d *engine.Dataset, from, to string) *engine.Dataset {
	const op = "Rename"
	b := builderOf(op, d)
	if !usable(d) {
		return b.Poisoned(op)
	}
	i, ok := findColumn(op, d, from)
	if !ok || from != to && !newColumnName(op, d, to) {
		return b.Poisoned(op)
	}
	fields := arrowrows.Arrow(d.Schema()).Fields()
	fields[i].Name = to
	return addProjection(engine.Spec{
		Op:       op,
		Attrs:    []engine.Attr{{Key: "from", Value: from}, {Key: "to", Value: to}},
		Schema:   arrowrows.Schema(arrow.NewSchema(fields, nil)),
		Inputs:   []engine.Port{{From: d}},
		RowByRow: true,
	}, nil)
}
