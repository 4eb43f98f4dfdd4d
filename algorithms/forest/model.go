package forest

import (
	"math"
	"slices"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Kind is the kind of the models of this package.
const Kind = "forest"

// Classes describes the classes of a classifier: Type is the type of the label column, and
// Values has the classes as text, in ascending order. For a regression both are empty.
type Classes = signature.Classes

// Model is a trained forest. It is used by pointer, and must not be changed after its first
// prediction. Any number of goroutines may use it.
type Model struct {
	// Task is what the forest predicts: numbers or classes. Classes has the classes of a
	// classification, in ascending order.
	Task    Task
	Classes Classes
	// Dim is the number of features of a row. Trees refer to features by their numbers.
	Dim int
	// Trees has the trees. A classification has an output for each class, with the shares in
	// the leaves; a regression has one output. The prediction for a row is the mean over the
	// trees.
	Trees *tree.Ensemble
	// AbsentIsZero says that features absent from a sparse row are 0; otherwise they are
	// missing.
	AbsentIsZero bool
	// OutOfBag has measures of the forest on rows that trees did not draw. It is nil if
	// training did not have OOBScore.
	OutOfBag *OutOfBag
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol, ProbabilityCol string
	// Summary describes the training.
	Summary Summary

	inputs signature.Inputs
	once   sync.Once
	scorer *tree.Scorer
	free   sync.Pool // of *[]float64, slices with a value for each class
}

// Summary describes a training.
type Summary struct {
	Rows      int64     `json:"rows"`
	Weight    float64   `json:"weight"`
	Method    Method    `json:"method"`
	Criterion Criterion `json:"criterion"`
	Sampling  Sampling  `json:"sampling"`
	Share     float64   `json:"sample_share"`
	// Seed is the seed of the random draws.
	Seed uint64 `json:"seed"`
	// Nodes and Leaves are the numbers of nodes and leaves of all trees. MaxDepth is the
	// largest number of splits above a leaf.
	Nodes    int64 `json:"nodes"`
	Leaves   int64 `json:"leaves"`
	MaxDepth int   `json:"max_depth"`
}

// OutOfBag has measures of a forest on its training rows. The prediction for a row is the mean
// over the trees that did not draw it. A tree that used all rows, because it drew no row of
// weight above 0, counts as having drawn every row. Rows are weighted by their weights, without
// the factors of ClassWeights.
type OutOfBag struct {
	// Score is the accuracy of a classification. For a regression it is R²: 1 minus the ratio
	// of the sum of squared errors to the sum of squared differences from the mean.
	Score float64 `json:"score"`
	// Loss of a classification is the mean of −log of the predicted share of the row's class,
	// where a share below 2^-52 counts as 2^-52. Loss of a regression is the root of the mean
	// squared error.
	Loss float64 `json:"loss"`
	// Rows is the number of rows that at least one tree did not draw. Other rows are not
	// measured.
	Rows int64 `json:"rows"`
	// PredictOutOfBag needs the following three fields. Shards is the number of shards of the
	// rows. Skip means that rows may have been left out. Whole has the numbers of the trees
	// that used all rows, in ascending order.
	Shards int   `json:"shards,omitempty"`
	Skip   bool  `json:"skip,omitempty"`
	Whole  []int `json:"whole,omitempty"`
}

var _ model.Binder = (*Model)(nil)

// nan is the value of a missing feature.
var nan = math.NaN()

// Kind returns "forest".
func (m *Model) Kind() string { return Kind }

// Inputs returns the columns that the model was trained on.
func (m *Model) Inputs() []model.Input { return append([]model.Input(nil), m.inputs...) }

// prepare lays the trees out for scoring in its first call.
func (m *Model) prepare() { m.once.Do(func() { m.scorer = m.Trees.Scorer() }) }

// scores writes to dst the mean over the trees for a point that has the right number of
// features. dst has an element for each output.
func (m *Model) scores(x signature.Point, dst []float64) {
	if x.Indices == nil {
		m.scorer.Scores(x.Values, dst)
	} else {
		m.scorer.ScoresSparse(x.Indices, x.Values, m.absent(), dst)
	}
}

// absent returns how features absent from a sparse row are treated.
func (m *Model) absent() tree.Absent {
	if m.AbsentIsZero {
		return tree.AbsentIsZero
	}
	return tree.AbsentIsMissing
}

// predict returns the prediction for a point that has the right number of features.
func (m *Model) predict(x signature.Point) float64 {
	m.prepare()
	buffer, ok := m.free.Get().(*[]float64)
	if !ok {
		b := make([]float64, m.Trees.Outputs)
		buffer = &b
	}
	m.scores(x, *buffer)
	v := (*buffer)[0]
	if m.Task == Classification {
		v = float64(kernel.Argmax(*buffer))
	}
	m.free.Put(buffer)
	return v
}

// guess returns the prediction for a point. If the point does not fit the model, guess returns
// NaN, or -1 for a classification.
func (m *Model) guess(x signature.Point) float64 {
	switch {
	case x.Fits(m.Dim):
		return m.predict(x)
	case m.Task == Classification:
		return -1
	}
	return math.NaN()
}

// probabilities writes the probabilities of the classes for a point to dst. It returns false if
// the model is a regression, or if the point or dst does not fit the model.
func (m *Model) probabilities(x signature.Point, dst []float64) bool {
	if m.Task != Classification || len(dst) != len(m.Classes.Values) || !x.Fits(m.Dim) {
		return false
	}
	m.prepare()
	m.scores(x, dst)
	return true
}

// Predict returns the prediction for a row. For a regression it is the mean of the trees'
// predictions. For a classification it is the index in Classes.Values of the class with the
// largest mean share. Of equal mean shares it is the first class. It is not the majority vote
// of the trees. NaN means a missing feature. The value of a categorical feature is its code;
// see Code. If x does not have exactly Dim features, Predict returns NaN, or -1 for a
// classification. Only the first calls allocate.
func (m *Model) Predict(x []float64) float64 { return m.guess(signature.Dense(x)) }

// PredictSparse does what Predict does for a sparse row: values has only some of the features,
// and indices has their numbers in ascending order. AbsentIsZero says how the other features
// are treated. If indices are not in ascending order or not in 0..Dim-1, PredictSparse returns
// NaN, or -1 for a classification.
func (m *Model) PredictSparse(indices []int32, values []float64) float64 {
	return m.guess(signature.Sparse(indices, values))
}

// PredictProbability writes the probability of each class to dst, which must have an element
// for each class. The probability is the mean, over the trees, of the share of the class in the
// leaf that the row reaches. PredictProbability returns false if Predict has no prediction for
// x.
func (m *Model) PredictProbability(x, dst []float64) bool {
	return m.probabilities(signature.Dense(x), dst)
}

// PredictProbabilitySparse does what PredictProbability does for a sparse row; see
// PredictSparse.
func (m *Model) PredictProbabilitySparse(indices []int32, values, dst []float64) bool {
	return m.probabilities(signature.Sparse(indices, values), dst)
}

// Code returns the number that stands for a category of a text feature in rows, or -1 if
// training has not seen the category. It returns NaN for features that are not text.
func (m *Model) Code(feature int, category string) float64 {
	if feature < 0 || feature >= len(m.Trees.Categories) || m.Trees.Categories[feature] == nil {
		return math.NaN()
	}
	return float64(slices.Index(m.Trees.Categories[feature], category))
}
