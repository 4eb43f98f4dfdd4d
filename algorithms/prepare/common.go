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
	// check returns what is inconsistent in a model that was read from a file.
	check() error
	// outputs returns the columns that the model computes from rows with a schema. Its error
	// says what is wrong with the columns that it reads.
	outputs(schema *arrow.Schema) ([]arrow.Field, error)
}

// Learned is what the models of all preparations have in common.
type Learned struct {
	kind   string
	inputs []model.Input
	rows   int64
}

// Kind names the preparation, as in the file.
func (l *Learned) Kind() string { return l.kind }

// Inputs are the columns that the model reads.
func (l *Learned) Inputs() []model.Input { return slices.Clone(l.inputs) }

// Rows is the number of rows that the model was learned from; 0 if it needed none.
func (l *Learned) Rows() int64 { return l.rows }

func (l *Learned) head() *Learned { return l }

// summary is the file's member of that name.
type summary struct {
	Rows int64 `json:"rows"`
}

// version is the version of all payloads of this package.
const version = 1

// encode writes a model's file.
func encode(m preparation) ([]byte, error) {
	return model.EncodeWhole(m.check(), m.Kind(), version, m.Inputs(), summary{m.head().rows}, m)
}

// decodeInto reads a file into a model of its kind.
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

// parameters are the settings of a preparation.
type parameters interface {
	Kind() string
	// Validate returns everything that is wrong with the parameters.
	Validate() error
	outputs(schema *arrow.Schema) ([]arrow.Field, error)
}

// callerOf returns the name of a preparation in messages: the type of its parameters.
func callerOf(p any) string {
	name := fmt.Sprintf("%T", p)
	return "prepare." + name[strings.LastIndexByte(name, '.')+1:]
}

// fit checks parameters and columns. If they are right, it adds the operators that learn the
// model.
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

// apply adds the operator that applies the model of a preparation to rows. outputs is a
// method of the parameters while the model is not known, otherwise of the model.
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

// transform applies a known model to rows of a job.
func transform(m preparation, rows *engine.Dataset) *engine.Dataset {
	b := model.BuilderOf(callerOf(m), rows)
	return apply(m, m.Kind(), rows, model.Dataset(b, m), m.outputs)
}

// checkNames checks lists of columns. There must be inputs, and either no outputs or as
// many. No list has a name twice.
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

// OutputNames returns the names of the outputs of columns: by default they replace their inputs.
func OutputNames(columns, outputs []string) []string {
	if len(outputs) == 0 {
		return columns
	}
	return outputs
}

// columnKind is a set of the kinds of columns that a preparation takes.
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

// kindOf returns the kind of a type, or 0 where no preparation takes it.
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

// find returns columns of a schema, or an error that says why they cannot be taken.
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

// sparseOf returns which columns are of sparse vectors.
func sparseOf(fields []arrow.Field) []bool {
	sparse := make([]bool, len(fields))
	for i, f := range fields {
		sparse[i] = kindOf(f.Type) == sparseColumns
	}
	return sparse
}

// float64Like returns the type with the shape of dt and elements of float64.
func float64Like(dt arrow.DataType) arrow.DataType {
	if kindOf(dt)&vectorColumns != 0 {
		return rows.VectorsOf(dt, arrow.PrimitiveTypes.Float64)
	}
	return arrow.PrimitiveTypes.Float64
}

// bindColumns finds the cells of inputs and then adds the cells of outputs.
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

// checkEnum returns an error for a value that is not a constant of the package.
func checkEnum(v encoding.TextMarshaler) error {
	_, err := v.MarshalText()
	return err
}

// wrong is fmt.Errorf for messages that begin with the name of a field.
func wrong(format string, a ...any) error { return fmt.Errorf(format, a...) }
