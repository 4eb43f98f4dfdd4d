package bins

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// MaxBins is the largest number of bins for the values of a numeric feature. With one more bin
// for missing values, a bin fits in a byte.
const MaxBins = 255

// MaxCategories is the largest number of categories of a feature; each has a bin. With one more
// bin for missing values, a bin fits in two bytes.
const MaxCategories = 1<<16 - 1

// MaxCategory is the largest code of a category in a column of integers.
const MaxCategory = 1<<16 - 1

// Columns names the columns to read.
type Columns struct {
	// Vector names a vector column, dense or sparse. Features names columns of numbers, bools
	// and text; each is a feature. With neither, the dataset's only vector column is taken.
	Vector   string
	Features []string
	// Categorical names the integer columns in Features that are categorical: their values are
	// codes of categories, 0 to MaxCategory. Text is always categorical.
	Categorical []string
	// CategoricalAt has the components of the vector that have such codes.
	CategoricalAt []int
	Label         string
	// LabelUpper names the column of the upper ends of labels that are intervals; they may be
	// +Inf. Label then has the lower ends; they may be -Inf. It goes with a NumberLabel.
	LabelUpper string
	Weight     string // empty: every row weighs 1
	// Margins names number columns, one for each output, with the margins of rows before the
	// first tree; empty: none.
	Margins []string
	// Group names a column of any scalar type. Rows with equal values are a group, such as the
	// answers to one query. The rows of a group are brought together in one shard, in the order
	// they had. Groups are ordered by their first rows.
	Group string
	// Skip leaves out rows whose label, weight, margins or group are unusable, and counts them
	// as "rows skipped". Otherwise such a row is an error that names row and column. A missing
	// feature is no reason to skip a row.
	Skip bool
	// CheckLabel, if set, returns what is wrong with a number as a label. It is called while
	// rows are checked only with Skip, because later the numbers of rows after left out ones
	// are lost.
	CheckLabel func(v float64) error
}

// Options say how features are binned.
type Options struct {
	// MaxBins is the largest number of bins for numbers, 2 to 255; 0 means 255. Each category
	// has a bin, however many there are.
	MaxBins int
	// AbsentIsZero says that values absent from sparse rows are 0; otherwise they are missing.
	AbsentIsZero bool
	// NoBundling gives no two sparse features a common column.
	NoBundling bool
}

// LabelKind is the kind of labels; see package rows.
type LabelKind = rows.LabelKind

// Kinds of labels.
const (
	NoLabel     = rows.NoLabel
	NumberLabel = rows.NumberLabel
	ClassLabel  = rows.ClassLabel
)

// Facts are facts about all rows, known before training and the same on every subtask. They
// must not be modified.
type Facts struct {
	// Declared is the number of features of a row. For sparse rows it follows from the column's
	// type, or else from the largest index. Where very many are declared and few occur,
	// Layout.Features has only those that occur.
	Declared int
	Rows     int64
	Weighing int64   // rows whose weight is above 0
	Weight   float64 // total
	// Classes are the values of a ClassLabel as text, in ascending order of the values.
	// ClassWeights has their weights. LabelType is the type of the column, as schemas print it.
	Classes      []string
	ClassWeights []float64
	LabelType    string
	// LabelMean to LabelMax are for a NumberLabel. Mean and standard deviation are weighted.
	// For intervals, these are facts about the lower ends, with 0 for an infinite one.
	LabelMean, LabelStd, LabelMin, LabelMax float64
	// Missing has, for each of Layout.Features, the number of rows in which the feature is
	// missing.
	Missing []int64
	// ShardRows has the number of rows of each shard of the job.
	ShardRows []int64
	Groups    int64 // number of groups of rows
}

// Layout says what the features are and where they are stored. It is the same on every subtask,
// and must not be modified.
type Layout struct {
	Features []Feature
	// Columns has the columns of bytes, in the order of the blocks.
	Columns []Column
	// Wide has the indices, ascending, of the features with a column of two bytes: those whose
	// bins do not fit in a byte.
	Wide []int
	// Slots is the length of a histogram: first the slots of the columns, then those of the
	// wide features, then those of the features in Sparse.
	Slots int
	// ColumnSlots is the number of slots of Columns and Wide.
	ColumnSlots int
}

// Feature is a binned feature. A bin is a number from 0 to Bins; Bins itself is the bin of
// missing values.
type Feature struct {
	Name string
	// Number is the number of the feature in a row. Nodes of trees refer to features by it.
	Number int
	// Categorical features have Codes, others Cuts.
	Categorical bool
	// Cuts ascend. Bin b has the values v with Cuts[b-1] ≤ v < Cuts[b], so a node that sends
	// bins 0 to b left has the threshold Cuts[b]. There are Bins−1 cuts.
	Cuts []float32
	// Codes are the codes of the categories of the bins, in ascending order. Categories that
	// training has not seen count as missing.
	Codes []int32
	// Names has the names of the categories of a text column, by code; the code of bin b is
	// then b. It is nil if the column is not text.
	Names []string
	// Bins is the number of bins for values: 0 where the feature is missing in every row.
	Bins int
	// Column is the index of the column of bytes that has the feature. It is −1 if the feature
	// is in Layout.Wide or in Sparse, or is not stored because it cannot split rows.
	Column int
	// Slot is the first slot of the feature in a histogram; −1 if it has none. Each bin but the
	// implicit one has a slot, in the order of the bins.
	Slot int
	// Implicit is the bin that is not stored; −1 if every bin is stored. A row that stores
	// nothing of the feature is in it. Its sums are those of all rows of a node minus those of
	// the feature's slots.
	Implicit int
}

// Column is a column of bytes.
type Column struct {
	// Slot is the slot of byte value 0. Width is the number of byte values, and so of slots.
	Slot, Width int
	// Features has the indices in Layout.Features of the features in the column. A single one
	// has its bins as the bytes. Several ones are never stored in the same row; byte 0 then
	// says that none of them is stored.
	Features []int
	// Block and Offset give the place: the byte of a row is
	// Blocks[Block].Bins[row*Stride+Offset].
	Block, Offset int
}

// Span is the range of the rows of one shard among those of a subtask.
type Span struct{ Shard, First, Rows int }

// Block is up to 32 columns of bytes side by side, row-major.
type Block struct {
	// First is the index of the first column, Stride the number of columns.
	First, Stride int
	// Bins has row r at Bins[r*Stride:(r+1)*Stride].
	Bins []byte
}

// Sparse has, for each row, the slots of the features without a column.
type Sparse struct {
	// RowPtr has one more entry than there are rows. Row r has Slots[RowPtr[r]:RowPtr[r+1]],
	// ascending. Both are nil if every feature has a column.
	RowPtr []int64
	Slots  []uint32
}

// Data has the rows of a subtask, shard by shard. It is valid until the queue ends, and must
// not be modified.
type Data struct {
	Facts  *Facts // of the training rows, also if these rows are an evaluation set
	Layout *Layout
	Rows   int
	Shards []Span // those with rows
	Blocks []Block
	OnDisk bool // the blocks are in a file, as they exceed the memory budget
	// Wide has, for each of Layout.Wide, the bins of the rows.
	Wide   [][]uint16
	Sparse Sparse
	Label  []float64 // nil where there are none; for a ClassLabel, numbers of classes
	Upper  []float64 // upper ends of labels, nil where there are none
	Weight []float64 // nil where every row weighs 1
	// Margins is row-major, Rows × Outputs; nil where there are none.
	Margins []float64
	Outputs int
	// Groups has the first row of each group, then Rows; nil where there are no groups. No
	// group is in two shards.
	Groups []int32
}

// SlotOf returns the slot of a bin. It is −1 for the implicit bin and for a feature without
// slots.
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

// Set returns the set of categories of a node that splits a categorical feature: those that go
// to the other side than missing values. setRight tells whether this is the right side. So
// categories that training has not seen, which have no bin, go where missing values go.
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
