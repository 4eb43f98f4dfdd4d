package linear

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// Model is a trained regression. Use it through a pointer, and do not change it after the first
// prediction. Any number of goroutines may use the same model.
//
// Coefficients has one row, and Intercepts has one value. Both apply to unscaled features.
type Model struct {
	linearmodel.Model `json:"-"`
	// Huber is the parameter Huber of the training.
	Huber float64 `json:"huber"`
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

// These are the names of measures of fit in Summary.Measures.
const (
	// RSquared is the fraction of the label's weighted variance that the model explains.
	// Without an intercept it is the fraction of the label's weighted mean square. It is
	// defined for least squares without an offset.
	RSquared = "r_squared"
	// AdjustedRSquared is RSquared adjusted for the number of coefficients. It is defined if
	// the table of standard errors is.
	AdjustedRSquared = "adjusted_r_squared"
	// ResidualStdError is the square root of the weighted residual sum of squares divided by
	// the residual degrees of freedom. It is defined if the table of standard errors is.
	ResidualStdError = "residual_std_error"
	// FStatistic tests the hypothesis that all coefficients except the intercept are 0. FPValue
	// is its p value. Both are defined if the table of standard errors is.
	FStatistic = "f_statistic"
	FPValue    = "f_p_value"
	// MeanSquaredError is the weighted mean of squared residuals. It is defined for least
	// squares.
	MeanSquaredError = "mean_squared_error"
)

// Predict returns the prediction for a row, without an offset; the caller must add the offset
// of the row. If x does not have Dim features, the result is NaN. Only the first call allocates
// memory.
func (m *Model) Predict(x []float64) float64 { return m.Margin(x) }

// PredictSparse does what Predict does, for a sparse row. The row is given by its nonzero
// values and their indices in ascending order. If indices do not ascend or lie outside
// 0..Dim-1, the result is NaN.
func (m *Model) PredictSparse(indices []int32, values []float64) float64 {
	return m.SparseMargin(indices, values)
}

// finish returns the model of a completed fit.
func (p Params) finish(f *linearmodel.Fit) (model.Model, error) {
	m := &Model{Huber: p.Huber, PredictionCol: p.PredictionCol}
	m.Take(f.Model)
	s := &m.Summary
	if p.Huber > 0 {
		return m, nil
	}
	s.Note(MeanSquaredError, 2*s.Loss)
	var err error
	if s.Inference, err = f.TTable(); err != nil {
		return nil, err
	}
	variance := float64(f.Facts.LabelStd * f.Facts.LabelStd)
	if p.NoIntercept {
		variance += float64(f.Facts.LabelMean * f.Facts.LabelMean)
	}
	r2 := 1 - 2*s.Loss/variance
	if p.OffsetCol == "" {
		s.Note(RSquared, r2)
	}
	if s.Inference == nil || !(s.Inference.Freedom > 0) {
		return m, nil
	}
	freedom, rank := s.Inference.Freedom, float64(s.Inference.Rank)
	all, used := float64(f.Facts.Weighing), rank
	if !p.NoIntercept {
		all, used = all-1, rank-1
	}
	s.Note(ResidualStdError, math.Sqrt(2*s.Loss*s.Weight/freedom))
	if p.OffsetCol == "" {
		s.Note(AdjustedRSquared, 1-(1-r2)*all/freedom)
		if used > 0 {
			statistic := (r2 / used) / ((1 - r2) / freedom)
			s.Note(FStatistic, statistic)
			s.Note(FPValue, linearmodel.FTail(statistic, used, freedom))
		}
	}
	return m, nil
}

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
	if !(m.Huber >= 0) {
		return fmt.Errorf("the parameter Huber is %v", m.Huber)
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
	return Predict(d, m.Dataset(model.BuilderOf("linear.Model.Transform", d)), PredictOptions{PredictionCol: m.PredictionCol})
}

// Bind implements model.Binder.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	return linearmodel.BindNumber(m, l, m.PredictionCol, linearmodel.Same)
}

// PredictOptions are options of Predict.
type PredictOptions = model.LinearPredictOptions

// Predict adds the prediction to each row, with the same bits as Model.Predict and
// Model.PredictSparse. made is the model as a dataset of one row, from Train or from
// Model.Dataset. Rows are not moved between subtasks.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return linearmodel.PredictNumber("linear.Predict", "LinearPredict", d, made, o, Decode, linearmodel.Same)
}
