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
	// VectorCol, FeatureCols and, for PredictSVR, OffsetCol name the columns to read. Empty
	// means the columns that the model was trained on.
	VectorCol   string
	FeatureCols []string
	OffsetCol   string
	// PredictionCol names the new column of predictions: classes in the type of the labels, or
	// float64. Empty means "prediction".
	PredictionCol string
	// DecisionCol names the new column of PredictSVC with the vectors of margins; empty means
	// "decision".
	DecisionCol string
	// Replace lets the new columns replace those of the same names, which otherwise are an
	// error.
	Replace bool
	// Skip predicts null for rows that hold a NaN or an infinity, which otherwise fail the run.
	// For rows that hold a null the prediction is null in either case.
	Skip bool
}

// PredictSVC adds to each row the predicted class and the margins, with the same bits as
// SVCModel.Predict, Decision and their sparse forms. The model is a dataset of one row, from
// TrainSVC or from SVCModel.Dataset. Rows stay in place.
func PredictSVC(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	const op = "svm.PredictSVC"
	if o.OffsetCol != "" {
		return model.Refuse(model.BuilderOf(op, d), op, fmt.Errorf("OffsetCol is %q: a classifier has no offsets", o.OffsetCol))
	}
	return linearmodel.PredictClass(op, "LinearSVCPredict", d, made, o.number(), cmp.Or(o.DecisionCol, defaultDecision), DecodeSVC, (*SVCModel).scores)
}

// number returns the options without DecisionCol.
func (o PredictOptions) number() linearmodel.PredictOptions {
	return linearmodel.PredictOptions{
		VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, OffsetCol: o.OffsetCol, PredictionCol: o.PredictionCol, Replace: o.Replace, Skip: o.Skip,
	}
}

// scores returns the classes, and a function from a row's margins to its class and the same
// margins.
func (m *SVCModel) scores() (linearmodel.Classes, func(margins []float64) (int, []float64)) {
	return m.Classes, func(margins []float64) (int, []float64) { return classOf(margins), margins }
}

// PredictSVR adds the prediction to each row, with the same bits as SVRModel.Predict and
// PredictSparse. The model is a dataset of one row, from TrainSVR or from SVRModel.Dataset.
// Rows stay in place.
func PredictSVR(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return linearmodel.PredictNumber("svm.PredictSVR", "LinearSVRPredict", d, made, o.number(), DecodeSVR, linearmodel.Same)
}
