package gbdt

import (
	"math"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Kind is the kind of the models of this package.
const Kind = "gbdt"

// Classes describes the classes of a classifier: Type is the type of the label column, and
// Values has the classes as text, in ascending order. Both are empty for a regression.
type Classes = signature.Classes

// Model is an ensemble of trained trees. It is used by pointer, and must not be changed after
// its first prediction. Any number of goroutines may use one Model.
//
// Rows are slices of numbers. A text feature is given by the code that Code returns for its
// category. NaN means a missing value.
type Model struct {
	// Objective is the loss that training minimised. Parameters has the loss's parameters that
	// were not zero in Params; its keys are the names of their fields. CustomName is the name
	// of a custom objective.
	Objective  Objective
	Parameters map[string]float64
	CustomName string
	// Link is the function from margins to predictions.
	Link Link
	// Classes are the classes of a classification, in ascending order.
	Classes Classes
	// Ensemble has the trees, round by round. Ensemble.Base has the margins that all rows start
	// from.
	Ensemble *tree.Ensemble
	// Dim is the number of features of a row. Columns maps features of the ensemble to features
	// of a row, in ascending order. If Columns is nil, the ensemble has all features of a row.
	Dim     int
	Columns []int32
	// AbsentIsZero says that values absent from sparse rows are 0; otherwise they are missing.
	AbsentIsZero bool
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol, ProbabilityCol string
	// Summary describes the training.
	Summary Summary

	inputs signature.Inputs
	once   sync.Once
	scorer *tree.Scorer
	codes  []map[string]int32 // codes[j] has the code of each category of text feature j of a row
	rooms  sync.Pool          // of *room

	explaining  sync.Once
	explainer   *tree.Explainer
	unexplained error
}

// Summary describes a training.
type Summary struct {
	// Rows is the number of rows, including held-out rows, and Weight is their total weight.
	Rows   int64   `json:"rows"`
	Weight float64 `json:"weight"`
	// Rounds is the number of rounds that were made. BestRound is the best of these rounds with
	// early stopping, and the last one otherwise. The model has the trees up to BestRound. Both
	// numbers count from the first round of this training, even if it continues a model.
	Rounds    int `json:"rounds"`
	BestRound int `json:"best_round"`
	// Sets and Metrics are the names of the sets and of the metrics that were measured on them.
	// Record[round][set][metric] is a value of a metric.
	Sets    []string    `json:"sets"`
	Metrics []string    `json:"metrics"`
	Record  [][][]Value `json:"record"`
}

// room is working memory for one prediction.
type room struct{ x, margins []float64 }

var _ model.Binder = (*Model)(nil)

// Kind returns "gbdt".
func (m *Model) Kind() string { return Kind }

// Inputs returns the columns that the model was trained on.
func (m *Model) Inputs() []model.Input { return append([]model.Input(nil), m.inputs...) }

// Rounds returns the number of rounds whose trees the model has.
func (m *Model) Rounds() int { return len(m.Ensemble.Trees) / m.Ensemble.Outputs }

// prepare makes the scorer and the codes in its first call.
func (m *Model) prepare() {
	m.once.Do(func() {
		m.scorer, m.codes = m.Ensemble.Scorer(), signature.CodesOf(m.categories())
	})
}

// Code returns the number that stands for a category of a text feature in rows. It returns NaN
// for a category that training has not seen.
func (m *Model) Code(feature int, category string) float64 {
	m.prepare()
	if feature >= 0 && feature < len(m.codes) {
		if code, ok := m.codes[feature][category]; ok {
			return float64(code)
		}
	}
	return math.NaN()
}

// take returns working memory, which give returns to the pool.
func (m *Model) take() *room {
	m.prepare()
	if r, ok := m.rooms.Get().(*room); ok {
		return r
	}
	return &room{x: make([]float64, len(m.Ensemble.Features)), margins: make([]float64, m.Ensemble.Outputs)}
}

func (m *Model) give(r *room) { m.rooms.Put(r) }

// Margins writes the margin of each output to dst: the base plus the sum of the trees, before
// the link. It returns false, and leaves dst unchanged, if the row does not have Dim features
// or dst does not have one element for each output. It does not allocate, except in the first
// calls.
func (m *Model) Margins(row, dst []float64) bool { return m.score(signature.Dense(row), dst) }

// MarginsSparse does what Margins does for a sparse row, whose only entries are values at the
// given indices. The indices must be in ascending order, from 0 to Dim−1.
func (m *Model) MarginsSparse(indices []int32, values, dst []float64) bool {
	return m.score(signature.Sparse(indices, values), dst)
}

// score does what Margins does, for a dense or sparse point.
func (m *Model) score(p signature.Point, dst []float64) bool {
	r := m.take()
	defer m.give(r)
	if !m.load(p, r.x) || len(dst) != m.Ensemble.Outputs {
		return false
	}
	m.scorer.Scores(r.x, dst)
	return true
}

// Predict returns the prediction for a row: a number, or, for a classification, the index in
// Classes.Values of the most probable class. Of equally probable classes it returns the first.
// It returns NaN if the row does not have Dim features. It does not allocate, except in the
// first calls.
func (m *Model) Predict(row []float64) float64 { return m.predict(signature.Dense(row)) }

// PredictSparse does what Predict does for a sparse row; see MarginsSparse.
func (m *Model) PredictSparse(indices []int32, values []float64) float64 {
	return m.predict(signature.Sparse(indices, values))
}

// predict does what Predict does, for a dense or sparse point.
func (m *Model) predict(p signature.Point) float64 {
	if !p.Fits(m.Dim) {
		return math.NaN()
	}
	return m.predictTo(p, nil)
}

// PredictProbability writes the probability of each class to dst. It returns false if the row
// does not have Dim features, if dst does not have one element for each class, or if the model
// is a regression.
func (m *Model) PredictProbability(row, dst []float64) bool {
	return m.predictProbability(signature.Dense(row), dst)
}

// PredictProbabilitySparse does what PredictProbability does for a sparse row; see
// MarginsSparse.
func (m *Model) PredictProbabilitySparse(indices []int32, values, dst []float64) bool {
	return m.predictProbability(signature.Sparse(indices, values), dst)
}

// predictProbability does what PredictProbability does, for a dense or sparse point.
func (m *Model) predictProbability(p signature.Point, dst []float64) bool {
	r := m.take()
	defer m.give(r)
	if len(dst) == 0 || len(dst) != len(m.Classes.Values) || !m.load(p, r.x) {
		return false
	}
	m.scorer.Scores(r.x, r.margins)
	m.probabilities(r.margins, dst)
	return true
}

// decide returns the prediction that follows from the margins.
func (m *Model) decide(margins []float64) float64 {
	switch {
	case m.Link == Shares:
		return float64(kernel.Argmax(margins))
	case len(m.Classes.Values) == 2:
		if margins[0] > 0 {
			return 1
		}
		return 0
	case m.Link == Exponential:
		return kernel.Exp(margins[0])
	case m.Link == Sigmoid:
		return kernel.Sigmoid(margins[0])
	}
	return margins[0]
}

// probabilities writes the probabilities of the classes, which follow from the margins, to dst.
func (m *Model) probabilities(margins, dst []float64) {
	if m.Link != Shares {
		dst[0], dst[1] = kernel.Sigmoid(-margins[0]), kernel.Sigmoid(margins[0])
		return
	}
	copy(dst, margins)
	kernel.Softmax(dst)
}
