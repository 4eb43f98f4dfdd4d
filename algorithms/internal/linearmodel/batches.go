package linearmodel

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// fill computes the margins of a batch, without offsets. It sets p.valid[i] to false for rows
// without margins, such as rows with a null.
func (p *applied) fill(first int, rec arrow.Record, n int) error {
	if p.columns != nil {
		p.join(rec, n)
		if err := p.checkDense(first, p.x, n, true); err != nil {
			return err
		}
		p.dense(p.x, n)
		return nil
	}
	column := rec.Column(p.vector)
	for i := range n {
		p.valid[i] = column.IsValid(i)
	}
	if data, _, ok := batch.DenseView(column); ok {
		if err := p.checkDense(first, data, n, false); err != nil {
			return err
		}
		p.dense(data, n)
		return nil
	}
	if rows.LayoutOf(column.DataType()) == rows.SparseRows {
		return p.sparse(first, column, n)
	}
	if err := p.widen(first, column, n); err != nil {
		return err
	}
	if err := p.checkDense(first, p.x, n, false); err != nil {
		return err
	}
	p.dense(p.x, n)
	return nil
}

// dense computes the margins of n dense rows. The kernels give the same bits as kernel.Dot for
// each row.
func (p *applied) dense(x []float64, n int) {
	m := p.m
	k, d := m.Margins(), m.Dim
	if m.Columns != nil || d == 0 {
		for i := range n {
			if p.valid[i] {
				m.MarginsTo(x[i*d:(i+1)*d], p.margins[i*k:(i+1)*k])
			}
		}
		return
	}
	f := m.prepare()
	if k == 1 {
		kernel.DotRows(x, n, d, f.flat, p.margins)
	} else {
		kernel.MulRows(x, n, f.packed, p.margins)
	}
	for i := range n {
		row := p.margins[i*k : (i+1)*k]
		for a, intercept := range m.Intercepts {
			row[a] += intercept
		}
	}
}

// sparse computes the margins of n sparse rows. first is the number of the first row in its
// shard.
func (p *applied) sparse(first int, column arrow.Array, n int) error {
	k := p.m.Margins()
	vectors := batch.VectorsOf(column)
	for i := range n {
		if !p.valid[i] {
			continue
		}
		col, val := vectors.Sparse(i)
		if problem := signature.Sparse(col, val).Problem(p.m.Dim); problem != "" {
			return &engine.RowError{Row: int64(first + i), Err: fmt.Errorf("column %q %s", p.names[0], problem)}
		}
		if q := kernel.NonFinite(val); q >= 0 {
			if !p.o.Skip {
				return refuse(first+i, fmt.Sprintf("column %q: component %d", p.names[0], col[q]), val[q])
			}
			p.valid[i] = false
		}
		p.m.SparseMarginsTo(col, val, p.margins[i*k:(i+1)*k])
	}
	return nil
}

// checkDense returns an error for a row that has a NaN or an infinity. With Skip it sets
// p.valid[i] of such a row to false instead. joined is set if x was joined from several
// columns.
func (p *applied) checkDense(first int, x []float64, n int, joined bool) error {
	d := p.m.Dim
	for i := range n {
		if !p.valid[i] {
			continue
		}
		row := x[i*d : (i+1)*d]
		var sum float64 // sum of v−v over the row, which is NaN if a value v is NaN or infinite
		for _, v := range row {
			sum += v - v
		}
		if sum == 0 {
			continue
		}
		if !p.o.Skip {
			j := kernel.NonFinite(row)
			where := fmt.Sprintf("column %q: component %d", p.names[0], j)
			if joined {
				where = p.component(j)
			}
			return refuse(first+i, where, row[j])
		}
		p.valid[i] = false
	}
	return nil
}

// component returns the name of component j of joined columns, for messages.
func (p *applied) component(j int) string {
	if len(p.names) == p.m.Dim {
		return fmt.Sprintf("column %q", p.names[j])
	}
	return fmt.Sprintf("feature %d", j)
}

// join writes the feature columns, which have numbers or vectors of a fixed size, to p.x row by
// row.
func (p *applied) join(rec arrow.Record, n int) {
	d := p.m.Dim
	p.x = kernel.Sized(p.x, n*d)
	at := 0
	for _, i := range p.columns {
		column := rec.Column(i)
		items, width, from := column, 1, 0
		if list, ok := column.(*array.FixedSizeList); ok {
			items, width = list.ListValues(), batch.VectorDim(column.DataType())
			from = list.Offset() * width
		}
		for row := range n {
			to := p.x[row*d+at : row*d+at+width]
			if column.IsNull(row) {
				p.valid[row] = false
				clear(to)
				continue
			}
			for j := range to {
				to[j] = rows.NumberAt(items, from+row*width+j)
			}
		}
		at += width
	}
}

// widen copies vectors of variable length, or of float32, to p.x.
func (p *applied) widen(first int, column arrow.Array, n int) error {
	d := p.m.Dim
	p.x = kernel.Sized(p.x, n*d)
	vectors := batch.VectorsOf(column)
	for i := range n {
		if !p.valid[i] {
			clear(p.x[i*d : (i+1)*d])
			continue
		}
		row := vectors.Dense(i)
		if len(row) != d {
			return &engine.RowError{Row: int64(first + i), Err: fmt.Errorf("column %q has %d components, the model was trained on %d", p.names[0], len(row), d)}
		}
		copy(p.x[i*d:], row)
	}
	return nil
}
