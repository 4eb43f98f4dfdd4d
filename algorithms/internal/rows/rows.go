package rows

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// LabelKind is the kind of labels.
type LabelKind int

const (
	// NoLabel is for algorithms without labels.
	NoLabel LabelKind = iota
	// NumberLabel is a number column, taken as float64.
	NumberLabel
	// ClassLabel is a column of any scalar type. Its distinct values in ascending order,
	// numbers by value, text by bytes, false before true, are the classes 0, 1, …; a row's
	// label is the number of its class.
	ClassLabel
)

// Columns names the columns that are read from a dataset.
type Columns struct {
	// Vector names a vector column, dense or sparse; Features name number columns instead. If
	// both are empty, the dataset's only vector column is taken.
	Vector   string
	Features []string
	Label    string
	Weight   string // empty: every row weighs 1
	Offset   string // empty: 0
	// Censor names a column of numbers or bools. 1 says that the event was seen at the label, 0
	// that it lies beyond it. Empty means that it was seen in every row.
	Censor string
	// Skip leaves out rows with a value that is null, NaN or infinite, and counts them as "rows
	// skipped" in the run's report. Otherwise such a row is an error that names row and column.
	Skip bool
}

// Table is a checked dataset, as known when the job is built.
type Table struct {
	// Rows has the checked rows, one batch per shard.
	Rows *engine.Dataset
	// Facts has one row, encoded Facts.
	Facts *engine.Dataset
	// Whether rows are sparse, and whether there are weights, offsets and censoring.
	Sparse, Weighted, Shifted, Censored bool
	Label                               LabelKind
	// State, if set, returns the bytes that training keeps on the heap for each row, for the
	// memory budget.
	State func(f *Facts) int64

	columns    Columns
	vector     string   // the vector column, for messages
	components []string // what messages call the components of the vector
	layout     Layout
	dim        int // 0 where it is known only from the data
	labelType  string
}

// Facts are the facts about all rows that are known before training. They are the same on every
// subtask.
type Facts struct {
	// Declared is the number of features, from the column's type or from the largest index.
	Declared int
	// Columns are the features that occur, in ascending order, if training runs over these
	// alone (sparse rows of very many declared features). It is nil if training runs over all.
	Columns []int32
	Rows    int64
	// Weighing is the number of rows whose weight is above 0.
	Weighing int64
	Weight   float64 // total
	// Mean, deviation and largest absolute value of each feature that training runs over. The
	// first two are weighted, and absent entries count as 0. Std divides by the weight, and is
	// 0 for a column that is constant up to rounding. Rows of weight 0 are left out.
	Mean, Std, MaxAbs []float64
	// Classes are the values of a ClassLabel as text, in ascending order of the values.
	// ClassWeights are their weights. LabelType is the type of the column, as schemas print it.
	Classes      []string
	ClassWeights []float64
	LabelType    string
	// The label of a NumberLabel: mean and deviation, which are weighted, and extremes.
	LabelMean, LabelStd, LabelMin, LabelMax float64
	// OffsetMean is the weighted mean of the offsets, 0 without offsets.
	OffsetMean float64

	keys []string // of the classes, see Dictionary
}

// Dim returns the number of features that training runs over.
func (f *Facts) Dim() int {
	if f.Columns != nil {
		return len(f.Columns)
	}
	return f.Declared
}

// TwoClasses returns an error for labels that are all of one class. A classifier could learn
// nothing from them, and most often the column is the wrong one, or rows are missing. column
// names the column of the labels; it may be "".
func TwoClasses(column string, classes []string) error {
	if len(classes) != 1 {
		return nil
	}
	of := ""
	if column != "" {
		of = fmt.Sprintf(" in column %q", column)
	}
	return fmt.Errorf("every label%s is %q: a classifier needs two classes or more", of, classes[0])
}

// Weighty returns an error if all rows of a class weigh 0.
func (f *Facts) Weighty() error { return Weighty(f.Classes, f.ClassWeights) }

// Weighty returns an error if all rows of a class weigh 0. weights are the total weights of the
// classes. Nothing could be learnt about such a class, and the others would be predicted with
// certainty.
func Weighty(classes []string, weights []float64) error {
	for i, w := range weights {
		if !(w > 0) {
			return fmt.Errorf("every row of class %q weighs 0: leave such rows out, or give some a weight", classes[i])
		}
	}
	return nil
}

// Block is the rows of one shard, as views.
type Block struct {
	N, D   int
	Dense  []float64  // row-major N×D, where rows are dense
	Sparse kernel.CSR // where rows are sparse
	// Columns, if not nil, are the features of the shard's sparse rows, in ascending order.
	// Sparse.Col are then indices into it. See OpenNarrow.
	Columns []int32
	Label   []float64 // nil where there are none
	Weight  []float64 // nil where every row weighs 1
	Offset  []float64 // nil where it is 0
	Censor  []float64 // 0 or 1; nil where it is 1
}
