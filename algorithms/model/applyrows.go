package model

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// RowApplication describes the operator by which a model that computes single rows is applied
// in a job.
type RowApplication struct {
	// Op is the name of the operator in plans and messages.
	Op string
	// Attrs are the attributes of the operator in the plan.
	Attrs []engine.Attr
	// Outputs are the columns that are added. If Replace is set, an output replaces an existing
	// column of the same name. Otherwise such a column is an error.
	Outputs []engine.Column
	Replace bool
	// Skips is set if the Step may leave rows out. The number of a row in its shard of the
	// output may then differ from its number in the shard of the input.
	Skips bool
	// Decode decodes the model's file. It is called once for each subtask.
	Decode func(file []byte) (Binder, error)
}

// ApplyRows adds the operator that receives a model by broadcast and runs its Step on every
// row. The columns have the same bits as the cells that the Step computes. Rows keep their
// shards and their order; rows that the Step leaves out are dropped. Errors are reported as by
// Apply.
func ApplyRows(caller string, rows, model *engine.Dataset, a RowApplication) *engine.Dataset {
	return addOperator(caller, rows, model, a.Op, a.Attrs, a.Outputs, a.Replace, !a.Skips, func(c columnAdder) engine.Operator {
		return &rowwise{columnAdder: c, a: a}
	})
}

// rowwise is the operator that ApplyRows adds.
type rowwise struct {
	columnAdder
	a      RowApplication
	step   Step
	reader *Reader
	writer *writer
	row    []Cell
	kept   []int32
}

// Open decodes the model and binds it to the columns of the rows.
func (p *rowwise) Open(c *engine.Context) error {
	file, err := Side(c, 1)
	if err != nil {
		return err
	}
	binder, err := p.a.Decode(file)
	if err != nil {
		return err
	}
	layout := &Layout{}
	for _, f := range p.input.Columns() {
		layout.Add(f.Name)
	}
	if p.step, err = binder.Bind(layout); err != nil {
		return err
	}
	var cells []int
	for _, f := range p.a.Outputs {
		cell := layout.index(f.Name)
		if cell < 0 {
			return fmt.Errorf("the model computes no column %q", f.Name)
		}
		cells = append(cells, cell)
		layout.read[cell] = true
	}
	if p.reader, err = NewReader(p.input, layout); err != nil {
		return err
	}
	p.row = layout.NewRow()
	p.writer, err = newWriter(c.Allocator, p.a.Outputs, cells)
	return err
}

// Process adds the columns to a batch.
func (p *rowwise) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	n := int(rows.NumRows())
	p.reader.Reset(in)
	p.kept = p.kept[:0]
	for i := range n {
		p.reader.Read(i, p.row)
		err := p.step(p.row)
		if err == nil {
			err = p.writer.append(p.row)
		}
		switch {
		case err == nil:
			p.kept = append(p.kept, int32(i))
		case !errors.Is(err, ErrSkip):
			return RowError(p.rows+i, err)
		}
	}
	if left := n - len(p.kept); left > 0 {
		c.Count("rows skipped", int64(left))
	}
	p.rows += n
	columns, err := p.writer.columns()
	if err != nil {
		return err
	}
	kept := rows
	if len(p.kept) < n {
		if kept, err = batch.Take(c.Allocator, rows, p.kept); err != nil {
			for _, c := range columns {
				c.Release()
			}
			return err
		}
		defer kept.Release()
	}
	made, err := join(p.schema, p.at, kept, columns)
	if err != nil {
		return fmt.Errorf("%s: %w", p.a.Op, err)
	}
	defer made.Release()
	if made.NumRows() == 0 {
		return nil
	}
	return out.Emit(shard, arrowrows.Batch(made))
}

// Close releases the memory of unfinished columns.
func (p *rowwise) Close() error {
	if p.writer != nil {
		p.writer.release()
	}
	return nil
}
