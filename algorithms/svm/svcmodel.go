package svm

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// SVCModel is a trained classifier. Use it through a pointer, and do not change it after the
// first prediction. Any number of goroutines may use the same model.
//
// For two classes, Coefficients has one row and Intercepts one value; they give the margin of
// the second class. For more classes, Coefficients has a row and Intercepts a value for every
// class. Both apply to unscaled features.
type SVCModel struct {
	linearmodel.Model `json:"-"`
	// Classes has the classes in ascending order, and the type of the label column.
	Classes linearmodel.Classes `json:"-"`
	// Squared is the parameter Squared of the training.
	Squared bool `json:"squared"`
	// PredictionCol and DecisionCol name the columns of predictions; empty means "prediction"
	// and "decision".
	PredictionCol string `json:"prediction_column,omitempty"`
	DecisionCol   string `json:"decision_column,omitempty"`
}

// Summary describes a training.
type Summary = linearmodel.Summary

// Predict returns the index in Classes.Values of the predicted class of a row. With two
// classes, the second class is predicted if its margin is above 0. With more classes, the class
// with the largest margin is predicted; if several classes have the largest margin, the first
// of them is predicted. If the row does not have Dim features or contains a NaN, the result is
// -1. Only the first call allocates.
func (m *SVCModel) Predict(x []float64) int {
	if m.Margins() == 1 {
		return side(m.Margin(x))
	}
	return m.Largest(x)
}

// PredictSparse does what Predict does, for a sparse row. The row is given by its nonzero
// values and their indices in ascending order. If indices do not ascend or lie outside
// 0..Dim-1, the result is -1.
func (m *SVCModel) PredictSparse(indices []int32, values []float64) int {
	if m.Margins() == 1 {
		return side(m.SparseMargin(indices, values))
	}
	return m.SparseLargest(indices, values)
}

// Decision writes the margins of a row to dst, whose length must be the number of margins. Two
// classes have one margin, which is above 0 for the second class. More classes have one margin
// each. Decision returns false and does not change dst if dst has another length or the row
// does not have Dim features. Only the first call allocates.
func (m *SVCModel) Decision(x, dst []float64) bool { return m.MarginsTo(x, dst) }

// DecisionSparse does what Decision does, for a sparse row.
func (m *SVCModel) DecisionSparse(indices []int32, values, dst []float64) bool {
	return m.SparseMarginsTo(indices, values, dst)
}

// side returns the class that the margin of two classes predicts, or -1 for NaN.
func side(margin float64) int {
	switch {
	case margin != margin:
		return -1
	case margin > 0:
		return 1
	}
	return 0
}

// classOf returns the class predicted from margins.
func classOf(margins []float64) int {
	if len(margins) == 1 {
		return side(margins[0])
	}
	return kernel.Argmax(margins)
}

// svcPayload is the content of a model's file.
type svcPayload struct {
	linearmodel.Payload
	linearmodel.Classes
	*SVCModel
}

const svcVersion = 1

// Kind implements model.Model.
func (m *SVCModel) Kind() string { return kindSVC }

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid.
func (m *SVCModel) Encode() ([]byte, error) {
	return linearmodel.Encode(m.check(), kindSVC, svcVersion, &m.Model, svcPayload{m.Payload(), m.Classes, m})
}

// check returns an error if the model is not valid.
func (m *SVCModel) check() error {
	k := len(m.Classes.Values)
	if err := m.Classes.Check(2); err != nil {
		return err
	}
	if want := marginsOf(k); m.Margins() != want {
		return fmt.Errorf("there are coefficients of %d margins for %d classes", m.Margins(), k)
	}
	return m.Check()
}

// DecodeSVC decodes what SVCModel.Encode returned. It returns an error that names the cause if
// the file is truncated, altered, of another kind or of a newer version.
func DecodeSVC(file []byte) (*SVCModel, error) {
	p := svcPayload{SVCModel: &SVCModel{}}
	if err := linearmodel.Decode(file, kindSVC, svcVersion, &p, &p.Payload, &p.Model); err != nil {
		return nil, err
	}
	p.SVCModel.Classes = p.Classes
	return model.Whole(p.SVCModel, p.check())
}

// Save writes the model to the file path. An existing file is replaced atomically: after a
// failure it still has the old contents.
func (m *SVCModel) Save(path string) error { return model.Save(path, m) }

// LoadSVC reads a model that SVCModel.Save wrote.
func LoadSVC(path string) (*SVCModel, error) { return model.Load(path, DecodeSVC) }

// SVCModelOf returns the model that was collected under the given name. The collected dataset
// must be the dataset that TrainSVC returned.
func SVCModelOf(result *engine.Result, name string) (*SVCModel, error) {
	return model.Collected(result, name, DecodeSVC)
}

// Dataset returns the model as a dataset of the job, like the dataset that TrainSVC returns. So
// a saved model can be passed to PredictSVC.
func (m *SVCModel) Dataset(b *engine.Builder) *engine.Dataset { return m.Classes.Dataset(b, m) }

// Transform implements model.Model. It calls PredictSVC with the columns of training.
func (m *SVCModel) Transform(d *engine.Dataset) *engine.Dataset {
	return PredictSVC(d, m.Dataset(model.BuilderOf("svm.SVCModel.Transform", d)), PredictOptions{PredictionCol: m.PredictionCol, DecisionCol: m.DecisionCol})
}

// Bind implements model.Binder.
func (m *SVCModel) Bind(l *model.Layout) (model.Step, error) {
	return linearmodel.BindClass(&m.Model, l, m.Classes, m.PredictionCol, cmp.Or(m.DecisionCol, defaultDecision), m.Margins(), classOf)
}

// marginsOf returns the number of margins for the given number of classes.
func marginsOf(classes int) int {
	if classes == 2 {
		return 1
	}
	return classes
}
