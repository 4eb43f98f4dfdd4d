package rows

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// LabelKind is the kind of labels.
type LabelKind int

const (
	// NoLabel is the kind for algorithms without labels.
	NoLabel LabelKind = iota
	// NumberLabel is the kind for labels from a number column. They are converted to float64.
	NumberLabel
	// ClassLabel is the kind for labels from a column of numbers, text, bools, dates or times.
	// The distinct values of the column in ascending order are the classes 0, 1, …. Numbers are
	// ordered by value and text by bytes, and false comes before true. A row's label is the
	// number of its class.
	ClassLabel
)

// Columns has the names of the columns that are read from a dataset.
type Columns struct {
	// Vector names a vector column, dense or sparse. Features names number columns instead. If
	// both are empty, the dataset's only vector column is used.
	Vector   string
	Features []string
	Label    string
	Weight   string // if empty, every row has the weight 1
	Offset   string // if empty, every row has the offset 0
	// Censor names a column of numbers or bools, for labels that are times of events. 1 means
	// that the event was observed at the time in the label. 0 means that the row is
	// right-censored: the event had not happened until that time. If Censor is empty, the event
	// was observed in every row.
	Censor string
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool
}

// Table describes a checked dataset. It has what is known when the job is built.
type Table struct {
	// Rows has the checked rows, one batch per shard.
	Rows *engine.Dataset
	// Facts has one row, which encodes the Facts.
	Facts *engine.Dataset
	// Sparse is set if rows are sparse. Weighted, Shifted and Censored are set if there are
	// columns of weights, of offsets and of censoring.
	Sparse, Weighted, Shifted, Censored bool
	Label                               LabelKind
	// State, if set, returns the number of bytes that training keeps on the heap for each row.
	// These bytes are charged to the memory budget.
	State func(f *Facts) int64

	columns    Columns
	vector     string   // name of the vector column in messages
	components []string // the names of the vector's components in messages
	layout     Layout
	dim        int // number of features; 0 if it is known only from the data
	labelType  string
}

// Facts are statistics of all rows, computed before training. They are the same on every
// subtask.
type Facts struct {
	// Declared is the number of features: the size in the column's type, or else the largest
	// index plus 1.
	Declared int
	// Columns are the features that occur, in ascending order, if training uses only these
	// features. This is the case for sparse rows with very many declared features of which few
	// occur. Columns is nil if training uses all features.
	Columns []int32
	Rows    int64
	// Weighing is the number of rows whose weight is above 0.
	Weighing int64
	Weight   float64 // total weight of all rows
	// Mean, Std and MaxAbs are the mean, the standard deviation and the largest absolute value
	// of each feature that training uses. Mean and Std are weighted, and treat absent entries
	// of sparse rows as 0. Std divides by the total weight, and is 0 for a column that is
	// constant up to rounding errors. Rows of weight 0 are left out.
	Mean, Std, MaxAbs []float64
	// Classes are the values of a ClassLabel as text, in ascending order of the values.
	// ClassWeights are the total weights of the classes. LabelType is the type of the label
	// column, as schemas print it.
	Classes      []string
	ClassWeights []float64
	LabelType    string
	// LabelMean and LabelStd are the weighted mean and standard deviation of a NumberLabel.
	// LabelMin and LabelMax are its extremes.
	LabelMean, LabelStd, LabelMin, LabelMax float64
	// OffsetMean is the weighted mean of the offsets; it is 0 if there are no offsets.
	OffsetMean float64

	keys []string // Dictionary.Keys of the classes
}

// Dim returns the number of features that training uses.
func (f *Facts) Dim() int {
	if f.Columns != nil {
		return len(f.Columns)
	}
	return f.Declared
}

// TwoClasses returns an error if there is only one class. A classifier could learn nothing from
// such labels; the usual causes are that the wrong column was named, or that rows are missing.
// column names the column of the labels; it may be "".
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

// Weighty returns an error if all rows of a class have the weight 0.
func (f *Facts) Weighty() error { return Weighty(f.Classes, f.ClassWeights) }

// Weighty returns an error if all rows of a class have the weight 0. weights are the total
// weights of the classes. Nothing can be learnt about a class without weight: if there are two
// classes, the other class would be predicted with certainty.
func Weighty(classes []string, weights []float64) error {
	for i, w := range weights {
		if !(w > 0) {
			return fmt.Errorf("every row of class %q weighs 0: leave such rows out, or give some a weight", classes[i])
		}
	}
	return nil
}

// Block holds the rows of one shard, mostly as views of the shard's batch (see Table.Open).
type Block struct {
	N, D   int
	Dense  []float64  // row-major N×D, if rows are dense
	Sparse kernel.CSR // set if rows are sparse
	// Columns, if not nil, lists the features of the shard's sparse rows in ascending order.
	// Sparse.Col are then indices into Columns. See OpenNarrow.
	Columns []int32
	Label   []float64 // nil if there are no labels
	Weight  []float64 // nil if every row has the weight 1
	Offset  []float64 // nil if every offset is 0
	Censor  []float64 // 0 or 1; nil if every row has 1
}
