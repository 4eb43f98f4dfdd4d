package prepare

import (
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// preparation is a model of this package.
type preparation interface {
	model.Binder
	head() *Learned
	// check returns an error if the model is inconsistent. It is called for models read from
	// files.
	check() error
	// outputs returns the columns that the model adds to rows with the given schema. It returns
	// an error if the input columns are missing or have wrong types.
	outputs(schema *arrow.Schema) ([]arrow.Field, error)
}

// Learned has the parts and methods that the models of all preparations have in common.
type Learned struct {
	kind   string
	inputs []model.Input
	rows   int64
}

// Kind returns the name of the preparation, as in the model's file.
func (l *Learned) Kind() string { return l.kind }

// Inputs returns the columns that the model reads.
func (l *Learned) Inputs() []model.Input { return slices.Clone(l.inputs) }

// Rows returns the number of rows that the model was learned from, or 0 if it was not learned
// from rows.
func (l *Learned) Rows() int64 { return l.rows }

func (l *Learned) head() *Learned { return l }

// summary is the member "summary" of a model's file.
type summary struct {
	Rows int64 `json:"rows"`
}

// version is the version of all payloads of this package.
const version = 1

// encode writes a model's file.
func encode(m preparation) ([]byte, error) {
	return model.EncodeWhole(m.check(), m.Kind(), version, m.Inputs(), summary{m.head().rows}, m)
}

// decodeInto decodes the content of a file into m, a model of the given kind.
func decodeInto(file []byte, kind string, m preparation) error {
	var s summary
	f, err := model.DecodeParts(file, kind, version, &s, m)
	if err != nil {
		return err
	}
	*m.head() = Learned{kind: kind, inputs: f.Inputs, rows: s.Rows}
	if err := m.check(); err != nil {
		return fmt.Errorf("model of kind %q is damaged: %w", kind, err)
	}
	return nil
}

// parameters is implemented by the parameters of every preparation, such as StandardScaler.
type parameters interface {
	Kind() string
	// Validate returns everything that is wrong with the parameters.
	Validate() error
	outputs(schema *arrow.Schema) ([]arrow.Field, error)
}

// callerOf returns the name of a preparation for messages: the name of the type of its
// parameters.
func callerOf(p any) string {
	name := fmt.Sprintf("%T", p)
	return "prepare." + name[strings.LastIndexByte(name, '.')+1:]
}

// fit checks parameters and columns. If they are valid, it calls learn, which adds the
// operators that learn the model.
func fit(p parameters, rows *engine.Dataset, learn func() *engine.Dataset) *engine.Dataset {
	caller := callerOf(p)
	b, refused := model.Begin(caller, rows, p.Validate())
	if refused != nil {
		return refused
	}
	if _, err := p.outputs(arrowrows.Arrow(rows.Schema())); err != nil {
		return model.Refuse(b, caller, err)
	}
	return learn()
}

// apply adds the operator that applies the model in the dataset m to rows. outputs is the
// method of the model if the model is known when the job is built, and otherwise the method of
// the parameters.
func apply(p any, kind string, rows, m *engine.Dataset, outputs func(*arrow.Schema) ([]arrow.Field, error)) *engine.Dataset {
	caller := callerOf(p)
	b := model.BuilderOf(caller, rows)
	if rows.Poisoned() {
		return rows
	}
	fields, err := outputs(arrowrows.Arrow(rows.Schema()))
	if err != nil {
		return model.Refuse(b, caller, err)
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return model.ApplyRows(caller, rows, m, model.RowApplication{
		Op: strings.TrimPrefix(caller, "prepare."), Attrs: []engine.Attr{{Key: "columns", Value: strings.Join(names, ", ")}},
		Outputs: arrowrows.Columns(fields), Replace: true, Skips: skips(p),
		Decode: func(file []byte) (model.Binder, error) { return decode(file, kind) },
	})
}

// transform applies a model that is already in memory to rows of a job.
func transform(m preparation, rows *engine.Dataset) *engine.Dataset {
	b := model.BuilderOf(callerOf(m), rows)
	return apply(m, m.Kind(), rows, model.Dataset(b, m), m.outputs)
}

// checkNames checks the lists of column names. columns must not be empty, outputs must be empty
// or have the same length as columns, and no list may contain a name twice.
func checkNames(columns, outputs []string) error {
	var errs []error
	if len(columns) == 0 {
		errs = append(errs, wrong("Columns is empty: name the columns to prepare"))
	}
	if len(outputs) > 0 && len(outputs) != len(columns) {
		errs = append(errs, fmt.Errorf("there are %d Outputs for %d Columns: want one for each, or none to replace the columns", len(outputs), len(columns)))
	}
	return errors.Join(append(errs, unique("Columns", columns), unique("Outputs", outputs))...)
}

func unique(what string, names []string) error {
	for i, name := range names {
		if name == "" {
			return fmt.Errorf("%s[%d] is empty", what, i)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%s has %q twice", what, name)
		}
	}
	return nil
}

// OutputNames returns the names of the output columns: outputs, or columns if outputs is empty.
func OutputNames(columns, outputs []string) []string {
	if len(outputs) == 0 {
		return columns
	}
	return outputs
}

// columnKind is a bit set of kinds of columns.
type columnKind int

const (
	numberColumns columnKind = 1 << iota // ints, floats, bools
	textColumns                          // text
	dateColumns                          // dates and timestamps
	denseColumns                         // vector
	sparseColumns                        // sparse
	scalarColumns = numberColumns | textColumns | dateColumns
	vectorColumns = denseColumns | sparseColumns
)

// kindOf returns the kind of columns of type dt, or 0 if no preparation accepts the type.
func kindOf(dt arrow.DataType) columnKind {
	switch id := dt.ID(); {
	case batch.IsNumber(dt):
		return numberColumns
	case id == arrow.STRING:
		return textColumns
	case id == arrow.DATE32 || id == arrow.TIMESTAMP:
		return dateColumns
	case !batch.IsVector(dt):
		return 0
	case id == arrow.STRUCT:
		return sparseColumns
	}
	return denseColumns
}

// find returns the named columns of a schema. It returns an error if a column is missing or its
// kind is not in want. help names the wanted kinds in the error.
func find(schema *arrow.Schema, columns []string, want columnKind, help string) ([]arrow.Field, error) {
	fields := make([]arrow.Field, 0, len(columns))
	for _, name := range columns {
		i, err := batch.FindColumn(schema, name)
		if err != nil {
			return nil, err
		}
		f := schema.Field(i)
		if kindOf(f.Type)&want == 0 {
			return nil, fmt.Errorf("column %q is %s: want %s", name, batch.TypeName(f.Type), help)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// sparseOf returns, for each field, whether it is a column of sparse vectors.
func sparseOf(fields []arrow.Field) []bool {
	sparse := make([]bool, len(fields))
	for i, f := range fields {
		sparse[i] = kindOf(f.Type) == sparseColumns
	}
	return sparse
}

// float64Like returns float64 for a scalar type dt. For a vector type it returns the type of
// the same shape with elements of float64.
func float64Like(dt arrow.DataType) arrow.DataType {
	if kindOf(dt)&vectorColumns != 0 {
		return rows.VectorsOf(dt, arrow.PrimitiveTypes.Float64)
	}
	return arrow.PrimitiveTypes.Float64
}

// bindColumns adds the output cells to l. It returns the positions of the input cells and of
// the output cells.
func bindColumns(l *model.Layout, columns, outputs []string) (in, out []int, err error) {
	for _, name := range columns {
		cell, err := l.Find(name)
		if err != nil {
			return nil, nil, err
		}
		in = append(in, cell)
	}
	for _, name := range outputs {
		out = append(out, l.Add(name))
	}
	return in, out, nil
}

// columnError adds the name of the column to an error.
func columnError(column string, err error) error { return fmt.Errorf("column %q: %w", column, err) }

// checkEnum returns an error if v is not one of the constants of its type.
func checkEnum(v encoding.TextMarshaler) error {
	_, err := v.MarshalText()
	return err
}

// wrong returns an error with a formatted message that begins with the name of a field.
func wrong(format string, a ...any) error { return fmt.Errorf(format, a...) }
