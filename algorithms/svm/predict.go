package svm

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// PredictOptions are options of PredictSVC and PredictSVR.
type PredictOptions struct {
	// VectorCol or FeatureCols name the columns of the features, and OffsetCol, for PredictSVR
	// only, names the column of the offsets. Where names are empty, the columns that the model
	// was trained on are read.
	VectorCol   string
	FeatureCols []string
	OffsetCol   string
	// PredictionCol names the new column of predictions. PredictSVC writes classes in the type
	// of the labels, and PredictSVR writes float64 values. Empty means "prediction".
	PredictionCol string
	// DecisionCol names the new vector column of margins that PredictSVC adds; empty means
	// "decision".
	DecisionCol string
	// Replace allows the new columns to replace columns of the same names. Without Replace,
	// existing columns of these names are an error.
	Replace bool
	// With Skip, the prediction is null for rows that contain a NaN or an infinity; without
	// Skip such a row is an error. For rows that contain a null the prediction is null with and
	// without Skip.
	Skip bool
}

// PredictSVC adds to each row the predicted class and the margins, with the same bits as
// SVCModel.Predict, Decision and their variants for sparse rows. made is the model as a dataset
// of one row, from TrainSVC or from SVCModel.Dataset. Rows are not moved between subtasks.
func PredictSVC(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	const op = "svm.PredictSVC"
	if o.OffsetCol != "" {
		return model.Refuse(model.BuilderOf(op, d), op, fmt.Errorf("OffsetCol is %q: a classifier has no offsets", o.OffsetCol))
	}
	return linearmodel.PredictClass(op, "LinearSVCPredict", d, made, o.number(), cmp.Or(o.DecisionCol, defaultDecision), DecodeSVC, (*SVCModel).scores)
}

// number returns the options of PredictSVR: all except DecisionCol.
func (o PredictOptions) number() model.LinearPredictOptions {
	return model.LinearPredictOptions{
		VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, OffsetCol: o.OffsetCol, PredictionCol: o.PredictionCol, Replace: o.Replace, Skip: o.Skip,
	}
}

// scores returns the classes, and a function that takes a row's margins and returns its class
// and these margins.
func (m *SVCModel) scores() (linearmodel.Classes, func(margins []float64) (int, []float64)) {
	return m.Classes, func(margins []float64) (int, []float64) { return classOf(margins), margins }
}

// PredictSVR adds the prediction to each row, with the same bits as SVRModel.Predict and
// PredictSparse. made is the model as a dataset of one row, from TrainSVR or from
// SVRModel.Dataset. Rows are not moved between subtasks.
func PredictSVR(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return linearmodel.PredictNumber("svm.PredictSVR", "LinearSVRPredict", d, made, o.number(), DecodeSVR, linearmodel.Same)
}
