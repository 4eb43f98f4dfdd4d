package svm

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// SVRModel is a trained regression. Use it through a pointer, and do not change it after the
// first prediction. Any number of goroutines may use the same model.
//
// Coefficients has one row, and Intercepts one value. Both are for unscaled features.
type SVRModel struct {
	linearmodel.Model `json:"-"`
	// Epsilon and Squared are the values of these parameters in the training.
	Epsilon float64 `json:"epsilon"`
	Squared bool    `json:"squared"`
	// PredictionCol names the column of predictions; empty means "prediction".
	PredictionCol string `json:"prediction_column,omitempty"`
}

// Predict returns the prediction for a row without its offset; the caller adds the offset. If x
// does not have Dim features, the result is NaN. Only the first call allocates.
func (m *SVRModel) Predict(x []float64) float64 { return m.Margin(x) }

// PredictSparse does what Predict does, for a sparse row. The row is given by its nonzero
// values and their indices in ascending order. If indices do not ascend or lie outside
// 0..Dim-1, the result is NaN.
func (m *SVRModel) PredictSparse(indices []int32, values []float64) float64 {
	return m.SparseMargin(indices, values)
}

// svrPayload is the content of a model's file.
type svrPayload struct {
	linearmodel.Payload
	*SVRModel
}

const svrVersion = 1

// Kind implements model.Model.
func (m *SVRModel) Kind() string { return kindSVR }

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid.
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

// DecodeSVR decodes what SVRModel.Encode returned. It returns an error that names the cause if
// the file is truncated, altered, of another kind or of a newer version.
func DecodeSVR(file []byte) (*SVRModel, error) {
	p := svrPayload{SVRModel: &SVRModel{}}
	if err := linearmodel.Decode(file, kindSVR, svrVersion, &p, &p.Payload, &p.Model); err != nil {
		return nil, err
	}
	return model.Whole(p.SVRModel, p.check())
}

// Save writes the model to the file path. An existing file is replaced atomically: after a
// failure it still has the old contents.
func (m *SVRModel) Save(path string) error { return model.Save(path, m) }

// LoadSVR reads a model that SVRModel.Save wrote.
func LoadSVR(path string) (*SVRModel, error) { return model.Load(path, DecodeSVR) }

// SVRModelOf returns the model that was collected under the given name. The collected dataset
// must be the dataset that TrainSVR returned.
func SVRModelOf(result *engine.Result, name string) (*SVRModel, error) {
	return model.Collected(result, name, DecodeSVR)
}

// Dataset returns the model as a dataset of the job, like the dataset that TrainSVR returns. So
// a saved model can be passed to PredictSVR.
func (m *SVRModel) Dataset(b *engine.Builder) *engine.Dataset { return model.Dataset(b, m) }

// Transform implements model.Model. It calls PredictSVR with the columns of training.
func (m *SVRModel) Transform(d *engine.Dataset) *engine.Dataset {
	return PredictSVR(d, m.Dataset(model.BuilderOf("svm.SVRModel.Transform", d)), PredictOptions{PredictionCol: m.PredictionCol})
}

// Bind implements model.Binder.
func (m *SVRModel) Bind(l *model.Layout) (model.Step, error) {
	return linearmodel.BindNumber(m, l, m.PredictionCol, linearmodel.Same)
}
