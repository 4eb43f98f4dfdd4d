package svm

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// SVRModel is a trained regression. It is used by pointer and not changed once it predicts;
// any number of goroutines may use one.
//
// Coefficients has one row, and Intercepts one value, on the scale of the features as they
// are.
type SVRModel struct {
	linearmodel.Model
	// Epsilon and Squared are the parameters of these names that the model was trained with.
	Epsilon float64
	Squared bool
	// PredictionCol names the column of predictions; empty means "prediction".
	PredictionCol string
}

// Predict returns the prediction for a row, to which the caller adds the offset if there is
// one. A row that has not Dim features gives NaN. It allocates nothing, the first call
// excepted.
func (m *SVRModel) Predict(x []float64) float64 { return m.Margin(x) }

// PredictSparse is Predict for a row of which only the entries that are not 0 are given,
// with their indices in ascending order. Indices that do not ascend or lie outside 0..Dim-1
// give NaN.
func (m *SVRModel) PredictSparse(indices []int32, values []float64) float64 {
	return m.SparseMargin(indices, values)
}

// svrPayload is what a model's file holds.
type svrPayload struct {
	linearmodel.Payload
	Epsilon       float64 `json:"epsilon"`
	Squared       bool    `json:"squared"`
	PredictionCol string  `json:"prediction_column,omitempty"`
}

const svrVersion = 1

// Kind implements model.Model.
func (m *SVRModel) Kind() string { return kindSVR }

// Encode returns the model's file, the same bytes for the same model. A model that does not
// hold together is an error.
func (m *SVRModel) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model of kind %q: %w", kindSVR, err)
	}
	return model.Encode(kindSVR, svrVersion, m.Inputs(), m.Summary, svrPayload{m.Payload(), m.Epsilon, m.Squared, m.PredictionCol})
}

// check tells what does not hold together.
func (m *SVRModel) check() error {
	if m.Margins() != 1 {
		return fmt.Errorf("there are coefficients of %d margins, want 1", m.Margins())
	}
	if !(m.Epsilon >= 0) || math.IsInf(m.Epsilon, 0) {
		return fmt.Errorf("epsilon is %v", m.Epsilon)
	}
	return m.Check()
}

// DecodeSVR reads what SVRModel.Encode wrote. Input that is truncated, altered, of another
// kind or of a newer version is an error that says so.
func DecodeSVR(file []byte) (*SVRModel, error) {
	var p svrPayload
	m := &SVRModel{}
	if err := linearmodel.Decode(file, kindSVR, svrVersion, &p, &p.Payload, &m.Model); err != nil {
		return nil, err
	}
	m.Epsilon, m.Squared, m.PredictionCol = p.Epsilon, p.Squared, p.PredictionCol
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model is damaged: %w", err)
	}
	return m, nil
}

// Save writes the model to a file. The file is either the old one or the whole new one.
func (m *SVRModel) Save(path string) error { return model.Save(path, m) }

// LoadSVR reads a model that SVRModel.Save wrote.
func LoadSVR(path string) (*SVRModel, error) { return model.Load(path, DecodeSVR) }

// SVRModelOf returns the model that was collected under a name from the dataset that
// TrainSVR returned.
func SVRModelOf(result *engine.Result, name string) (*SVRModel, error) {
	return model.Collected(result, name, DecodeSVR)
}

// Dataset makes the model a dataset of the job, as TrainSVR returns one, so that a saved
// model can be given to PredictSVR.
func (m *SVRModel) Dataset(b *engine.Builder) *engine.Dataset { return model.Dataset(b, m) }

// Transform implements model.Model: it is PredictSVR with the columns of training.
func (m *SVRModel) Transform(d *engine.Dataset) *engine.Dataset {
	b := model.BuilderOf("svm.SVRModel.Transform", d)
	return PredictSVR(d, m.Dataset(b), PredictOptions{PredictionCol: m.PredictionCol})
}

// Bind implements model.Binder.
func (m *SVRModel) Bind(l *model.Layout) (model.Step, error) {
	return linearmodel.BindNumber(&m.Model, l, orName(m.PredictionCol, defaultPrediction), linearmodel.Same)
}
