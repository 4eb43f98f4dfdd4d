package rows

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// LabelKind says what labels are.
type LabelKind int

const (
	// NoLabel is for algorithms that take none.
	NoLabel LabelKind = iota
	// NumberLabel is a number column, taken as float64.
	NumberLabel
	// ClassLabel is a column of any scalar type. Its distinct values in ascending order,
	// numbers by value, text by bytes, false before true, are the classes 0, 1, …; a row's
	// label is the number of its class.
	ClassLabel
)

// Columns names what is read of a dataset.
type Columns struct {
	// Vector names a vector column, dense or sparse; Features name number columns
	// instead. With neither the dataset's only vector column is taken.
	Vector   string
	Features []string
	Label    string
	Weight   string // empty: every row weighs 1
	Offset   string // empty: 0
	// Censor names a column of numbers or bools that says whether what the label tells was
	// seen (1) or only lies beyond it (0); empty: seen in every row.
	Censor string
	// Skip leaves rows out in which something is null, NaN or infinite, and counts them as
	// "rows skipped" in the run's report. Otherwise such a row is an error that names row
	// and column.
	Skip bool
}

// Table is a checked dataset: what is known when the job is built.
type Table struct {
	// Rows has the checked rows, one batch a shard.
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
	components []string // what messages call those of the vector
	layout     Layout
	dim        int // 0 where only the data show it
	labelType  string
}

// Facts are what is known of all rows before training; the same on every subtask.
type Facts struct {
	// Declared is the number of features that the column's type or the largest index says.
	Declared int
	// Columns are, in ascending order, the features that occur, where training runs over
	// these alone (sparse rows of very many declared features); nil where it runs over all.
	Columns []int32
	Rows    int64
	// Weighing is the number of rows whose weight is above 0.
	Weighing int64
	Weight   float64 // total
	// Of each feature that training runs over, weighted, absent entries counting as 0. Std
	// is with division by the weight, and 0 for a column that is constant but for rounding.
	// Rows of weight 0 are left out.
	Mean, Std, MaxAbs []float64
	// Classes are the values of a ClassLabel as text, in ascending order of the values;
	// ClassWeights their weights; LabelType the type of the column, as schemas print it.
	Classes      []string
	ClassWeights []float64
	LabelType    string
	// Of a NumberLabel, mean and deviation weighted.
	LabelMean, LabelStd, LabelMin, LabelMax float64
	// OffsetMean is the weighted mean of the offsets, 0 without.
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

// TwoClasses reports labels that are all of one class: whatever tells classes apart would tell
// nothing, and most often the column is not the one that is meant, or rows are missing. column
// is that of the labels, "" where it has no name.
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

// Weighty reports a class all of whose rows weigh 0.
func (f *Facts) Weighty() error { return Weighty(f.Classes, f.ClassWeights) }

// Weighty reports, of classes with the weights of their rows, one all of whose rows weigh 0:
// nothing could be learnt of it, and the others would be predicted with certainty.
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
	Sparse kernel.CSR // where they are not
	// Columns, where it is not nil, are the features that the shard's sparse rows have, in
	// ascending order, and Sparse.Col are numbers into it. See OpenNarrow.
	Columns []int32
	Label   []float64 // nil where there are none
	Weight  []float64 // nil where every row weighs 1
	Offset  []float64 // nil where it is 0
	Censor  []float64 // 0 or 1; nil where it is 1
}
