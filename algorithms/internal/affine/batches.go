package affine

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// fill computes the margins of a batch without offsets, and notes the rows that have none.
func (p *applied) fill(first int, rows arrow.Record, n int) error {
	if p.columns != nil {
		if err := p.join(rows, n); err != nil {
			return err
		}
		if err := p.checkDense(first, p.x, n, true); err != nil {
			return err
		}
		p.dense(p.x, n)
		return nil
	}
	column := rows.Column(p.vector)
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
	if sparse, ok := column.(*array.Struct); ok {
		return p.sparse(first, sparse, n)
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

// dense multiplies n rows. The kernels give each row the bits of kernel.Dot.
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

// sparse goes through sparse rows.
func (p *applied) sparse(first int, column *array.Struct, n int) error {
	k := p.m.Margins()
	indices, values := column.Field(0).(*array.List), column.Field(1).(*array.List)
	allCol, allVal := indices.ListValues().(*array.Int32).Int32Values(), values.ListValues().(*array.Float64).Float64Values()
	for i := range n {
		if !p.valid[i] {
			continue
		}
		lo, hi := indices.ValueOffsets(i)
		from, to := values.ValueOffsets(i)
		col, val := allCol[lo:hi], allVal[from:to]
		if problem := p.m.badSparse(col, val); problem != "" {
			return &engine.RowError{Row: int64(first + i), Err: fmt.Errorf("column %q %s", p.names[0], problem)}
		}
		for q, v := range val {
			if finite(v) {
				continue
			}
			if !p.a.Skip {
				return refuse(first+i, fmt.Sprintf("column %q: component %d", p.names[0], col[q]), v)
			}
			p.valid[i] = false
		}
		p.m.SparseMarginsTo(col, val, p.margins[i*k:(i+1)*k])
	}
	return nil
}

// checkDense refuses rows that hold a NaN or an infinity, or leaves them out.
func (p *applied) checkDense(first int, x []float64, n int, joined bool) error {
	d := p.m.Dim
	for i := range n {
		if !p.valid[i] {
			continue
		}
		row := x[i*d : (i+1)*d]
		var sum float64 // of v−v: NaN if any is NaN or infinite
		for _, v := range row {
			sum += v - v
		}
		if sum == 0 {
			continue
		}
		p.valid[i] = false
		if p.a.Skip {
			continue
		}
		for j, v := range row {
			if !finite(v) {
				where := fmt.Sprintf("column %q: component %d", p.names[0], j)
				if joined {
					where = p.component(j)
				}
				return refuse(first+i, where, v)
			}
		}
	}
	return nil
}

// component names a component of joined columns.
func (p *applied) component(j int) string {
	if len(p.names) == p.m.Dim {
		return fmt.Sprintf("column %q", p.names[j])
	}
	return fmt.Sprintf("feature %d", j)
}

// join writes the columns of numbers, and of vectors of a fixed size, to p.x row by row.
func (p *applied) join(rows arrow.Record, n int) error {
	d := p.m.Dim
	p.x = grow(p.x, n*d)
	at := 0
	for q, i := range p.columns {
		column := rows.Column(i)
		width := max(1, batch.VectorDim(column.DataType()))
		var value func(i int) float64
		if list, ok := column.(*array.FixedSizeList); ok {
			items, err := numbersOf(list.ListValues())
			if err != nil {
				return fmt.Errorf("column %q: %w", p.names[q], err)
			}
			from := list.Offset() * width
			value = func(i int) float64 { return items(from + i) }
		} else {
			var err error
			if value, err = numbersOf(column); err != nil {
				return fmt.Errorf("column %q: %w", p.names[q], err)
			}
		}
		for row := range n {
			if column.IsNull(row) {
				p.valid[row] = false
				for j := range width {
					p.x[row*d+at+j] = 0
				}
				continue
			}
			for j := range width {
				p.x[row*d+at+j] = value(row*width + j)
			}
		}
		at += width
	}
	return nil
}

// widen copies vectors that are not fixed in size, or have single precision, to p.x.
func (p *applied) widen(first int, column arrow.Array, n int) error {
	d := p.m.Dim
	p.x = grow(p.x, n*d)
	var bounds func(i int) (int, int)
	var items arrow.Array
	switch a := column.(type) {
	case *array.FixedSizeList:
		width, from := batch.VectorDim(a.DataType()), a.Offset()
		bounds = func(i int) (int, int) { return (from + i) * width, (from + i + 1) * width }
		items = a.ListValues()
	case *array.List:
		bounds = func(i int) (int, int) { lo, hi := a.ValueOffsets(i); return int(lo), int(hi) }
		items = a.ListValues()
	default:
		return fmt.Errorf("column %q is %s, which cannot be read", p.names[0], batch.TypeName(column.DataType()))
	}
	value, err := numbersOf(items)
	if err != nil {
		return fmt.Errorf("column %q: %w", p.names[0], err)
	}
	for i := range n {
		if !p.valid[i] {
			clear(p.x[i*d : (i+1)*d])
			continue
		}
		lo, hi := bounds(i)
		if hi-lo != d {
			return &engine.RowError{Row: int64(first + i), Err: fmt.Errorf("column %q has %d components, the model was trained on %d", p.names[0], hi-lo, d)}
		}
		for j := range d {
			p.x[i*d+j] = value(lo + j)
		}
	}
	return nil
}

// isNumber says that a column is of numbers or bools.
func isNumber(dt arrow.DataType) bool {
	return arrow.IsInteger(dt.ID()) || dt.ID() == arrow.FLOAT64 || dt.ID() == arrow.FLOAT32 || dt.ID() == arrow.BOOL
}

// numbersOf returns what reads a column of numbers or bools.
func numbersOf(column arrow.Array) (func(i int) float64, error) {
	switch a := column.(type) {
	case *array.Float64:
		return valuesOf(a.Float64Values()), nil
	case *array.Float32:
		return valuesOf(a.Float32Values()), nil
	case *array.Int64:
		return valuesOf(a.Int64Values()), nil
	case *array.Int32:
		return valuesOf(a.Int32Values()), nil
	case *array.Int16:
		return valuesOf(a.Int16Values()), nil
	case *array.Int8:
		return valuesOf(a.Int8Values()), nil
	case *array.Uint64:
		return valuesOf(a.Uint64Values()), nil
	case *array.Uint32:
		return valuesOf(a.Uint32Values()), nil
	case *array.Uint16:
		return valuesOf(a.Uint16Values()), nil
	case *array.Uint8:
		return valuesOf(a.Uint8Values()), nil
	case *array.Boolean:
		return func(i int) float64 {
			if a.Value(i) {
				return 1
			}
			return 0
		}, nil
	}
	return nil, fmt.Errorf("it is %s, not a number", batch.TypeName(column.DataType()))
}

func valuesOf[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64](values []T) func(i int) float64 {
	return func(i int) float64 { return float64(values[i]) }
}
