package glm

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// Model is a trained generalised linear model. Use it through a pointer, and do not change it
// after the first prediction. Any number of goroutines may use the same model.
//
// Coefficients has one row, and Intercepts one value. Both are for the linked mean and unscaled
// features.
type Model struct {
	linearmodel.Model `json:"-"`
	// Family and Link are those of the training. Link is never Auto.
	Family Family `json:"family"`
	Link   Link   `json:"link"`
	// Power is the power of the mean in the variance of the family Tweedie, and 0 for other
	// families.
	Power float64 `json:"power,omitempty"`
	// PredictionCol names the column of predictions; empty means "prediction".
	PredictionCol string `json:"prediction_column,omitempty"`
}

// Summary describes a training. Inference is its table of standard errors. Term is a line of
// the table.
type (
	Summary   = linearmodel.Summary
	Inference = linearmodel.Inference
	Term      = linearmodel.Term
)

// Predict returns the predicted mean of a row with an offset of 0. If x does not have Dim
// features, the result is NaN. Only the first call allocates.
func (m *Model) Predict(x []float64) float64 { return m.Mean(m.Margin(x)) }

// PredictSparse does what Predict does, for a sparse row. The row is given by its nonzero
// values and their indices in ascending order. If indices do not ascend or lie outside
// 0..Dim-1, the result is NaN.
func (m *Model) PredictSparse(indices []int32, values []float64) float64 {
	return m.Mean(m.SparseMargin(indices, values))
}

// Mean returns the mean for a margin, which is the Margin or SparseMargin of a row plus the
// row's offset.
func (m *Model) Mean(margin float64) float64 { return m.Link.mean(margin) }

// payload is the content of a model's file.
type payload struct {
	linearmodel.Payload
	*Model
}

const version = 1

// Kind implements model.Model.
func (m *Model) Kind() string { return kind }

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid.
func (m *Model) Encode() ([]byte, error) {
	return linearmodel.Encode(m.check(), kind, version, &m.Model, payload{m.Payload(), m})
}

// check returns an error if the model is not valid.
func (m *Model) check() error {
	if m.Margins() != 1 {
		return fmt.Errorf("there are coefficients of %d margins, want 1", m.Margins())
	}
	if err := checkFamily(m.Family, m.Link, m.Power); err != nil {
		return err
	}
	return m.Check()
}

// Decode decodes what Encode returned. It returns an error that names the cause if the file is
// truncated, altered, of another kind or of a newer version.
func Decode(file []byte) (*Model, error) {
	p := payload{Model: &Model{}}
	if err := linearmodel.Decode(file, kind, version, &p, &p.Payload, &p.Model.Model); err != nil {
		return nil, err
	}
	return model.Whole(p.Model, p.check())
}

// Save writes the model to the file path. An existing file is replaced atomically: after a
// failure it still has the old contents.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }

// ModelOf returns the model that was collected under the given name. The collected dataset must
// be the dataset that Train returned.
func ModelOf(result *engine.Result, name string) (*Model, error) {
	return model.Collected(result, name, Decode)
}

// Dataset returns the model as a dataset of the job, like the dataset that Train returns. So a
// saved model can be passed to Predict.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset { return model.Dataset(b, m) }

// Transform implements model.Model. It calls Predict with the columns of training.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("glm.Model.Transform", d)), PredictOptions{PredictionCol: m.PredictionCol})
}

// Bind implements model.Binder.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	return linearmodel.BindNumber(m, l, m.PredictionCol, (*Model).Mean)
}

// PredictOptions are options of Predict.
type PredictOptions = model.LinearPredictOptions

// Predict adds the predicted mean to each row, with the same bits as Model.Predict,
// PredictSparse and Mean. made is the model as a dataset of one row, from Train or from
// Model.Dataset. Rows are not moved between subtasks.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return linearmodel.PredictNumber("glm.Predict", "GLMPredict", d, made, o, Decode, (*Model).Mean)
}
