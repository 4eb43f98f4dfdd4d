package logistic

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Model is a trained regression. Use it through a pointer, and do not change it after the first
// prediction. Any number of goroutines may use the same model.
//
// A binary model has two classes; its Coefficients has one row and its Intercepts one value,
// for the log odds of the second class. A multinomial model has one row of Coefficients and one
// value of Intercepts for every class. Coefficients and intercepts apply to unscaled features.
type Model struct {
	linearmodel.Model `json:"-"`
	// Classes has the classes in ascending order, and the type of the label column.
	Classes linearmodel.Classes `json:"-"`
	// A binary model predicts the second class if its probability is above Threshold.
	Threshold float64 `json:"threshold"`
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol  string `json:"prediction_column,omitempty"`
	ProbabilityCol string `json:"probability_column,omitempty"`
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
	// LogLikelihood is the log-likelihood of the weighted rows.
	LogLikelihood = "log_likelihood"
	// NullLogLikelihood is the log-likelihood of a model that has only an intercept. It is
	// defined for a model with an intercept, and without class weights and offset.
	NullLogLikelihood = "null_log_likelihood"
	// PseudoRSquared is McFadden's 1 − LogLikelihood/NullLogLikelihood.
	PseudoRSquared = "pseudo_r_squared"
	// AIC is 2·coefficients − 2·LogLikelihood. It needs the table of standard errors.
	AIC = "aic"
)

// binary reports whether two classes share one set of coefficients.
func (m *Model) binary() bool { return m.Margins() == 1 }

// Predict returns the index in Classes.Values of the predicted class of a row. A binary model
// predicts the second class if its probability is above Threshold. A multinomial model predicts
// the most probable class; of several classes with the same probability, it predicts the first.
// If the row does not have Dim features or contains a NaN, the result is -1. Predict does not
// add an offset. Only the first call allocates memory.
func (m *Model) Predict(x []float64) int {
	if m.binary() {
		return m.decide(m.Margin(x))
	}
	return m.Largest(x)
}

// PredictSparse does what Predict does, for a sparse row. The row is given by its nonzero
// values and their indices in ascending order. If indices do not ascend or lie outside
// 0..Dim-1, the result is -1.
func (m *Model) PredictSparse(indices []int32, values []float64) int {
	if m.binary() {
		return m.decide(m.SparseMargin(indices, values))
	}
	return m.SparseLargest(indices, values)
}

// PredictProbability writes the probability of each class to dst, which must have one element
// for each class. It returns false and does not change dst if dst has another length, or if the
// row does not have Dim features. Only the first call allocates memory.
func (m *Model) PredictProbability(x, dst []float64) bool {
	if len(dst) != len(m.Classes.Values) || !m.MarginsTo(x, dst[:m.Margins()]) {
		return false
	}
	m.probabilities(dst)
	return true
}

// PredictProbabilitySparse does what PredictProbability does, for a sparse row.
func (m *Model) PredictProbabilitySparse(indices []int32, values, dst []float64) bool {
	if len(dst) != len(m.Classes.Values) || !m.SparseMarginsTo(indices, values, dst[:m.Margins()]) {
		return false
	}
	m.probabilities(dst)
	return true
}

// decide returns the predicted class, given the log odds of the second class.
func (m *Model) decide(margin float64) int {
	switch p := kernel.Sigmoid(margin); {
	case p != p:
		return -1
	case p > m.Threshold:
		return 1
	}
	return 0
}

// largest returns the class with the largest margin; of several classes with the same margin,
// it returns the first, as linearmodel.Model.Largest does. A NaN is never the largest margin.
// If all margins are NaN, largest returns −1.
func largest(margins []float64) int {
	best, at := math.Inf(-1), -1
	for a, v := range margins {
		if v > best || at < 0 && v == v {
			best, at = v, a
		}
	}
	return at
}

// probabilities replaces the margins at the start of dst by the probabilities of all classes.
func (m *Model) probabilities(dst []float64) {
	if m.binary() {
		dst[0], dst[1] = kernel.Sigmoid(-dst[0]), kernel.Sigmoid(dst[0])
		return
	}
	kernel.Softmax(dst)
}

// finish returns the model of a completed fit.
func (p Params) finish(f *linearmodel.Fit) (model.Model, error) {
	m := &Model{
		Classes: linearmodel.Classes{Type: f.Facts.LabelType, Values: f.Facts.Classes}, Threshold: p.Threshold,
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol,
	}
	if m.Threshold == 0 {
		m.Threshold = defaultThreshold
	}
	m.Take(f.Model)
	s := &m.Summary
	likelihood := -float64(s.Weight * s.Loss)
	s.Note(LogLikelihood, likelihood)
	if !p.NoIntercept && p.OffsetCol == "" && !p.Balanced && len(p.ClassWeights) == 0 {
		var null float64
		for _, w := range f.Facts.ClassWeights {
			null += float64(w * kernel.Log(w/s.Weight))
		}
		s.Note(NullLogLikelihood, null)
		s.Note(PseudoRSquared, 1-likelihood/null)
	}
	if !p.Inference || f.Result.Reason == optim.Diverging {
		return m, nil
	}
	var err error
	if s.Inference, err = f.ZTable(nil); err != nil {
		return nil, err
	}
	if s.Inference != nil {
		s.Note(AIC, float64(2*s.Inference.Rank)-float64(2*likelihood))
	}
	return m, nil
}

// payload is the content of a model's file.
type payload struct {
	linearmodel.Payload
	linearmodel.Classes
	*Model
}

const version = 1

// Kind implements model.Model.
func (m *Model) Kind() string { return kind }

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid.
func (m *Model) Encode() ([]byte, error) {
	return linearmodel.Encode(m.check(), kind, version, &m.Model, payload{m.Payload(), m.Classes, m})
}

// check returns an error if the model is not valid.
func (m *Model) check() error {
	k := len(m.Classes.Values)
	if err := m.Classes.Check(2); err != nil {
		return err
	}
	if m.Margins() != k && (m.Margins() != 1 || k != 2) {
		return fmt.Errorf("there are coefficients of %d margins for %d classes", m.Margins(), k)
	}
	if !(m.Threshold > 0 && m.Threshold < 1) {
		return fmt.Errorf("the threshold is %v", m.Threshold)
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
	p.Model.Classes = p.Classes
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
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset { return m.Classes.Dataset(b, m) }
