package gbdt

// Params are the parameters of Train. The zero value of each field but LabelCol is its
// default; where 0 itself is a sensible value that is not the default, a negative number
// stands for it. Params are a stage of pipelines.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. FeatureCols name
	// columns instead: numbers, bools, and text, which is categorical. With neither the
	// dataset's only vector column is taken. A null and a NaN are missing, and so is what a
	// sparse vector leaves out, unless AbsentIsZero says otherwise.
	VectorCol    string
	FeatureCols  []string
	AbsentIsZero bool
	// CategoricalCols name those of FeatureCols whose integers, 0 to 65,535, are categories;
	// CategoricalAt are the components of the vector column whose numbers are.
	CategoricalCols []string
	CategoricalAt   []int
	// LabelCol names the column of the labels: numbers, or, for Logistic and Softmax, classes
	// of any type, whose distinct values in ascending order are the classes. Required.
	LabelCol string
	// LabelUpperCol names the upper ends of the intervals in which times lie, for AFT; null
	// and +Inf mean that nothing is known but the lower end. Empty: times are known.
	LabelUpperCol string
	// WeightCol names a column of row weights, numbers of 0 or more; empty: every row weighs
	// 1. Of LambdaMART the weight of a query is that of its first row.
	WeightCol string
	// MarginCols name number columns, one for each output, of the margins that rows start from
	// in place of Base and prior. They are not part of the model, and its predictions lack
	// them.
	MarginCols []string
	// GroupCol names the column of queries, of any type, for LambdaMART: rows of the same
	// value are ranked against each other.
	GroupCol string
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and, for Logistic and Softmax, "probability".
	PredictionCol, ProbabilityCol string
	// Skip leaves rows out whose label or weight is null or NaN, and counts them as "rows
	// skipped". Otherwise such a row is an error that names row and column.
	Skip bool

	// Objective is what is made small; the zero value is Squared.
	Objective Objective
	// CustomObjective is the objective of Custom.
	CustomObjective *CustomObjective
	// QuantileAt is the quantile that Quantile predicts, in (0, 1); 0 means 0.5.
	QuantileAt float64
	// HuberDelta is the error from which on Huber is absolute; 0 means 1.
	HuberDelta float64
	// TweediePower is that of the variance, in (1, 2); 0 means 1.5.
	TweediePower float64
	// Time is the distribution of AFT, and TimeScale its scale; 0 means 1.
	Time      Distribution
	TimeScale float64
	// RankTruncation is the number of places at the head of a list that LambdaMART makes
	// right; 0 means 30. NoRankNormalization leaves the weights of the pairs of a query as they
	// are; by default they are divided by the difference of the scores and, together, brought
	// to a size that depends less on the length of the list.
	RankTruncation      int
	NoRankNormalization bool
	// Base are the margins that rows start from: one for each output, or one for all. nil
	// means the best constants (the prior), but 0 for LambdaMART and Custom.
	Base []float64

	// Start is a model that training continues: rows start from its margins, rounds count on
	// from its rounds, and its trees are the first of the new model, followed by NumTrees
	// rounds of new ones. It has the same features, of the same kinds, AbsentIsZero, objective
	// and classes. It does not go with DART, which drops trees of its own training alone. nil
	// starts anew.
	Start *Model

	// NumTrees is the number of rounds, each of which makes a tree for each output; 0 means
	// 100.
	NumTrees int
	// LearningRate is what the leaves of a tree are multiplied with; 0 means 0.1.
	LearningRate float64
	// Schedule gives the learning rate of each round, from 1, in place of LearningRate. It is
	// called on every subtask and depends on nothing but the round.
	Schedule func(round int) float64
	// GrowPolicy is the order in which nodes are split; the zero value is DepthWise.
	GrowPolicy GrowPolicy
	// MaxDepth is the largest number of splits on the way to a leaf; 0 means 6, and without
	// limit for LossGuide; −1 means no limit.
	MaxDepth int
	// MaxLeaves is the largest number of leaves of a tree; 0 means no limit, and 31 for
	// LossGuide.
	MaxLeaves int
	// MaxBins is the largest number of bins of a feature of numbers, 2 to 255; 0 means 255. It
	// does not bound categories, of which a feature may have 65,535.
	MaxBins int
	// MinChildWeight is the least sum of hessians in a child; 0 means 1, a negative number
	// none.
	MinChildWeight float64
	// MinSamplesLeaf is the least number of rows in a child; 0 means 1.
	MinSamplesLeaf int
	// Lambda is the L2 penalty of leaves; 0 means 1, a negative number none.
	Lambda float64
	// Alpha is the L1 penalty of leaves.
	Alpha float64
	// MinSplitGain is what a split must win at least (gamma).
	MinSplitGain float64
	// MaxDeltaStep bounds what a leaf is before the learning rate; 0 means no bound, and 0.7
	// for Poisson; a negative number means no bound.
	MaxDeltaStep float64
	// MaxOneHot is the largest number of categories of which one is split off the others;
	// features of more are split by the order of their gradients. 0 means 4.
	MaxOneHot int
	// MaxCategories is the largest number of categories on the smaller side of a split. 0 means
	// no bound, and where CategorySmooth is not 0 it means 64, and twice the root of their
	// number for features of more than 1,024.
	MaxCategories int
	// MinCategoryRows is the least number of rows of the categories between one split that is
	// tried and the next, in their order, and of those on the other side; rows of a category
	// are estimated by its hessians. 0 means no bound.
	MinCategoryRows int
	// CategorySmooth is added to the hessians of categories when they are put in order. 0 has
	// each node learn from its rows how far categories differ by more than chance: their
	// gradients are drawn towards each other accordingly, and where they differ by no more they
	// are not split. A negative number means that what is seen counts as it is.
	CategorySmooth float64
	// CategoryLambda is added to Lambda at splits by that order; 0 means 10, a negative number
	// none.
	CategoryLambda float64
	// Monotone has, by the feature's name, 1 where what is predicted must not fall as the
	// feature rises, −1 where it must not rise, and 0.
	Monotone map[string]int
	// Interactions are sets of features by name. The features on the way to a leaf are all of
	// one of the sets; a feature of no set is with no other. nil allows all.
	Interactions [][]string

	// Subsample is the share of the rows that are drawn anew for each round; 0 means 1.
	Subsample float64
	// GOSS takes the rows of the largest gradients, TopRate of them, and of the others, at
	// random, as many as OtherRate of all, which then count for those left out; 0 means 0.2
	// and 0.1. See Ke et al., "LightGBM", NeurIPS 2017.
	GOSS               bool
	TopRate, OtherRate float64
	// ColsampleByTree, ColsampleByLevel and ColsampleByNode are the shares of the features
	// that are drawn for each tree, of these for each level, and of these for each node; 0
	// means 1.
	ColsampleByTree, ColsampleByLevel, ColsampleByNode float64
	// ScalePosWeight multiplies the weights of the second class of Logistic; 0 means 1.
	ScalePosWeight float64
	// ClassWeights multiply the weights of rows by class, as text; those that are not named
	// have 1. Balanced multiplies them with the total weight over the number of classes times
	// the weight of the class. Metrics take rows with the weights of WeightCol.
	ClassWeights map[string]float64
	Balanced     bool

	// DART drops trees at random while others are made (Rashmi and Gilad-Bachrach, "DART",
	// AISTATS 2015): in each round but a share SkipDrop of them, 0 meaning 0.5 and a negative
	// number 0, each tree with the probability DropRate, 0 meaning 0.1, but at most MaxDrop of
	// them, 0 meaning 50 and a negative number no bound.
	DART               bool
	DropRate, SkipDrop float64
	MaxDrop            int

	// Metrics are measured after each round: rmse, mae, huber, quantile, logloss, error, auc,
	// aucpr, mlogloss, merror, poisson_deviance, gamma_deviance, tweedie_deviance,
	// aft_nloglik, ndcg and map, the last two with "@" and the number of places. nil means
	// that of the objective.
	Metrics []string
	// CustomMetrics are measured too, behind Metrics.
	CustomMetrics []CustomMetric
	// NoTrainMetrics measures them on evaluation sets only.
	NoTrainMetrics bool
	// EarlyStoppingRounds ends training when the first metric on the first evaluation set has
	// not become better by more than EarlyStoppingTolerance for so many rounds; the model then
	// has the trees up to the best round. A metric that is NaN in all rounds, as that of an order
	// of rows of one class is, is an error. 0 turns it off.
	EarlyStoppingRounds    int
	EarlyStoppingTolerance float64
	// ValidationFraction is the share of the rows that is held out, drawn at random, as an
	// evaluation set named "validation", before any other; 0 means none.
	ValidationFraction float64
	// Seed is what all draws start from; 0 means the seed of the job.
	Seed uint64
}

// Defaults of parameters whose zero value stands for them.
const (
	defaultTrees          = 100
	defaultRate           = 0.1
	defaultDepth          = 6
	defaultLeaves         = 31
	defaultBins           = 255
	defaultPoissonStep    = 0.7
	defaultOneHot         = 4
	defaultCategories     = 64
	defaultCategoryLambda = 10
	defaultTruncation     = 30
	defaultTweedie        = 1.5
	defaultTopRate        = 0.2
	defaultOtherRate      = 0.1
	defaultDropRate       = 0.1
	defaultSkipDrop       = 0.5
	defaultMaxDrop        = 50
	maxTrees              = 1 << 20
)

// withDefaults returns valid parameters with every zero replaced by what it means; of
// numbers of which a negative one stands for 0 it is then 0. seed is that of the job.
func (p Params) withDefaults(seed uint64) Params {
	set(&p.QuantileAt, 0.5)
	set(&p.HuberDelta, 1)
	set(&p.TweediePower, defaultTweedie)
	set(&p.TimeScale, 1)
	set(&p.RankTruncation, defaultTruncation)
	set(&p.NumTrees, defaultTrees)
	set(&p.LearningRate, defaultRate)
	if p.GrowPolicy == LossGuide {
		set(&p.MaxLeaves, defaultLeaves)
		set(&p.MaxDepth, -1)
	}
	set(&p.MaxDepth, defaultDepth)
	set(&p.MaxBins, defaultBins)
	orNone(&p.MinChildWeight, 1)
	set(&p.MinSamplesLeaf, 1)
	orNone(&p.Lambda, 1)
	step := 0.0
	if p.Objective == Poisson {
		step = defaultPoissonStep
	}
	orNone(&p.MaxDeltaStep, step)
	set(&p.MaxOneHot, defaultOneHot)
	orNone(&p.CategoryLambda, defaultCategoryLambda)
	set(&p.Subsample, 1)
	set(&p.TopRate, defaultTopRate)
	set(&p.OtherRate, defaultOtherRate)
	set(&p.ColsampleByTree, 1)
	set(&p.ColsampleByLevel, 1)
	set(&p.ColsampleByNode, 1)
	set(&p.ScalePosWeight, 1)
	set(&p.DropRate, defaultDropRate)
	orNone(&p.SkipDrop, defaultSkipDrop)
	orNone(&p.MaxDrop, defaultMaxDrop)
	set(&p.PredictionCol, "prediction")
	set(&p.ProbabilityCol, "probability")
	set(&p.Seed, seed)
	return p
}

// set replaces a zero value.
func set[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// orNone replaces 0 by its meaning, and a negative number by 0.
func orNone[T int | float64](v *T, to T) {
	switch {
	case *v == 0:
		*v = to
	case *v < 0:
		*v = 0
	}
}

// rate returns the learning rate of a round, from 1.
func (p *Params) rate(round int) float64 {
	if p.Schedule != nil {
		return p.Schedule(round)
	}
	return p.LearningRate
}
