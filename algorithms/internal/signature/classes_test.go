package signature_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

var classesOfTypes = []signature.Classes{
	{Type: "utf8", Values: []string{"", "no", "yes"}},
	{Type: "bool", Values: []string{"false", "true"}},
	{Type: "int8", Values: []string{"-128", "127"}},
	{Type: "int64", Values: []string{"-9223372036854775808", "9223372036854775807"}},
	{Type: "uint64", Values: []string{"0", "18446744073709551615"}},
	{Type: "float32", Values: []string{"-0.5", "0.1"}},
	{Type: "float64", Values: []string{"0.1", "1e+300"}},
	{Type: "date32", Values: []string{"1969-12-31", "2024-02-29"}},
}

func TestClasses(t *testing.T) {
	c := signature.Classes{Type: "int16", Values: []string{"-3", "7"}}
	require.NoError(t, c.Check(2))
	require.ErrorContains(t, c.Check(3), "want 3 or more")
	dt, err := batch.ParseType(c.Type)
	require.NoError(t, err)
	b := array.NewBuilder(memory.NewGoAllocator(), dt)
	for _, class := range []int{1, -1, 0} {
		require.NoError(t, c.Append(b, class))
	}
	column := b.NewArray().(*array.Int16)
	require.EqualValues(t, 7, column.Value(0))
	require.True(t, column.IsNull(1))
	require.EqualValues(t, -3, column.Value(2))
	for kind, c := range map[model.CellKind]signature.Classes{
		model.IntCell: c, model.TextCell: {Type: "utf8", Values: []string{"a", "b"}}, model.BoolCell: {Type: "bool", Values: []string{"false", "true"}},
		model.FloatCell: {Type: "float32", Values: []string{"0.5", "2"}},
	} {
		set, err := c.Setter()
		require.NoError(t, err)
		var cell model.Cell
		set(&cell, 1)
		require.Equal(t, kind, cell.Kind)
		text, ok := cell.Category()
		require.True(t, ok)
		require.Equal(t, c.Values[1], string(text))
		set(&cell, -1)
		require.Equal(t, model.NullCell, cell.Kind)
	}
	days, err := signature.Classes{Type: "date32", Values: []string{"1970-01-02"}}.Setter()
	require.NoError(t, err)
	var cell model.Cell
	days(&cell, 0)
	require.EqualValues(t, 1, cell.Int)
	require.ErrorContains(t, signature.Classes{Type: "vector[2]", Values: []string{"a"}}.Check(1), "labels are vector[2]")
}

// TestCells requires that Cells returns the same cells as a Reader of a column with the
// classes.
func TestCells(t *testing.T) {
	for _, c := range classesOfTypes {
		require.NoError(t, c.Check(2), c.Type)
		dt, err := batch.ParseType(c.Type)
		require.NoError(t, err)
		b := array.NewBuilder(memory.NewGoAllocator(), dt)
		for i := range c.Values {
			require.NoError(t, c.Append(b, i))
		}
		require.NoError(t, c.Append(b, -1))
		column := b.NewArray()
		require.True(t, column.IsNull(len(c.Values)))
		cells, err := c.Cells()
		require.NoError(t, err)
		require.Len(t, cells, len(c.Values))
		schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: dt, Nullable: true}}, nil)
		layout := model.NewLayout("x")
		_, err = layout.Find("x")
		require.NoError(t, err)
		r, err := model.NewReader(arrowrows.Schema(schema), layout)
		require.NoError(t, err)
		r.Reset(arrowrows.Batch(array.NewRecord(schema, []arrow.Array{column}, int64(column.Len()))))
		row := layout.NewRow()
		for i := range cells {
			r.Read(i, row)
			require.Equal(t, row[0], cells[i], "%s %q", c.Type, c.Values[i])
			var set model.Cell
			signature.SetCell(&set, &cells[i])
			require.Equal(t, cells[i], set)
			give, err := c.Setter()
			require.NoError(t, err)
			give(&set, i)
			require.Equal(t, cells[i], set)
		}
	}
}

func TestBadClasses(t *testing.T) {
	for text, c := range map[string]signature.Classes{
		"the type of labels: ": {Type: "txt", Values: []string{"a"}},
		"labels are vector[2]": {Type: "vector[2]", Values: []string{"a"}},
		`"a" occurs twice`:     {Type: "utf8", Values: []string{"a", "a"}},
		`"a" is not a int16`:   {Type: "int16", Values: []string{"a"}},
		`is not a uint8`:       {Type: "uint8", Values: []string{"256"}},
	} {
		require.ErrorContains(t, c.Check(1), text)
		_, err := c.Cells()
		require.ErrorContains(t, err, text)
	}
	require.ErrorContains(t, signature.Classes{Type: "utf8", Values: []string{"a"}}.Check(2), "there are 1 classes, want 2 or more")
	// Training refuses binary labels, because Cells returns an error for them.
	_, err := signature.Classes{Type: "binary", Values: []string{"YQ=="}}.Cells()
	require.ErrorContains(t, err, "labels are binary: want numbers, bools, text or dates")
}

func TestMatch(t *testing.T) {
	c := signature.Classes{Type: "int16"}
	require.NoError(t, c.Match(arrow.PrimitiveTypes.Int16))
	require.EqualError(t, c.Match(arrow.BinaryTypes.String), "the model predicts labels of type int16, its dataset says utf8")
}

// stub is a model that encodes to a few bytes, or fails to encode with err.
type stub struct{ err error }

func (stub) Kind() string                                { return "stub" }
func (stub) Inputs() []model.Input                       { return nil }
func (m stub) Encode() ([]byte, error)                   { return []byte("bytes"), m.err }
func (stub) Transform(d *engine.Dataset) *engine.Dataset { return d }

// TestDatasets requires that Dataset returns the same row for a model as a queue that is closed
// by ModelCloser, including the null label, and that LabelType returns the type of the labels.
func TestDatasets(t *testing.T) {
	for _, label := range []arrow.DataType{nil, arrow.PrimitiveTypes.Int16, arrow.BinaryTypes.String} {
		c, row := signature.Classes{}, "bytes\t\n"
		if label != nil {
			c.Type, row = batch.TypeName(label), "bytes\t\t\n"
		}
		var tells arrow.DataType
		var need error
		r := trial.Run(t, func(b *engine.Builder) {
			made := signature.Dataset("stub.Model", b, c, stub{})
			tells = signature.LabelType(made)
			_, need = signature.ClassType(made)
			engine.Collect(made, "made")
			engine.Collect(comqueue.New(b, "stub").
				Add(comqueue.Named("nothing", comqueue.Do(func(*comqueue.ComContext) error { return nil }))).
				SetMaxIter(1).
				CloseOnNode0(signature.ModelCloser(label, func(*comqueue.ComContext) (model.Model, error) { return stub{}, nil })).
				Exec(), "trained")
		})
		require.Equal(t, label, tells)
		require.Equal(t, "made\n"+row+"trained\n"+row, trial.Print(t, r))
		made, err := r.Schema("made")
		require.NoError(t, err)
		trained, err := r.Schema("trained")
		require.NoError(t, err)
		require.True(t, made.Equal(trained), "%v\n%v", made, trained)
		if label == nil {
			require.ErrorContains(t, need, `has no column "label", which tells the type of the labels`)
		} else {
			require.NoError(t, need)
			rows, err := arrowbridge.Records(r, "trained")
			require.NoError(t, err)
			require.True(t, rows[0].Column(1).IsNull(0))
		}
	}
}

func TestDatasetFails(t *testing.T) {
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(signature.Dataset("stub.Model", b, signature.Classes{}, stub{errors.New("no bytes")}), "made")
	}, "stub.Model: no bytes")
	require.Nil(t, signature.LabelType(nil))
	text, err := signature.ClassType(nil)
	require.NoError(t, err)
	require.Equal(t, arrow.BinaryTypes.String, text)
}

func TestOutputs(t *testing.T) {
	require.Equal(t, "[{p float64}]", typesOf(signature.Outputs(nil, "p", "q")))
	require.Equal(t, "[{p int16} {q vector}]", typesOf(signature.Outputs(arrow.PrimitiveTypes.Int16, "p", "q")))
}

func typesOf(fields []arrow.Field) string {
	var all []struct{ name, kind string }
	for _, f := range fields {
		all = append(all, struct{ name, kind string }{f.Name, batch.TypeName(f.Type)})
	}
	return fmt.Sprint(all)
}
