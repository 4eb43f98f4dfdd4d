package svm

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
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
	if o.OffsetCol != "" {
		return model.Refuse(model.BuilderOf(op, d), op, fmt.Errorf("OffsetCol is %q: a classifier has no offsets", o.OffsetCol))
	}
	return linearmodel.PredictClass(op, "LinearSVCPredict", d, made, o.number(), cmp.Or(o.DecisionCol, defaultDecision), DecodeSVC, (*SVCModel).scores)
}

// number returns the options but for the margins.
func (o PredictOptions) number() linearmodel.PredictOptions {
	return linearmodel.PredictOptions{
		VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, OffsetCol: o.OffsetCol, PredictionCol: o.PredictionCol, Replace: o.Replace, Skip: o.Skip,
	}
}

// scores returns the classes, and what gives the class of a row's margins, and these.
func (m *SVCModel) scores() (linearmodel.Classes, func(margins []float64) (int, []float64)) {
	return m.Classes, func(margins []float64) (int, []float64) { return classOf(margins), margins }
}

// PredictSVR adds the prediction of a model to each row, with the bits that
// SVRModel.Predict and PredictSparse return. The model is a dataset of one row, from
// TrainSVR or from SVRModel.Dataset. Rows stay in place.
func PredictSVR(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return linearmodel.PredictNumber("svm.PredictSVR", "LinearSVRPredict", d, made, o.number(), DecodeSVR, linearmodel.Same)
}
