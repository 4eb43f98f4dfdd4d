package prepare

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// FeatureHasher computes one sparse vector of a fixed size from the columns of a row. It learns
// nothing from rows. A number is added to the component that the hash of its column's name
// selects. For any other value, 1 is added to the component that the hash of column name and
// value selects. One bit of the hash decides whether the value is added or subtracted, so that
// on average collisions cancel out (Weinberger, Dasgupta, Langford, Smola and Attenberg,
// Feature hashing for large scale multitask learning, ICML 2009). Null and NaN add nothing.
//
// The hash is the 64-bit xxh3 of the value's text (see model.Cell.Category), or of the empty
// text for numbers. The seed of that hash is the xxh3 of the column's name. The lowest bit of
// the hash gives the sign. The other bits, modulo Size, give the component.
type FeatureHasher struct {
	// Columns are columns of numbers, bools, text and dates. Required.
	Columns []string `json:"columns"`
	// Output names the vector column; empty means "features".
	Output string `json:"output,omitempty"`
	// Size is the number of components; 0 means 262,144.
	Size int `json:"size,omitempty"`
	// Categories lists the number columns whose values are hashed as categories. Bools, text
	// and dates are always hashed as categories.
	Categories []string `json:"categories,omitempty"`
	// Unsigned makes every sign positive, so that nothing is subtracted.
	Unsigned bool `json:"unsigned,omitempty"`
}

const defaultHashSize = 1 << 18

// Kind returns "feature-hasher".
func (FeatureHasher) Kind() string { return "feature-hasher" }

func (p FeatureHasher) size() int {
	if p.Size == 0 {
		return defaultHashSize
	}
	return p.Size
}

func (p FeatureHasher) output() string { return cmp.Or(p.Output, defaultFeatures) }

// Validate returns everything that is wrong with the parameters.
func (p FeatureHasher) Validate() error {
	errs := []error{checkNames(p.Columns, nil), unique("Categories", p.Categories)}
	if p.Size < 0 || p.Size > batch.MaxDim {
		errs = append(errs, fmt.Errorf("Size is %d: want 1 to %d, or 0 for %d", p.Size, batch.MaxDim, defaultHashSize))
	}
	for _, name := range p.Categories {
		if !slices.Contains(p.Columns, name) {
			errs = append(errs, wrong("Categories has %q, which is not among Columns", name))
		}
	}
	return errors.Join(errs...)
}

func (p FeatureHasher) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	if _, err := find(schema, p.Columns, scalarColumns, "numbers, bools, text or dates"); err != nil {
		return nil, err
	}
	dt, err := batch.SparseType(p.size())
	return []arrow.Field{{Name: p.output(), Type: dt}}, err
}

// Fit returns the model. It reads no rows.
func (p FeatureHasher) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		m := &HasherModel{Learned: Learned{kind: p.Kind(), inputs: knownInputs(arrowrows.Arrow(rows.Schema()), p.Columns)}, Params: p}
		return model.Dataset(rows.Builder(), m)
	})
}

// Apply adds the vectors to rows.
func (p FeatureHasher) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// HasherModel is a FeatureHasher together with the types of its columns.
type HasherModel struct {
	Learned `json:"-"`
	Params  FeatureHasher `json:"params"`
}

// Encode returns the model's file.
func (m *HasherModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the vectors to rows.
func (m *HasherModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *HasherModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return m.Params.outputs(schema)
}

func (m *HasherModel) check() error {
	if len(m.inputs) != len(m.Params.Columns) {
		return fmt.Errorf("there are %d columns and %d inputs", len(m.Params.Columns), len(m.inputs))
	}
	return m.Params.Validate()
}

// numeric returns, for each column, whether its values are added as numbers.
func (m *HasherModel) numeric() []bool {
	made := make([]bool, len(m.inputs))
	for i, in := range m.inputs {
		dt, err := batch.ParseType(in.Type)
		made[i] = err == nil && kindOf(dt) == numberColumns && dt.ID() != arrow.BOOL && !slices.Contains(m.Params.Categories, in.Column)
	}
	return made
}

// Bind implements model.Binder.
func (m *HasherModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Params.Columns, []string{m.Params.output()})
	if err != nil {
		return nil, err
	}
	numeric, size := m.numeric(), m.Params.size()
	seeds := make([]uint64, len(in))
	for i, name := range m.Params.Columns {
		seeds[i] = xxh3.HashString(name)
	}
	return func(row []model.Cell) error {
		indices, values := row[out[0]].MakeSparse(size, len(in))
		n := 0
		for i := range in {
			c := &row[in[i]]
			text, ok := categoryOf(c)
			add := 1.0
			switch {
			case c.Kind == model.NullCell || c.Kind == model.FloatCell && !ok:
				continue
			case !ok:
				return columnError(m.Params.Columns[i], fmt.Errorf("it is %s: want a number, a bool, text or a date", c.Kind))
			case numeric[i]:
				if add, ok = c.Number(); !ok {
					return columnError(m.Params.Columns[i], fmt.Errorf("it is %s: want a number", c.Kind))
				}
				text = nil
			}
			hash := xxh3.HashSeed(text, seeds[i])
			if hash&1 != 0 && !m.Params.Unsigned {
				add = -add
			}
			n = insert(indices, values, n, int32((hash>>1)%uint64(size)), add)
		}
		// Drop components that are 0 because values cancelled out.
		kept := 0
		for k := range n {
			if values[k] != 0 {
				indices[kept], values[kept] = indices[k], values[k]
				kept++
			}
		}
		row[out[0]].SetSparse(size, indices[:kept], values[:kept])
		return nil
	}, nil
}

// insert adds v to the entry of the given index, or inserts an entry. The first n entries are
// in use, in ascending order of their indices. insert returns the new number of entries.
func insert(indices []int32, values []float64, n int, index int32, v float64) int {
	at, found := slices.BinarySearch(indices[:n], index)
	if found {
		values[at] += v
		return n
	}
	copy(indices[at+1:n+1], indices[at:n])
	copy(values[at+1:n+1], values[at:n])
	indices[at], values[at] = index, v
	return n + 1
}
