package forest

import (
	"github.com/superstep-ml/superstep/algorithms/internal/columns"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// Kind is that of the models of this package.
const Kind = "forest"

// Classes are the classes of a classifier: their Type is that of the column of labels, their
// Values are texts in the order of the classes. Those of a regression are empty.
type Classes = columns.Classes

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

	columns columns.Inputs
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
// those trees alone that did not draw it. Weights are those of the rows; those of classes do
// not enter.
type OutOfBag struct {
	// Score is the accuracy of a classification, and R², 1 less the ratio of the squared
	// errors to those about the mean, of a regression.
	Score float64 `json:"score"`
	// Loss is the mean of −log of the share of the row's class, cut to 2^-52 and above, of a
	// classification, and the root of the mean squared error of a regression.
	Loss float64 `json:"loss"`
	// Rows are those that at least one tree did not draw; the others do not count.
	Rows int64 `json:"rows"`
}
