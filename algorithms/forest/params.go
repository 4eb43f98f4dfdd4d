package forest

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Params are the parameters of Train. The zero value of each field except LabelCol means its
// default. Params can be used as a stage of a pipeline.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. Alternatively,
	// FeatureCols names several columns of numbers, bools, and text, which is categorical. If
	// both are empty, the features are the dataset's only vector column. Null and NaN are
	// missing values. Features absent from a sparse vector are missing too, unless AbsentIsZero
	// is set.
	VectorCol   string
	FeatureCols []string
	// CategoricalCols names those of FeatureCols whose integers, 0 to 65,535, are categories.
	// CategoricalAt has the numbers of the components of the vector column that are categories.
	CategoricalCols []string
	CategoricalAt   []int
	AbsentIsZero    bool
	// LabelCol names the column of the labels: numbers for Regression, classes of any type for
	// Classification. LabelCol is required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1.
	WeightCol string
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and, for Classification, "probability".
	PredictionCol, ProbabilityCol string
	// Skip leaves out rows whose label or weight is null or NaN, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// Task is what the forest predicts; the zero value is Regression.
	Task Task
	// Method is how the trees are made to differ from each other; the zero value is
	// RandomForest.
	Method Method
	// Criterion is the impurity that splits reduce; the zero value is Gini for Classification
	// and Variance for Regression.
	Criterion Criterion
	// NumTrees is the number of trees, including those of Start. 0 means 100, or 1 for
	// SingleTree, which allows no other number.
	NumTrees int
	// MaxDepth is the largest number of splits from the root to a leaf; 0 and -1 mean no limit.
	// A node is then split until its rows have the same label, or have the same bins in all
	// features, or are too few for MinSamplesLeaf or MinSamplesSplit.
	MaxDepth int
	// MaxLeaves is the largest number of leaves of a tree; 0 means no limit. With a limit, the
	// node with the largest gain is always split next.
	MaxLeaves int
	// MinSamplesLeaf and MinSamplesSplit are the least numbers of rows in a leaf and in a node
	// that is split; 0 means 1 and 2. Rows that a bootstrap draws several times count once.
	MinSamplesLeaf, MinSamplesSplit int
	// MinSplitGain is the least gain of a split. The gain is the node's share of the tree's
	// weight, times the difference between the impurity of the node and the weighted mean
	// impurity of its children. With 0 every impure node is split.
	MinSplitGain float64
	// MaxFeatures is the number of features that are tried at a node: "sqrt", "log2", "third"
	// or "all" for a function of the number of features, a number such as "7", or a share such
	// as "0.4". At least one feature is tried. The features are drawn anew at each node. If
	// none of them can split the node, further features are tried until one can. Empty means
	// sqrt for Classification, third for Regression, and all for SingleTree.
	MaxFeatures string
	// MaxBins is the largest number of bins of a feature of numbers; 0 means 255, the largest
	// value. It does not bound the number of categories, of which a feature may have 65,535. A
	// feature with more than 255 categories splits only nodes that have at least one row for
	// every 32 categories.
	MaxBins int

	// Sampling says how the rows of a tree are drawn; the zero value is Bootstrap for
	// RandomForest and Whole for the other methods.
	Sampling Sampling
	// SampleShare is the share of the rows that Bootstrap or Subset draws on average. It must
	// be above 0 and at most 1; 0 means 1 for Bootstrap and 0.632 for Subset. A tree for which
	// no row of weight above 0 is drawn uses all rows of weight above 0, once each.
	SampleShare float64
	// ClassWeights has, for each class as text, the factor by which the weights of its rows are
	// multiplied. Classes that are not in the map have the factor 1. Balanced instead chooses
	// factors that give all classes the same total weight.
	ClassWeights map[string]float64
	Balanced     bool

	// If OOBScore is true, the forest is measured on its training rows, each of which is
	// predicted by the trees that did not draw it; see OutOfBag.
	OOBScore bool
	// Seed is the seed of all random draws; 0 means the seed of the job.
	Seed uint64
	// Start is a forest to which trees are added until there are NumTrees. The model that Start
	// points to is not changed. It must have been trained on the same columns. With the same
	// rows, parameters and Seed the result equals a forest that is trained at once.
	Start *Model
	// Memory is a limit in bytes; 0 means 1 GiB. If there are several subtasks and a copy of
	// all binned rows fits, each subtask keeps such a copy and grows trees by itself. Otherwise
	// each subtask keeps only its own rows, and the subtasks grow each tree together, with
	// buffers of at most Memory bytes. The trees are the same in both cases.
	Memory int64
}

const (
	defaultTrees  = 100
	defaultSubset = 0.632
	defaultMemory = 1 << 30
	maxBins       = 255
	maxTrees      = 1 << 20
)

// Validate returns all errors about the parameters, joined.
func (p Params) Validate() error {
	errs := append(p.columns().Validate(p.label()), enum.Check(p.Task, p.Method, p.Criterion, p.Sampling)...)
	names := signature.Names{Prediction: p.PredictionCol, Probability: p.ProbabilityCol}
	return errors.Join(append(errs, names.Check(), p.checkTrees(), p.checkSampling())...)
}

// checkTrees checks the parameters that control how trees grow.
func (p Params) checkTrees() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	switch p.Criterion {
	case Gini, Entropy:
		if p.Task != Classification {
			bad("Criterion is %v, which is for classes, and Task is %v", p.Criterion, p.Task)
		}
	case Variance, Poisson:
		if p.Task != Regression {
			bad("Criterion is %v, which is for numbers, and Task is %v", p.Criterion, p.Task)
		}
	}
	if p.NumTrees < 0 || p.NumTrees > maxTrees {
		bad("NumTrees is %d: want 1 to %d, or 0 for %d", p.NumTrees, maxTrees, defaultTrees)
	}
	if p.Method == SingleTree && p.NumTrees > 1 {
		bad("NumTrees is %d, and a SingleTree is one tree", p.NumTrees)
	}
	if p.MaxDepth < -1 || p.MaxDepth > tree.MaxDepth {
		bad("MaxDepth is %d: want 1 to %d, or 0 or -1 for no limit", p.MaxDepth, tree.MaxDepth)
	}
	if p.MaxLeaves < 0 || p.MaxLeaves == 1 {
		bad("MaxLeaves is %d: want 2 or more, or 0 for no limit", p.MaxLeaves)
	}
	if p.MinSamplesLeaf < 0 {
		bad("MinSamplesLeaf is %d: want 1 or more, or 0 for 1", p.MinSamplesLeaf)
	}
	if p.MinSamplesSplit < 0 || p.MinSamplesSplit == 1 {
		bad("MinSamplesSplit is %d: want 2 or more, or 0 for 2", p.MinSamplesSplit)
	}
	if !(p.MinSplitGain >= 0 && kernel.Finite(p.MinSplitGain)) {
		bad("MinSplitGain is %v: want a number of 0 or more", p.MinSplitGain)
	}
	if _, err := p.tried(1 << 20); err != nil {
		errs = append(errs, err)
	}
	if p.MaxBins < 0 || p.MaxBins == 1 || p.MaxBins > maxBins {
		bad("MaxBins is %d: want 2 to %d, or 0 for %d", p.MaxBins, maxBins, maxBins)
	}
	if p.Memory < 0 {
		bad("Memory is %d: want a number of bytes, or 0 for %d", p.Memory, defaultMemory)
	}
	return errors.Join(errs...)
}

// checkSampling checks the parameters that control how rows are drawn and weighted, and Start.
func (p Params) checkSampling() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if !(p.SampleShare >= 0 && p.SampleShare <= 1) {
		bad("SampleShare is %v: want a share above 0 and up to 1, or 0 for the default", p.SampleShare)
	}
	s := p.sampling()
	if s == Whole && p.SampleShare != 0 {
		bad("SampleShare is %v, and Sampling is %v, which draws nothing", p.SampleShare, s)
	}
	if s == Whole && p.OOBScore {
		bad("OOBScore is set, and Sampling is %v, which leaves no row out of a tree: choose Bootstrap or Subset", s)
	}
	if p.Task != Classification && (len(p.ClassWeights) > 0 || p.Balanced) {
		bad("ClassWeights and Balanced are for classes, and Task is %v", p.Task)
	}
	if len(p.ClassWeights) > 0 && p.Balanced {
		bad("ClassWeights are given and Balanced is set: choose one")
	}
	errs = append(errs, bins.CheckClassWeights(p.ClassWeights))
	if p.Start != nil {
		if p.Start.Trees == nil {
			bad("Start has no trees")
		} else if p.Start.Task != p.Task {
			bad("Start is a %v, and Task is %v", p.Start.Task, p.Task)
		} else if have, want := len(p.Start.Trees.Trees), p.withDefaults(1).NumTrees; want <= have {
			bad("NumTrees is %d, and Start has %d trees: NumTrees counts all of them, so want more", want, have)
		}
	}
	return errors.Join(errs...)
}

// withDefaults returns the valid parameters p with every zero replaced by its default.
func (p Params) withDefaults(jobSeed uint64) Params {
	p.Criterion = p.criterion()
	p.Sampling = p.sampling()
	if p.NumTrees == 0 {
		p.NumTrees = defaultTrees
		if p.Method == SingleTree {
			p.NumTrees = 1
		}
	}
	if p.MaxDepth <= 0 {
		p.MaxDepth = tree.MaxDepth
	}
	p.MinSamplesLeaf = cmp.Or(p.MinSamplesLeaf, 1)
	p.MinSamplesSplit = cmp.Or(p.MinSamplesSplit, 2)
	p.MaxBins = cmp.Or(p.MaxBins, maxBins)
	if p.SampleShare == 0 {
		p.SampleShare = 1
		if p.Sampling == Subset {
			p.SampleShare = defaultSubset
		}
	}
	p.Seed = cmp.Or(p.Seed, jobSeed)
	p.Memory = cmp.Or(p.Memory, defaultMemory)
	return p
}

// columns returns the columns that training reads.
func (p Params) columns() bins.Columns {
	return bins.Columns{
		Vector: p.VectorCol, Features: p.FeatureCols, Categorical: p.CategoricalCols, CategoricalAt: p.CategoricalAt,
		Label: p.LabelCol, Weight: p.WeightCol, Skip: p.Skip,
	}
}

// label returns the kind of the labels.
func (p Params) label() bins.LabelKind {
	if p.Task == Classification {
		return bins.ClassLabel
	}
	return bins.NumberLabel
}

// rules returns the rules for trees over d features.
func (p Params) rules(d int) (rules, error) {
	tried, err := p.tried(d)
	return rules{
		criterion: p.Criterion, random: p.Method == ExtraTrees, ordered: p.Method == SingleTree, tried: tried, depth: p.MaxDepth, leaves: p.MaxLeaves,
		minLeaf: p.MinSamplesLeaf, minSplit: p.MinSamplesSplit, minGain: p.MinSplitGain, seed: p.Seed,
	}, err
}

// enough returns an error if the rows have fewer features than MaxFeatures says.
func (p Params) enough(f *bins.Facts) error {
	if n, err := strconv.Atoi(p.MaxFeatures); err == nil && n > f.Declared {
		return fmt.Errorf("MaxFeatures is %d, and there are %d features: want 1 to %d", n, f.Declared, f.Declared)
	}
	return nil
}

// centre returns the number that is subtracted from the labels.
func (p Params) centre(f *bins.Facts) float64 {
	if p.Criterion != Variance {
		return 0
	}
	return centreOf(f.LabelMin, f.LabelMax)
}

// factors returns the factor of the weights of rows for each class. It returns nil for a
// regression.
func (p Params) factors(f *bins.Facts) ([]float64, error) {
	if p.Task != Classification {
		return nil, nil
	}
	if err := f.CheckClasses(p.LabelCol, p.ClassWeights); err != nil {
		return nil, err
	}
	return f.ClassFactors(p.ClassWeights, p.Balanced), nil
}

// criterion returns Criterion, or its default if it is AutoCriterion.
func (p Params) criterion() Criterion {
	switch {
	case p.Criterion != AutoCriterion:
		return p.Criterion
	case p.Task == Classification:
		return Gini
	}
	return Variance
}

// sampling returns Sampling, or its default if it is AutoSampling.
func (p Params) sampling() Sampling {
	switch {
	case p.Sampling != AutoSampling:
		return p.Sampling
	case p.Method == RandomForest:
		return Bootstrap
	}
	return Whole
}
