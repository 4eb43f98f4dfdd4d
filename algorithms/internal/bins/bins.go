package bins

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// MaxBins is the largest number of bins for the values of a numeric feature. There is one more
// bin for missing values, so the number of a bin fits in a byte.
const MaxBins = 255

// MaxCategories is the largest number of categories of a feature. Each category has a bin, and
// there is one more bin for missing values, so the number of a bin fits in two bytes.
const MaxCategories = 1<<16 - 1

// MaxCategory is the largest code of a category in a column of integers.
const MaxCategory = 1<<16 - 1

// Columns has the names of the columns to read.
type Columns struct {
	// Vector names a vector column, dense or sparse. Features names columns of numbers, bools
	// and text instead; each of them is a feature. If both are empty, the dataset's only vector
	// column is taken.
	Vector   string
	Features []string
	// Categorical names the integer columns in Features that are categorical: their values are
	// codes of categories, 0 to MaxCategory. Text is always categorical.
	Categorical []string
	// CategoricalAt has the indices of the components of the vector that are codes of
	// categories.
	CategoricalAt []int
	Label         string
	// LabelUpper names the column of the upper ends of labels that are intervals. Label then
	// names the column of the lower ends. Lower ends may be -Inf, and upper ends may be +Inf.
	// Labels must be of the kind NumberLabel.
	LabelUpper string
	Weight     string // if empty, every row weighs 1
	// Margins names number columns, one for each output of the model, with the margins of rows
	// before the first tree. It is empty if there are none.
	Margins []string
	// Group names a column of any scalar type. Rows with equal values are a group, such as the
	// answers to one query. The rows of a group are made adjacent in one shard, and keep their
	// order. Groups are ordered by their first rows.
	Group string
	// Skip leaves out rows with an unusable label, weight, margin or group, and counts them as
	// "rows skipped". Without Skip such a row is an error that names row and column. A row is
	// not skipped because a feature is missing.
	Skip bool
	// CheckLabel, if set, returns what is wrong with a number as a label. Check calls it only
	// with Skip, because an error must give the original number of the row, which is lost when
	// earlier rows are left out. Without Skip, training checks the labels itself.
	CheckLabel func(v float64) error
}

// Options say how features are binned.
type Options struct {
	// MaxBins is the largest number of bins of a numeric feature, 2 to 255; 0 means 255. It
	// does not limit the bins of a categorical feature, where each category has a bin.
	MaxBins int
	// AbsentIsZero makes values that are absent from sparse rows count as 0. Otherwise they are
	// missing.
	AbsentIsZero bool
	// NoBundling prevents sparse features from sharing a column.
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

// Facts are statistics of all rows, computed before training. They are the same on every
// subtask, and must not be modified.
type Facts struct {
	// Declared is the number of features of a row. For sparse rows it is the size in the
	// column's type, or else the largest index plus 1. If very many features are declared and
	// few occur, Layout.Features has only the features that occur.
	Declared int
	Rows     int64
	Weighing int64   // number of rows whose weight is above 0
	Weight   float64 // total weight of the rows
	// Classes are the values of a ClassLabel as text, in ascending order of the values.
	// ClassWeights has the total weight of each class. LabelType is the type of the label
	// column, as schemas print it.
	Classes      []string
	ClassWeights []float64
	LabelType    string
	// LabelMean, LabelStd, LabelMin and LabelMax are the mean, standard deviation and extremes
	// of a NumberLabel. LabelMean and LabelStd are weighted. For intervals, all four describe
	// the lower ends, where an infinite end counts as 0.
	LabelMean, LabelStd, LabelMin, LabelMax float64
	// Missing[i] is the number of rows in which Layout.Features[i] is missing.
	Missing []int64
	// ShardRows has the number of rows of each shard of the job.
	ShardRows []int64
	Groups    int64 // number of groups of rows
}

// Layout describes the features and where they are stored. It is the same on every subtask, and
// must not be modified.
type Layout struct {
	Features []Feature
	// Columns are the columns of bytes, in the order of the blocks.
	Columns []Column
	// Wide has the indices of the features with a column of two bytes, in ascending order.
	// These are the features whose bins do not fit in a byte.
	Wide []int
	// Slots is the length of a histogram. A histogram has first the slots of Columns, then the
	// slots of the wide features, then the slots of the features in Sparse.
	Slots int
	// ColumnSlots is the number of slots of Columns and Wide.
	ColumnSlots int
}

// Feature describes a binned feature. A bin is a number from 0 to Bins, where Bins is the bin
// of missing values.
type Feature struct {
	Name string
	// Number is the number of the feature in a row. Nodes of trees refer to features by it.
	Number int
	// Categorical reports whether the feature is categorical. A categorical feature has Codes;
	// a numeric feature has Cuts.
	Categorical bool
	// Cuts ascend. Bin b has the values v with Cuts[b-1] ≤ v < Cuts[b], so a node that sends
	// bins 0 to b left has the threshold Cuts[b]. There are Bins−1 cuts.
	Cuts []float32
	// Codes[b] is the code of the category with bin b. Codes ascend. Categories that training
	// has not seen count as missing.
	Codes []int32
	// Names[b] is the text of the category with bin b, if the column is text. The code of a
	// text category is its bin. Names is nil if the column is not text.
	Names []string
	// Bins is the number of bins for values. It is 0 if the feature is missing in every row.
	Bins int
	// Column is the index of the column of bytes that has the feature. It is −1 if the feature
	// is in Layout.Wide or in Sparse, or is not stored because it cannot split rows.
	Column int
	// Slot is the first slot of the feature in a histogram, or −1 if the feature has no slots.
	// Each bin except the implicit one has a slot. Slots are in the order of the bins.
	Slot int
	// Implicit is the bin that is not stored, or −1 if every bin is stored. A row that stores
	// nothing of the feature is in this bin. The sums of the implicit bin are the sums over all
	// rows of a node minus the sums of the feature's slots.
	Implicit int
}

// Column is a column of bytes.
type Column struct {
	// Slot is the slot of byte value 0. Width is the number of byte values, and so of slots.
	Slot, Width int
	// Features has the indices in Layout.Features of the features in the column. If there is
	// one feature, the bytes are its bins. If there are several, no row stores two of them, and
	// byte 0 says that the row stores none of them.
	Features []int
	// The byte of a row is at Data.Blocks[Block].Bins[row*Stride+Offset].
	Block, Offset int
}

// Span is the range of the rows of one shard among the rows of a subtask.
type Span struct{ Shard, First, Rows int }

// Block has up to 32 columns of bytes, stored row by row.
type Block struct {
	// First is the index in Layout.Columns of the block's first column. Stride is the number of
	// columns.
	First, Stride int
	// Bins[r*Stride:(r+1)*Stride] has the bytes of row r.
	Bins []byte
}

// Sparse has, for each row, the slots of the features without a column.
type Sparse struct {
	// RowPtr has one more element than there are rows. The slots of row r are
	// Slots[RowPtr[r]:RowPtr[r+1]], ascending. RowPtr and Slots are nil if every feature has a
	// column.
	RowPtr []int64
	Slots  []uint32
}

// Data has the rows of a subtask, shard by shard. It is valid until the queue ends, and must
// not be modified.
type Data struct {
	Facts  *Facts // facts about the training rows, even if Data has an evaluation set
	Layout *Layout
	Rows   int
	Shards []Span // the shards that have rows
	Blocks []Block
	OnDisk bool // whether the blocks are in a file, because they exceed the memory budget
	// Wide[i] has the bin of each row for the feature Layout.Wide[i].
	Wide   [][]uint16
	Sparse Sparse
	Label  []float64 // nil if there are no labels; for a ClassLabel, class numbers
	Upper  []float64 // upper ends of labels; nil if labels are not intervals
	Weight []float64 // nil if every row weighs 1
	// Margins is row-major, Rows × Outputs; it is nil if there are no margins.
	Margins []float64
	Outputs int
	// Groups has the first row of each group, and then Rows. It is nil if there are no groups.
	// The rows of a group are all in one shard.
	Groups []int32
}

// SlotOf returns the slot of a bin. It returns −1 for the implicit bin and for a feature
// without slots.
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

// BinOfSlot returns the bin that has the given slot of the feature.
func (f *Feature) BinOfSlot(slot int) int {
	bin := slot - f.Slot
	if f.Implicit >= 0 && bin >= f.Implicit {
		bin++
	}
	return bin
}

// Set returns the set of categories that a tree node stores for a split of a categorical
// feature: the codes of all categories that go to the opposite side of missing values, as a
// bitset. setRight reports whether this is the right side. Categories that training has not
// seen are not in the set, so they go to the side of missing values. left reports whether the
// rows in a bin go left.
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
