package svm

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// PredictOptions change what PredictSVC and PredictSVR read and write.
type PredictOptions struct {
	// VectorCol, FeatureCols and, by PredictSVR, OffsetCol are read in place of the columns
	// that the model was trained on; empty means those.
	VectorCol   string
	FeatureCols []string
	OffsetCol   string
	// PredictionCol names the new column of predictions, classes in the type of the labels or
	// float64; empty means "prediction".
	PredictionCol string
	// DecisionCol names, for PredictSVC, the new column of vectors with the margins; empty
	// means "decision".
	DecisionCol string
	// Replace puts them in the place of columns of their names, which otherwise are an error.
	Replace bool
	// Skip gives rows that hold a NaN or an infinity null in place of failing the run. Rows
	// with nulls are given null in either case.
	Skip bool
}

// PredictSVC adds to each row the class that a model predicts and the margins, with the
// bits that SVCModel.Predict, Decision and their sparse forms give. The model is a dataset
// of one row, from TrainSVC or from SVCModel.Dataset. Rows stay in place.
func PredictSVC(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	const op = "svm.PredictSVC"
	fail := func(err error) *engine.Dataset {
		b := model.BuilderOf(op, d)
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	if o.OffsetCol != "" {
		return fail(fmt.Errorf("OffsetCol is %q: a classifier has no offsets", o.OffsetCol))
	}
	prediction, err := linearmodel.LabelOutput(op, orName(o.PredictionCol, defaultPrediction), made)
	if err != nil {
		return fail(err)
	}
	decision := arrow.Field{Name: orName(o.DecisionCol, defaultDecision), Type: batch.VariableVectorType(), Nullable: true}
	return linearmodel.Apply(op, d, made, linearmodel.Application{
		Op: "LinearSVCPredict", VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, Skip: o.Skip, Replace: o.Replace,
		Outputs: arrowrows.Columns([]arrow.Field{prediction, decision}),
		Open: func(file []byte) (*linearmodel.Model, linearmodel.Score, error) {
			m, err := DecodeSVC(file)
			if err != nil {
				return nil, nil, err
			}
			if got := batch.TypeName(prediction.Type); got != m.Classes.Type {
				return nil, nil, fmt.Errorf("the model predicts labels of type %s, its dataset says %s", m.Classes.Type, got)
			}
			return &m.Model, linearmodel.ScoreClass(m.Classes, func(margins []float64) (int, []float64) { return classOf(margins), margins }), nil
		},
	})
}

// PredictSVR adds the prediction of a model to each row, with the bits that
// SVRModel.Predict and PredictSparse return. The model is a dataset of one row, from
// TrainSVR or from SVRModel.Dataset. Rows stay in place.
func PredictSVR(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return linearmodel.Apply("svm.PredictSVR", d, made, linearmodel.Application{
		Op: "LinearSVRPredict", VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, OffsetCol: o.OffsetCol, Skip: o.Skip, Replace: o.Replace,
		Outputs: arrowrows.Columns([]arrow.Field{linearmodel.NumberOutput(orName(o.PredictionCol, defaultPrediction))}),
		Open: func(file []byte) (*linearmodel.Model, linearmodel.Score, error) {
			m, err := DecodeSVR(file)
			if err != nil {
				return nil, nil, err
			}
			return &m.Model, linearmodel.ScoreNumber(linearmodel.Same), nil
		},
	})
}
