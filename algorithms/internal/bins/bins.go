package bins

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// MaxBins is the largest number of bins for values that a feature of numbers may have; one
// more is for what is missing, so that a bin fits a byte.
const MaxBins = 255

// MaxCategories is the largest number of categories of a feature, each of which has a bin; one
// more is for what is missing, so that a bin fits two bytes.
const MaxCategories = 1<<16 - 1

// MaxCategory is the largest code of a category in a column of integers.
const MaxCategory = 1<<16 - 1

// Columns names what is read of a dataset.
type Columns struct {
	// Vector names a vector column, dense or sparse; Features name columns of numbers, bools
	// and text, each of them a feature. With neither the dataset's only vector column is
	// taken.
	Vector   string
	Features []string
	// Categorical names those of the Features that are categorical although they are
	// integers: their values are the codes of the categories, 0 to MaxCategory. Text is
	// always categorical.
	Categorical []string
	// CategoricalAt are the components of the vector that hold such codes.
	CategoricalAt []int
	Label         string
	// LabelUpper names the upper end of labels that are intervals, which may be +Inf; Label
	// is then the lower one, which may be -Inf. It goes with a NumberLabel.
	LabelUpper string
	Weight     string // empty: every row weighs 1
	// Margins name number columns with what rows are scored before the first tree, one for
	// each output; empty: nothing.
	Margins []string
	// Group names a column of any scalar type; rows with equal values are a group, such as
	// the answers to one query. Rows of a group come to stand one behind the other in one
	// shard, in the order they had; groups in that of their first rows.
	Group string
	// Skip leaves rows out of which label, weight, margins or group are unusable, and counts
	// them as "rows skipped". Otherwise such a row is an error that names row and column.
	// Features that are missing are no reason to.
	Skip bool
	// CheckLabel, if set, says what is wrong with a number as a label. It is asked while rows
	// are checked only with Skip, as the places of those behind left out ones are lost then.
	CheckLabel func(v float64) error
}

// Options say how features are binned.
type Options struct {
	// MaxBins is the largest number of bins for numbers, 2 to 255; 0 means 255. Categories
	// have a bin each however many there are.
	MaxBins int
	// AbsentIsZero takes what sparse rows do not have for 0 in place of missing.
	AbsentIsZero bool
	// NoBundling gives every sparse feature a place of its own.
	NoBundling bool
}

// LabelKind says what labels are; see package rows.
type LabelKind = rows.LabelKind

// Kinds of labels.
const (
	NoLabel     = rows.NoLabel
	NumberLabel = rows.NumberLabel
	ClassLabel  = rows.ClassLabel
)

// Facts are what is known of all rows before training; the same on every subtask. They
// must not be modified.
type Facts struct {
	// Declared is the number of features of a row: of sparse ones that which the column's
	// type or the largest index says. Where very many are declared of which few occur,
	// Layout.Features has those that do.
	Declared int
	Rows     int64
	Weighing int64   // rows whose weight is above 0
	Weight   float64 // total
	// Classes are the values of a ClassLabel as text, in ascending order of the values;
	// ClassWeights their weights; LabelType the type of the column, as schemas print it.
	Classes      []string
	ClassWeights []float64
	LabelType    string
	// Of a NumberLabel, mean and deviation weighted (those of the lower ends of intervals,
	// and 0 where such an end is infinite).
	LabelMean, LabelStd, LabelMin, LabelMax float64
	// Missing has for each of Layout.Features the number of rows in which it is missing.
	Missing []int64
	// ShardRows has the number of rows of each shard of the job.
	ShardRows []int64
	Groups    int64 // of rows, in all
}

// Layout says what the features are and where rows have them; the same on every subtask.
// It must not be modified.
type Layout struct {
	Features []Feature
	// Columns are those of bytes, in order; the blocks hold them side by side.
	Columns []Column
	// Wide are the numbers, in ascending order, of the features that have a column of two
	// bytes: those of more categories than a byte tells apart.
	Wide []int
	// Slots is the length of a histogram: the slots of the columns one behind the other,
	// those of the wide features, then those of the features that rows hold as Sparse.
	Slots int
	// ColumnSlots is how many of the slots belong to Columns and Wide.
	ColumnSlots int
}

// Feature is a feature as training sees it. A bin is a number from 0 to Bins, of which Bins
// itself is the bin of what is missing.
type Feature struct {
	Name string
	// Number is that of the feature within a row, as nodes of trees name it.
	Number int
	// Categorical features have Codes, others Cuts.
	Categorical bool
	// Cuts ascend: bin b has the values from Cuts[b-1] up to, but without, Cuts[b], so that
	// a node that sends bins 0 to b left has the threshold Cuts[b]. There are Bins−1.
	Cuts []float32
	// Codes are the codes of the categories of the bins, in ascending order. Categories that
	// training has not seen count as missing.
	Codes []int32
	// Names are those of the categories, by their codes, where the column is text, nil where
	// it is not; then the code of bin b is b.
	Names []string
	// Bins is the number of bins for values: 0 where the feature is missing in every row.
	Bins int
	// Column is the number of the column of bytes that has the feature, −1 where it is one
	// of Layout.Wide, where rows hold it as Sparse, and where they do not hold it at all,
	// because it cannot split them.
	Column int
	// Slot is the first slot of the feature, within a histogram; −1 where it has none. It
	// has one for each bin but the implicit one, in the order of the bins.
	Slot int
	// Implicit is the bin that is not stored: a row in which nothing is stored of the
	// feature is in it, and its sums are those of all rows of a node minus the feature's
	// slots. It is −1 where every bin is stored.
	Implicit int
}

// Column is a column of bytes.
type Column struct {
	// Slot is the slot of byte 0; Width the number of bytes, and slots, there may be.
	Slot, Width int
	// Features are the numbers, within Layout.Features, of those that share the column: one
	// whose bins are the bytes, or several that are never stored in the same row. Then byte
	// 0 says that none of them is.
	Features []int
	// Block and Offset tell where it stands: the byte of a row is
	// Blocks[Block].Bins[row*Stride+Offset].
	Block, Offset int
}

// Span is the rows of one shard within those of a subtask.
type Span struct{ Shard, First, Rows int }

// Block is up to 32 columns of bytes side by side, row-major.
type Block struct {
	// First is the number of the first column, Stride how many there are.
	First, Stride int
	// Bins has row r at Bins[r*Stride:(r+1)*Stride].
	Bins []byte
}

// Sparse is, of each row, the slots of the features that have no column.
type Sparse struct {
	// RowPtr has one entry more than there are rows; row r has Slots[RowPtr[r]:RowPtr[r+1]],
	// in ascending order. Both are nil where every feature has a column.
	RowPtr []int64
	Slots  []uint32
}

// Data is the rows of a subtask, those of its shards one behind the other. It is good until
// the queue ends, and must not be modified.
type Data struct {
	Facts  *Facts // of the rows that train, also where these are others
	Layout *Layout
	Rows   int
	Shards []Span // those with rows
	Blocks []Block
	OnDisk bool // a file has the blocks, beyond the memory budget
	// Wide has, for each of Layout.Wide, the bins of the rows.
	Wide   [][]uint16
	Sparse Sparse
	Label  []float64 // nil where there are none; numbers of classes of a ClassLabel
	Upper  []float64 // upper ends of labels, nil where there are none
	Weight []float64 // nil where every row weighs 1
	// Margins is row-major, Rows × Outputs; nil where there are none.
	Margins []float64
	Outputs int
	// Groups has the first row of each group, and behind the last one Rows; nil where rows
	// have none. No group is in two shards.
	Groups []int32
}

// SlotOf returns the slot of a bin, −1 for the implicit one and where there are none.
func (f *Feature) SlotOf(bin int) int {
	switch {
	case f.Slot < 0 || bin == f.Implicit:
		return -1
	case f.Implicit >= 0 && bin > f.Implicit:
		return f.Slot + bin - 1
	}
	return f.Slot + bin
}

// Stored returns the number of slots of the feature.
func (f *Feature) Stored() int {
	switch {
	case f.Slot < 0:
		return 0
	case f.Implicit >= 0:
		return f.Bins
	}
	return f.Bins + 1
}

// BinOfSlot is the inverse of SlotOf, for slots of the feature.
func (f *Feature) BinOfSlot(slot int) int {
	bin := slot - f.Slot
	if f.Implicit >= 0 && bin >= f.Implicit {
		bin++
	}
	return bin
}

// Set returns the set of a node that sends bins of a categorical feature left or right, and
// whether it is the set of those that go right. It has the categories that do not go where
// missing values go, so that categories without a bin, which training has not seen, go with
// what is missing.
func (f *Feature) Set(left func(bin int) bool, missingLeft bool) (words []uint32, setRight bool) {
	for b, code := range f.Codes {
		if left(b) == missingLeft {
			continue
		}
		for len(words) <= int(code/32) {
			words = append(words, 0)
		}
		words[code/32] |= 1 << (code % 32)
	}
	return words, missingLeft
}
