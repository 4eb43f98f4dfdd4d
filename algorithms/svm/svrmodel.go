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
// Coefficients has one row, and Intercepts one value. Both are for unscaled features.
type SVRModel struct {
	linearmodel.Model `json:"-"`
	// Epsilon and Squared are these parameters of the training.
	Epsilon float64 `json:"epsilon"`
	Squared bool    `json:"squared"`
	// PredictionCol names the column of predictions; empty means "prediction".
	PredictionCol string `json:"prediction_column,omitempty"`
}

// Predict returns the prediction for a row without its offset, which the caller adds. A row
// with other than Dim features gives NaN. Only the first call allocates.
func (m *SVRModel) Predict(x []float64) float64 { return m.Margin(x) }

// PredictSparse is Predict for a sparse row: its entries that are not 0, and their indices in
// ascending order. Indices that do not ascend or lie outside 0..Dim-1 give NaN.
func (m *SVRModel) PredictSparse(indices []int32, values []float64) float64 {
	return m.SparseMargin(indices, values)
}

// svrPayload is what a model's file holds.
type svrPayload struct {
	linearmodel.Payload
	*SVRModel
}

const svrVersion = 1

// Kind implements model.Model.
func (m *SVRModel) Kind() string { return kindSVR }

// Encode returns the model's file, the same bytes for the same model. A model that is not valid
// is an error.
func (m *SVRModel) Encode() ([]byte, error) {
	return linearmodel.Encode(m.check(), kindSVR, svrVersion, &m.Model, svrPayload{m.Payload(), m})
}

// check returns an error if the model is not valid.
func (m *SVRModel) check() error {
	if m.Margins() != 1 {
		return fmt.Errorf("there are coefficients of %d margins, want 1", m.Margins())
	}
	if !(m.Epsilon >= 0) || math.IsInf(m.Epsilon, 0) {
		return fmt.Errorf("epsilon is %v", m.Epsilon)
	}
	return m.Check()
}

// DecodeSVR reads what SVRModel.Encode wrote. Input that is truncated, altered, of another kind
// or of a newer version is an error, which says so.
func DecodeSVR(file []byte) (*SVRModel, error) {
	p := svrPayload{SVRModel: &SVRModel{}}
	if err := linearmodel.Decode(file, kindSVR, svrVersion, &p, &p.Payload, &p.Model); err != nil {
		return nil, err
	}
	return model.Whole(p.SVRModel, p.check())
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

// Dataset makes the model a dataset of the job, like the one that TrainSVR returns, so that a
// saved model can be given to PredictSVR.
func (m *SVRModel) Dataset(b *engine.Builder) *engine.Dataset { return model.Dataset(b, m) }

// Transform implements model.Model: it is PredictSVR with the columns of training.
func (m *SVRModel) Transform(d *engine.Dataset) *engine.Dataset {
	return PredictSVR(d, m.Dataset(model.BuilderOf("svm.SVRModel.Transform", d)), PredictOptions{PredictionCol: m.PredictionCol})
}

// Bind implements model.Binder.
func (m *SVRModel) Bind(l *model.Layout) (model.Step, error) {
	return linearmodel.BindNumber(m, l, m.PredictionCol, linearmodel.Same)
}
