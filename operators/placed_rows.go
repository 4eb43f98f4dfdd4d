package operators

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// afterLeft is greater than the place of any left row.
const afterLeft = int64(1) << 62

// placedRows sorts rows by their places. A place is a number. The caller appends the places of
// rows to the field places before it passes the rows to Emit.
type placedRows struct {
	sorter *rowSorter
	schema *arrow.Schema // schema of the rows
	places []int64
}

// newPlacedRows returns an empty placedRows for rows of the schema.
func newPlacedRows(c *engine.Context, schema *arrow.Schema) *placedRows {
	fields := schema.Fields()
	n := len(fields)
	fields = append(fields, arrow.Field{Name: freeName(fields, "place"), Type: arrow.PrimitiveTypes.Int64})
	return &placedRows{schema: schema, sorter: newRowSorter(c, arrow.NewSchema(fields, nil), []batch.SortKey{{Column: n}})}
}

// Emit adds the rows of batch in. Their places have been appended since the last call.
func (s *placedRows) Emit(_ int, in engine.Batch) error {
	rows := arrowrows.Record(in)
	n := int(rows.NumRows())
	err := addNumbered(s.sorter, rows, s.places[:n])
	s.places = append(s.places[:0], s.places[n:]...)
	return err
}

// emit emits the rows in the order of their places.
func (s *placedRows) emit(shard int, out engine.Output) error {
	return s.sorter.each(func(placed arrow.Record) error {
		rows := firstColumns(s.schema, placed)
		defer rows.Release()
		return out.Emit(shard, arrowrows.Batch(rows))
	})
}

func (s *placedRows) close() error { return s.sorter.close() }

// rowPicker gathers rows that are picked one by one from successive batches, and adds them to a
// placedRows in batches.
type rowPicker struct {
	to   *placedRows
	rows arrow.Record // current batch, retained; nil if no row has been picked
	at   []int32
}

// pick picks a row of a borrowed batch, which has at least the columns of the result.
func (p *rowPicker) pick(rows arrow.Record, i int, place int64) error {
	if p.rows != nil && (p.rows != rows || len(p.at) >= p.to.sorter.context.BatchRows) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.rows == nil {
		rows.Retain()
		p.rows = rows
	}
	p.at = append(p.at, int32(i))
	p.to.places = append(p.to.places, place)
	return nil
}

// flush adds the picked rows to the placedRows.
func (p *rowPicker) flush() error {
	if p.rows == nil {
		return nil
	}
	defer p.close()
	rows := firstColumns(p.to.schema, p.rows)
	defer rows.Release()
	return passRows(p.to.sorter.context, rows, p.at, func(part arrow.Record) error { return p.to.Emit(0, arrowrows.Batch(part)) })
}

// close drops the picked rows.
func (p *rowPicker) close() {
	if p.rows != nil {
		p.rows.Release()
		p.rows, p.at = nil, p.at[:0]
	}
}
