package linearmodel

import (
	"fmt"
	"math"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Model is the part that the models of all linear estimators have in common. It must not be
// copied, nor changed after its first prediction. Any number of goroutines may use a Model.
type Model struct {
	// Reads are the columns of the features: one column of vectors, or columns of numbers and
	// vectors of a fixed size, which are joined in this order.
	Reads []model.Input
	// OffsetCol names the column whose value is added to the margin of a row. It is empty if
	// there is no offset.
	OffsetCol string
	// Dim is the number of features.
	Dim int
	// Columns are the indices of the features that have coefficients, in ascending order; nil
	// means all features. If there are very many features, those that do not occur in the
	// training rows have no coefficients and do not influence predictions.
	Columns []int32
	// Coefficients[a] has the coefficients of margin a: one for each feature, or one for each
	// of Columns. They are for unscaled features.
	Coefficients [][]float64
	// Intercepts has a value for each margin. The values are 0 if the model has no intercept.
	Intercepts []float64
	// Summary describes the training.
	Summary Summary

	once sync.Once
	fast layout
}

// layout has the coefficients in the form that predictions use.
type layout struct {
	flat    []float64      // margins × columns
	packed  *kernel.Packed // set only if there are several margins
	columns rows.Occurring
}

// Margins returns the number of margins.
func (m *Model) Margins() int { return len(m.Coefficients) }

// width returns the number of coefficients of a margin.
func (m *Model) width() int {
	if m.Columns != nil {
		return len(m.Columns)
	}
	return m.Dim
}

// prepare computes the layout on the first call, and returns it.
func (m *Model) prepare() *layout {
	m.once.Do(func() {
		f := &m.fast
		for _, row := range m.Coefficients {
			f.flat = append(f.flat, row...)
		}
		if m.Columns == nil {
			if len(m.Coefficients) > 1 && m.Dim > 0 {
				f.packed = kernel.NewPacked(len(m.Coefficients), m.Dim)
				f.packed.Set(f.flat)
			}
			return
		}
		f.columns = rows.NewOccurring(m.Columns, m.Dim)
	})
	return &m.fast
}

// Margin returns the margin of a row, for a model with one margin: the sum of coefficient times
// feature, in the order of the features, plus the intercept. It does not include an offset,
// which the caller must add. For a row that does not have Dim features, Margin returns NaN.
// Only the first prediction of a model allocates memory.
func (m *Model) Margin(x []float64) float64 {
	var one [1]float64
	if len(m.Coefficients) != 1 || !m.MarginsTo(x, one[:]) {
		return math.NaN()
	}
	return one[0]
}

// MarginsTo writes the margins of a row to dst, whose length must be Margins(). If dst has
// another length, or the row does not have Dim features, MarginsTo returns false and does not
// change dst.
func (m *Model) MarginsTo(x, dst []float64) bool {
	m.prepare()
	if len(x) != m.Dim || len(dst) != len(m.Coefficients) {
		return false
	}
	for a := range m.Coefficients {
		dst[a] = m.dense(a, x)
	}
	return true
}

// SparseMargin does what Margin does, for a sparse row, with the same bits. values has the
// entries of the row that are not 0, and indices has their indices in ascending order.
func (m *Model) SparseMargin(indices []int32, values []float64) float64 {
	var one [1]float64
	if len(m.Coefficients) != 1 || !m.SparseMarginsTo(indices, values, one[:]) {
		return math.NaN()
	}
	return one[0]
}

// SparseMarginsTo does what MarginsTo does, for a sparse row. It returns false if indices do
// not ascend or are outside 0..Dim-1.
func (m *Model) SparseMarginsTo(indices []int32, values, dst []float64) bool {
	f := m.prepare()
	if len(dst) != len(m.Coefficients) || !signature.Sparse(indices, values).Fits(m.Dim) {
		return false
	}
	for a := range m.Coefficients {
		dst[a] = m.sparse(f, a, indices, values)
	}
	return true
}

// Inputs returns the columns that the model reads.
func (m *Model) Inputs() []model.Input {
	in := append([]model.Input(nil), m.Reads...)
	if m.OffsetCol != "" {
		in = append(in, model.Input{Column: m.OffsetCol, Type: "float64"})
	}
	return in
}

// Payload is the part of a model's file that describes a Model. The payload types of the
// estimators embed it.
type Payload struct {
	Features     int         `json:"features"`
	Columns      *[]int32    `json:"columns,omitempty"`
	Coefficients [][]float64 `json:"coefficients"`
	Intercepts   []float64   `json:"intercepts"`
	OffsetCol    string      `json:"offset_column,omitempty"`
}

// Payload returns the part of the model's file that describes m.
func (m *Model) Payload() Payload {
	p := Payload{Features: m.Dim, Coefficients: m.Coefficients, Intercepts: m.Intercepts, OffsetCol: m.OffsetCol}
	if m.Columns != nil {
		p.Columns = &m.Columns
	}
	return p
}

// Check returns an error if parts of the model contradict each other, or if a number is not
// finite.
func (m *Model) Check() error {
	if m.Dim < 0 || m.Dim > math.MaxInt32 {
		return fmt.Errorf("there are %d features", m.Dim)
	}
	if len(m.Coefficients) == 0 || len(m.Intercepts) != len(m.Coefficients) {
		return fmt.Errorf("there are coefficients of %d margins and %d intercepts", len(m.Coefficients), len(m.Intercepts))
	}
	if due := signature.OutOfOrder(m.Columns, m.Dim); due != "" {
		return fmt.Errorf("the columns have %s", due)
	}
	for a, row := range m.Coefficients {
		if len(row) != m.width() {
			return fmt.Errorf("margin %d has %d coefficients, want %d", a, len(row), m.width())
		}
		if j := kernel.NonFinite(row); j >= 0 {
			return fmt.Errorf("coefficient %d of margin %d is %v", j, a, row[j])
		}
		if !kernel.Finite(m.Intercepts[a]) {
			return fmt.Errorf("intercept %d is %v", a, m.Intercepts[a])
		}
	}
	if err := signature.Inputs(m.Reads).Check(m.Dim); err != nil {
		return err
	}
	if err := m.Summary.check(m.width()); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	return nil
}

// Fill sets the fields of m from the file f with the payload p. The caller must then call
// Check.
func (m *Model) Fill(f *model.File, p Payload) error {
	m.Dim, m.Coefficients, m.Intercepts, m.OffsetCol, m.Reads = p.Features, p.Coefficients, p.Intercepts, p.OffsetCol, f.Inputs
	if p.Columns != nil {
		m.Columns = *p.Columns
	}
	if n := len(f.Inputs); m.OffsetCol != "" {
		if n == 0 || f.Inputs[n-1].Column != m.OffsetCol {
			return fmt.Errorf("model is damaged: the offset column %q is not the last input", m.OffsetCol)
		}
		m.Reads = f.Inputs[:n-1]
	}
	if string(f.Summary) == "null" {
		return nil
	}
	if err := model.Unmarshal(f.Summary, &m.Summary); err != nil {
		return fmt.Errorf("model is damaged: summary: %w", err)
	}
	return nil
}

// Encode returns the file of a model that embeds m. problem is the result of the model's check.
func Encode(problem error, kind string, version int, m *Model, payload any) ([]byte, error) {
	return model.EncodeWhole(problem, kind, version, m.Inputs(), m.Summary, payload)
}

// Decode decodes a model's file of the given kind. It decodes the payload into *payload, and
// then fills m from own, which must point to the Payload that is embedded in *payload. newest
// is the newest version that the caller understands.
func Decode(file []byte, kind string, newest int, payload any, own *Payload, m *Model) error {
	f, err := model.Decode(file, kind, newest)
	if err != nil {
		return err
	}
	if err := model.Unmarshal(f.Payload, payload); err != nil {
		return fmt.Errorf("model is damaged: %w", err)
	}
	return m.Fill(f, *own)
}

// Take copies the fields of a model that a training returned, the parameter from, to m. A Model
// cannot be assigned, because it contains a sync.Once.
func (m *Model) Take(from *Model) {
	m.Reads, m.OffsetCol, m.Dim, m.Columns = from.Reads, from.OffsetCol, from.Dim, from.Columns
	m.Coefficients, m.Intercepts, m.Summary = from.Coefficients, from.Intercepts, from.Summary
}

// Largest returns the index of the largest margin of a row. If several margins are the largest,
// it returns the first index. It returns −1 if the row does not have Dim features or all
// margins are NaN. After the first prediction of the model, it does not allocate memory.
func (m *Model) Largest(x []float64) int {
	m.prepare()
	if len(x) != m.Dim {
		return -1
	}
	best, at := math.Inf(-1), -1
	for a := range m.Coefficients {
		if v := m.dense(a, x); v > best || at < 0 && v == v {
			best, at = v, a
		}
	}
	return at
}

// SparseLargest does what Largest does, for a sparse row.
func (m *Model) SparseLargest(indices []int32, values []float64) int {
	f := m.prepare()
	if !signature.Sparse(indices, values).Fits(m.Dim) {
		return -1
	}
	best, at := math.Inf(-1), -1
	for a := range m.Coefficients {
		if v := m.sparse(f, a, indices, values); v > best || at < 0 && v == v {
			best, at = v, a
		}
	}
	return at
}

// dense returns the margin with index a of a row of Dim features.
func (m *Model) dense(a int, x []float64) float64 {
	own := m.Coefficients[a]
	if m.Columns == nil {
		return kernel.Dot(x, own) + m.Intercepts[a]
	}
	var sum float64
	for k, j := range m.Columns {
		sum += float64(x[j] * own[k])
	}
	return sum + m.Intercepts[a]
}

// sparse returns the margin with index a of a sparse row.
func (m *Model) sparse(f *layout, a int, indices []int32, values []float64) float64 {
	own := m.Coefficients[a]
	var sum float64
	for p, j := range indices {
		if k := f.columns.Find(j); k >= 0 {
			sum += float64(values[p] * own[k])
		}
	}
	return sum + m.Intercepts[a]
}
