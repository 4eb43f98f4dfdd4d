package forest

import (
	"math"
	"slices"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// Kind is that of the models of this package.
const Kind = "forest"

// Classes are the classes of a classifier: their Type is that of the column of labels, their
// Values are texts in the order of the classes. Those of a regression are empty.
type Classes = signature.Classes

// Model is a trained forest. It is used by pointer and not changed once it predicts; any
// number of goroutines may use one.
type Model struct {
	// Task is what the forest predicts, and Classes are those of a classification, in
	// ascending order.
	Task    Task
	Classes Classes
	// Dim is the number of features of a row. Trees name them by their numbers.
	Dim int
	// Trees has the trees: for a classification with an output for each class, the shares of
	// the leaves, else with one. What it gives for a row is the mean over the trees.
	Trees *tree.Ensemble
	// AbsentIsZero says that what sparse rows leave out is 0; otherwise it is missing.
	AbsentIsZero bool
	// OutOfBag measures the forest by rows that trees did not draw; nil without OOBScore.
	OutOfBag *OutOfBag
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol, ProbabilityCol string
	// Summary tells about the training.
	Summary Summary

	inputs signature.Inputs
	once   sync.Once
	scorer *tree.Scorer
	free   sync.Pool // of *[]float64, a value for each class
}

// Summary tells about a training.
type Summary struct {
	Rows      int64     `json:"rows"`
	Weight    float64   `json:"weight"`
	Method    Method    `json:"method"`
	Criterion Criterion `json:"criterion"`
	Sampling  Sampling  `json:"sampling"`
	Share     float64   `json:"sample_share"`
	// Seed is what the draws started from.
	Seed uint64 `json:"seed"`
	// Nodes and Leaves are how many the trees have, MaxDepth the largest number of splits
	// above a leaf.
	Nodes    int64 `json:"nodes"`
	Leaves   int64 `json:"leaves"`
	MaxDepth int   `json:"max_depth"`
}

// OutOfBag measures a forest on the rows it was trained on, each predicted by the mean of
// those trees alone that did not draw it; a tree that took all rows, since it drew none of
// weight, is not among these. Weights are those of the rows; those of classes do not enter.
type OutOfBag struct {
	// Score is the accuracy of a classification, and R², 1 less the ratio of the squared
	// errors to those about the mean, of a regression.
	Score float64 `json:"score"`
	// Loss is the mean of −log of the share of the row's class, cut to 2^-52 and above, of a
	// classification, and the root of the mean squared error of a regression.
	Loss float64 `json:"loss"`
	// Rows are those that at least one tree did not draw; the others do not count.
	Rows int64 `json:"rows"`
	// Shards is the number of shards of the rows, and Skip says that some may have been left
	// out. Whole are the numbers of the trees that took all rows, ascending. PredictOutOfBag
	// goes by them.
	Shards int   `json:"shards,omitempty"`
	Skip   bool  `json:"skip,omitempty"`
	Whole  []int `json:"whole,omitempty"`
}

var _ model.Binder = (*Model)(nil)

// nan is a feature that is missing.
var nan = math.NaN()

// Kind returns "forest".
func (m *Model) Kind() string { return Kind }

// Inputs are the columns that the model was trained on.
func (m *Model) Inputs() []model.Input { return append([]model.Input(nil), m.inputs...) }

// prepare lays the trees out, once.
func (m *Model) prepare() { m.once.Do(func() { m.scorer = m.Trees.Scorer() }) }

// scores writes the mean over the trees to dst, which has a value for each output, for a
// point that fits.
func (m *Model) scores(x signature.Point, dst []float64) {
	if x.Indices == nil {
		m.scorer.Scores(x.Values, dst)
	} else {
		m.scorer.ScoresSparse(x.Indices, x.Values, m.absent(), dst)
	}
}

// absent says what sparse rows leave out.
func (m *Model) absent() tree.Absent {
	if m.AbsentIsZero {
		return tree.AbsentIsZero
	}
	return tree.AbsentIsMissing
}

// predict returns the prediction for a point that fits.
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
		v = float64(argmax(*buffer))
	}
	m.free.Put(buffer)
	return v
}

// guess returns the prediction for any point.
func (m *Model) guess(x signature.Point) float64 {
	switch {
	case x.Fits(m.Dim):
		return m.predict(x)
	case m.Task == Classification:
		return -1
	}
	return math.NaN()
}

// probabilities writes the probabilities of the classes for any point.
func (m *Model) probabilities(x signature.Point, dst []float64) bool {
	if m.Task != Classification || len(dst) != len(m.Classes.Values) || !x.Fits(m.Dim) {
		return false
	}
	m.prepare()
	m.scores(x, dst)
	return true
}

// Predict returns the prediction for a row: the number of a regression, which is the mean
// of what the trees give, or the number, among Classes.Values, of the class with the largest
// mean share, the first of equals. It is not the vote of most trees. NaN is a missing feature; of a categorical feature the
// value is the code, see Code. A row that has not Dim features gives NaN, or the class -1. It
// allocates nothing, the first calls excepted.
func (m *Model) Predict(x []float64) float64 { return m.guess(signature.Dense(x)) }

// PredictSparse is Predict for a row of which only some features are given, by their numbers
// in ascending order; what the others are AbsentIsZero says. Indices that do not ascend or
// lie outside 0..Dim-1 give NaN, or the class -1.
func (m *Model) PredictSparse(indices []int32, values []float64) float64 {
	return m.guess(signature.Sparse(indices, values))
}

// PredictProbability writes the probability of each class to dst, which has a value for
// each: the mean of the shares that the class has in the leaves. It reports whether it can be
// told; see Predict.
func (m *Model) PredictProbability(x, dst []float64) bool {
	return m.probabilities(signature.Dense(x), dst)
}

// PredictProbabilitySparse is PredictProbability for a sparse row.
func (m *Model) PredictProbabilitySparse(indices []int32, values, dst []float64) bool {
	return m.probabilities(signature.Sparse(indices, values), dst)
}

// Code returns the value that stands for a category of a feature of text, -1 for one that
// training has not seen. It is NaN for features that are not text.
func (m *Model) Code(feature int, category string) float64 {
	if feature < 0 || feature >= len(m.Trees.Categories) || m.Trees.Categories[feature] == nil {
		return math.NaN()
	}
	return float64(slices.Index(m.Trees.Categories[feature], category))
}
