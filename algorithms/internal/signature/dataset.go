package signature

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// LabelColumn is the name of a column in the dataset of a classifier's model. The column has
// the type of the labels, and its value is null. The model itself is in model.Column.
const LabelColumn = "label"

// modelSchema returns the schema of the one-row dataset of a model. label is the type of the
// labels, or nil for a regression.
func modelSchema(label arrow.DataType) *arrow.Schema {
	fields := []arrow.Field{{Name: model.Column, Type: arrow.BinaryTypes.String}}
	if label != nil {
		fields = append(fields, arrow.Field{Name: LabelColumn, Type: label, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// modelRow returns the only row of the dataset of a model. The caller owns the record. The
// record refers to the memory of file, which must not be modified.
func modelRow(schema *arrow.Schema, file []byte) arrow.Record {
	ends := arrow.Int32Traits.CastToBytes([]int32{0, int32(len(file))})
	data := array.NewData(arrow.BinaryTypes.String, 1, []*memory.Buffer{nil, memory.NewBufferBytes(ends), memory.NewBufferBytes(file)}, nil, 0, 0)
	defer data.Release()
	columns := []arrow.Array{array.NewStringData(data)}
	for _, f := range schema.Fields()[1:] {
		b := array.NewBuilder(memory.NewGoAllocator(), f.Type)
		batch.AppendNull(b)
		columns = append(columns, b.NewArray())
		b.Release()
	}
	row := array.NewRecord(schema, columns, 1)
	for _, c := range columns {
		c.Release()
	}
	return row
}

// Closer returns a closer that outputs one row with the encoded model that finish returns. The
// row has LabelColumn if label is not nil.
func Closer(label arrow.DataType, finish func(ctx *comqueue.ComContext) ([]byte, error)) comqueue.Closer {
	schema := modelSchema(label)
	return comqueue.OutputBatches(arrowrows.Schema(schema), func(ctx *comqueue.ComContext, emit func(engine.Batch) error) error {
		file, err := finish(ctx)
		if err != nil {
			return err
		}
		row := modelRow(schema, file)
		defer row.Release()
		return emit(arrowrows.Batch(row))
	})
}

// ModelCloser does what Closer does, for a finish that returns a model which is not encoded
// yet.
func ModelCloser(label arrow.DataType, finish func(ctx *comqueue.ComContext) (model.Model, error)) comqueue.Closer {
	return Closer(label, func(ctx *comqueue.ComContext) ([]byte, error) {
		m, err := finish(ctx)
		if err != nil {
			return nil, err
		}
		return m.Encode()
	})
}

// Dataset adds a dataset to the job that contains the model m, like the dataset that training
// returns. c has the model's classes; without classes, the dataset has no LabelColumn. Errors
// are reported under the name op.
func Dataset(op string, b *engine.Builder, c Classes, m model.Model) *engine.Dataset {
	row, err := c.encodedRow(m)
	if err != nil {
		return model.Refuse(b, op, err)
	}
	return operators.FromBatches(b, []engine.Batch{arrowrows.Batch(row)}).Named(m.Kind() + " model")
}

// Dataset adds a dataset to the job that contains the classifier m, like the dataset that
// training returns.
func (c Classes) Dataset(b *engine.Builder, m model.Model) *engine.Dataset {
	return Dataset("model.Dataset", b, c, m)
}

func (c Classes) encodedRow(m model.Model) (arrow.Record, error) {
	file, err := m.Encode()
	if err != nil {
		return nil, err
	}
	var label arrow.DataType
	if c.Type != "" {
		if label, err = batch.ParseType(c.Type); err != nil {
			return nil, err
		}
	}
	return modelRow(modelSchema(label), file), nil
}

// LabelType returns the type of labels in the dataset of a model, or nil for a regression. It
// also returns nil if made does not contain a model; model.ApplyRows reports that error.
func LabelType(made *engine.Dataset) arrow.DataType {
	if made == nil || made.Poisoned() || made.Schema().Index(LabelColumn) < 0 {
		return nil
	}
	i, _ := batch.FindColumn(arrowrows.Arrow(made.Schema()), LabelColumn)
	return arrowrows.Arrow(made.Schema()).Field(i).Type
}

// ClassType returns the type of labels in the dataset of a classifier, or an error if the
// dataset does not have it. If made does not contain a model, ClassType returns the type of
// text and no error; model.Apply reports that error.
func ClassType(made *engine.Dataset) (arrow.DataType, error) {
	if made == nil || made.Poisoned() || made.Schema().Index(model.Column) < 0 {
		return arrow.BinaryTypes.String, nil
	}
	label := LabelType(made)
	if label == nil {
		return nil, fmt.Errorf("the dataset of the model has no column %q, which tells the type of the labels: give it the dataset that training returned, or that of the model's Dataset", LabelColumn)
	}
	return label, nil
}

// Outputs returns the columns that prediction adds. A classifier adds the predicted class,
// which has the type of the labels, and the probabilities of all classes. A regression, for
// which label is nil, adds the predicted number.
func Outputs(label arrow.DataType, prediction, probability string) []arrow.Field {
	if label == nil {
		return []arrow.Field{{Name: prediction, Type: arrow.PrimitiveTypes.Float64, Nullable: true}}
	}
	return []arrow.Field{
		{Name: prediction, Type: label, Nullable: true},
		{Name: probability, Type: batch.VariableVectorType(), Nullable: true},
	}
}
