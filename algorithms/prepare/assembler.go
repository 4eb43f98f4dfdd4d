package prepare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Form is the form in which a VectorAssembler writes vectors.
type Form int

const (
	// Automatic means Sparse if at least one of the columns is sparse, and otherwise Dense.
	Automatic Form = iota
	// Dense vectors have all components.
	Dense
	// Sparse vectors have only the components that are not zero.
	Sparse
)

var forms = enum.Names[Form]{Type: "Form", What: "form", Names: []string{"automatic", "dense", "sparse"}}

// String returns "automatic", "dense" or "sparse".
func (f Form) String() string { return forms.String(f) }

// MarshalText implements encoding.TextMarshaler.
func (f Form) MarshalText() ([]byte, error) { return forms.Text(f) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (f *Form) UnmarshalText(text []byte) error { return forms.Parse(f, text) }

// VectorAssembler combines columns of numbers, bools and vectors into one vector column. The
// components come in the order of Columns. If the type of a vector column has no size, Fit
// learns the size from the rows.
type VectorAssembler struct {
	// Columns are the columns to combine. Required.
	Columns []string `json:"columns"`
	// Output names the vector column; empty means "features".
	Output string `json:"output,omitempty"`
	// Form says whether the vectors are dense or sparse.
	Form Form `json:"form"`
	// Unknown says what happens to nulls. Keep makes their components NaN.
	Unknown Unknown `json:"unknown"`
	// NullMissing makes the vector null if any of the columns is null or has a NaN, whatever
	// Unknown says.
	NullMissing bool `json:"null_missing,omitempty"`
}

// Kind returns "vector-assembler".
func (VectorAssembler) Kind() string { return "vector-assembler" }

const defaultFeatures = "features"

func (p VectorAssembler) output() string { return cmp.Or(p.Output, defaultFeatures) }

// Validate returns everything that is wrong with the parameters.
func (p VectorAssembler) Validate() error {
	errs := []error{checkNames(p.Columns, nil), checkEnum(p.Form), checkEnum(p.Unknown), p.Unknown.encoders()}
	return errors.Join(errs...)
}

// form reports whether the output vectors are sparse, and returns their number of components.
// size is 0 if the type of a column does not give the size of the column.
func (p VectorAssembler) form(fields []arrow.Field) (sparse bool, size int) {
	sparse = p.Form == Sparse
	open := false
	for _, f := range fields {
		sparse = sparse || p.Form == Automatic && kindOf(f.Type) == sparseColumns
		n := sizeOfType(f.Type)
		open = open || n == 0
		size += n
	}
	if open {
		size = 0
	}
	return sparse, size
}

// sizeOfType returns the number of components of a column of type dt, or 0 if the type does not
// give that number.
func sizeOfType(dt arrow.DataType) int {
	if batch.IsVector(dt) {
		return batch.VectorDim(dt)
	}
	return 1
}

func (p VectorAssembler) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	fields, err := find(schema, p.Columns, numberColumns|vectorColumns, "numbers, bools or vectors")
	if err != nil {
		return nil, err
	}
	sparse, size := p.form(fields)
	dt, err := vectorType(sparse, size)
	return []arrow.Field{{Name: p.output(), Type: dt, Nullable: p.NullMissing}}, err
}

// vectorType returns the type of vectors with size components. If size is 0, the type has no
// size.
func vectorType(sparse bool, size int) (arrow.DataType, error) {
	switch {
	case sparse:
		return batch.SparseType(size)
	case size == 0:
		return batch.VariableVectorType(), nil
	}
	return batch.VectorType(size)
}

// Fit learns the sizes of the vector columns whose types do not give a size.
func (p VectorAssembler) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		fields, _ := find(arrowrows.Arrow(rows.Schema()), p.Columns, numberColumns|vectorColumns, "") // fit has checked them
		m := AssemblerModel{Params: p}
		m.Sparse, _ = p.form(fields)
		return learnSizes(p, rows, fields, func(f *facts, inputs []model.Input) (preparation, error) {
			made := m
			made.Learned, made.Sizes = Learned{p.Kind(), inputs, f.Rows}, f.Size
			return &made, nil
		})
	})
}

// learnSizes returns the dataset of a model that depends only on the sizes of columns. It reads
// rows only if a type does not give the size of its column. A column may have vectors of 0
// components if another column has components: OneHotEncoder with DropLast makes such vectors
// for a column with a single value.
func learnSizes(p parameters, rows *engine.Dataset, fields []arrow.Field, finish func(f *facts, inputs []model.Input) (preparation, error)) *engine.Dataset {
	known := &facts{}
	var columns []string
	open := false
	for _, field := range fields {
		columns = append(columns, field.Name)
		known.Size = append(known.Size, sizeOfType(field.Type))
		open = open || sizeOfType(field.Type) == 0
	}
	if open {
		return survey{name: p.Kind(), lax: true, columns: columns, finish: func(_ context.Context, f *facts, inputs []model.Input) (model.Model, error) {
			for c := range f.Size {
				if f.Present[c] == 0 || f.Dim == 0 {
					return nil, fmt.Errorf("column %q has no components in any row", columns[c])
				}
			}
			return finish(f, inputs)
		}}.add(rows)
	}
	b := rows.Builder()
	m, err := finish(known, knownInputs(arrowrows.Arrow(rows.Schema()), columns))
	if err != nil {
		return model.Refuse(b, callerOf(p), err)
	}
	return model.Dataset(b, m)
}

// Apply adds the vectors to rows.
func (p VectorAssembler) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// AssemblerModel is what a VectorAssembler learned.
type AssemblerModel struct {
	Learned `json:"-"`
	Params  VectorAssembler `json:"params"`
	Sizes   []int           `json:"sizes"`  // number of components of each column
	Sparse  bool            `json:"sparse"` // whether the output vectors are sparse
}

// Size returns the number of components of the output vectors.
func (m *AssemblerModel) Size() int {
	size := 0
	for _, n := range m.Sizes {
		size += n
	}
	return size
}

// Encode returns the model's file.
func (m *AssemblerModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the vectors to rows.
func (m *AssemblerModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *AssemblerModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	fields, err := m.Params.outputs(schema)
	if err != nil {
		return nil, err
	}
	if _, sparse := fields[0].Type.(*arrow.StructType); sparse != m.Sparse {
		return nil, fmt.Errorf("some columns are sparse that were dense in training, or the other way round: set Form")
	}
	return fields, nil
}

func (m *AssemblerModel) check() error {
	if err := m.Params.Validate(); err != nil {
		return err
	}
	if len(m.Sizes) != len(m.Params.Columns) {
		return fmt.Errorf("there are %d columns and %d sizes", len(m.Params.Columns), len(m.Sizes))
	}
	size := 0
	for i, n := range m.Sizes {
		if n < 0 || n > batch.MaxDim-size {
			return fmt.Errorf("column %q has %d components", m.Params.Columns[i], n)
		}
		size += n
	}
	if size == 0 {
		return errors.New("the columns have no components")
	}
	return nil
}

// Bind implements model.Binder.
func (m *AssemblerModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Params.Columns, []string{m.Params.output()})
	if err != nil {
		return nil, err
	}
	size := m.Size()
	return func(row []model.Cell) error {
		to, n := &row[out[0]], 0
		for i := range in {
			c := &row[in[i]]
			if err := checkSize(c, m.Sizes[i]); err != nil {
				return columnError(m.Params.Columns[i], err)
			}
			if m.Params.NullMissing && lacking(c) {
				to.SetNull()
				return nil
			}
			if c.Kind == model.NullCell && m.Params.Unknown == Skip {
				return model.ErrSkip
			} else if c.Kind == model.NullCell && m.Params.Unknown == Refuse {
				return unknownValue(m.Params.Columns[i], c)
			}
			n += entries(c, m.Sizes[i])
		}
		if m.Sparse {
			indices, values := to.MakeSparse(size, n)
			at, k := 0, 0
			for i := range in {
				k += putSparse(&row[in[i]], at, m.Sizes[i], indices[k:], values[k:])
				at += m.Sizes[i]
			}
			return nil
		}
		values := to.MakeDense(size)
		for i := range in {
			putDense(&row[in[i]], values[:m.Sizes[i]])
			values = values[m.Sizes[i]:]
		}
		return nil
	}, nil
}

// lacking reports whether a cell is null or has a NaN.
func lacking(c *model.Cell) bool {
	switch c.Kind {
	case model.NullCell:
		return true
	case model.DenseCell, model.SparseCell:
		return slices.ContainsFunc(c.Values, math.IsNaN)
	}
	v, ok := c.Number()
	return ok && v != v
}

// checkSize checks that a cell has n components, unless it is null.
func checkSize(c *model.Cell, n int) error {
	switch c.Kind {
	case model.NullCell:
	case model.DenseCell:
		if len(c.Values) != n {
			return fmt.Errorf("it has %d components, the model was trained on %d", len(c.Values), n)
		}
	case model.SparseCell:
		return c.CheckSparse(n)
	default:
		if _, ok := c.Number(); !ok || n != 1 {
			return fmt.Errorf("it is %s, the model was trained on another type", c.Kind)
		}
	}
	return nil
}

// entries returns the number of components of a cell that are not zero. For a sparse vector it
// returns the number of listed entries, even if some of them are zero.
func entries(c *model.Cell, size int) int {
	n := 0
	switch c.Kind {
	case model.NullCell:
		return size
	case model.SparseCell:
		return len(c.Indices)
	case model.DenseCell:
		for _, v := range c.Values {
			if v != 0 {
				n++
			}
		}
	default:
		if v, _ := c.Number(); v != 0 {
			n = 1
		}
	}
	return n
}

// putSparse writes the entries of a cell to indices and values and returns their number.
// Component i of the cell gets the index at+i.
func putSparse(c *model.Cell, at, size int, indices []int32, values []float64) int {
	n := 0
	put := func(j int, v float64) {
		indices[n], values[n] = int32(at+j), v
		n++
	}
	switch c.Kind {
	case model.NullCell:
		for j := range size {
			put(j, nan())
		}
	case model.SparseCell:
		for k, j := range c.Indices {
			put(int(j), c.Values[k])
		}
	case model.DenseCell:
		for j, v := range c.Values {
			if v != 0 {
				put(j, v)
			}
		}
	default:
		if v, _ := c.Number(); v != 0 {
			put(0, v)
		}
	}
	return n
}

// putDense writes the components of a cell to the slice to.
func putDense(c *model.Cell, to []float64) {
	switch c.Kind {
	case model.NullCell:
		for j := range to {
			to[j] = nan()
		}
	case model.DenseCell:
		copy(to, c.Values)
	case model.SparseCell:
		clear(to)
		for k, j := range c.Indices {
			to[j] = c.Values[k]
		}
	default:
		to[0], _ = c.Number()
	}
}
