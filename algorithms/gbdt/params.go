package gbdt

// Params are the parameters of Train. The zero value of each field means its default; only
// LabelCol is required. Where 0 is itself sensible and not the default, a negative number
// stands for 0. Params are a stage of pipelines.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. FeatureCols name
	// columns instead: numbers, bools, and text, which is categorical. With neither, the
	// dataset's only vector column is taken. Nulls and NaNs are missing. Values absent from a
	// sparse vector are missing too; with AbsentIsZero they are 0.
	VectorCol    string
	FeatureCols  []string
	AbsentIsZero bool
	// CategoricalCols names the columns in FeatureCols whose integers, 0 to 65,535, are
	// categories. CategoricalAt has the components of the vector column with such integers.
	CategoricalCols []string
	CategoricalAt   []int
	// LabelCol names the column of the labels: numbers, or for Logistic and Softmax classes of
	// any type. The classes are the distinct labels in ascending order. Required.
	LabelCol string
	// LabelUpperCol names the column of the upper ends of the intervals of times, for AFT. Null
	// and +Inf mean that only the lower end is known. Empty: times are known.
	LabelUpperCol string
	// WeightCol names a column of row weights, numbers of 0 or more; empty: every row weighs
	// 1. With LambdaMART a query has the weight of its first row.
	WeightCol string
	// MarginCols names number columns, one for each output, with the margins that rows start
	// from in place of Base and prior. They are not part of the model: its predictions do not
	// include them.
	MarginCols []string
	// GroupCol names the column of queries, of any type, for LambdaMART. Rows of the same query
	// are ranked against each other.
	GroupCol string
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and, for Logistic and Softmax, "probability".
	PredictionCol, ProbabilityCol string
	// Skip leaves out rows whose label or weight is null or NaN, and counts them as "rows
	// skipped". Otherwise such a row is an error that names row and column.
	Skip bool

	// Objective is the loss to minimise; the zero value is Squared.
	Objective Objective
	// CustomObjective is the objective of Custom.
	CustomObjective *CustomObjective
	// QuantileAt is the quantile that Quantile predicts, in (0, 1); 0 means 0.5.
	QuantileAt float64
	// HuberDelta is the error above which Huber is linear; 0 means 1.
	HuberDelta float64
	// TweediePower is p, in (1, 2), where the variance is in proportion to mean^p; 0 means 1.5.
	TweediePower float64
	// Time is the distribution of AFT, and TimeScale its scale; 0 means 1.
	Time      Distribution
	TimeScale float64
	// RankTruncation is the number of places at the head of a list that LambdaMART puts right;
	// 0 means 30. By default the weight of a pair is divided by the difference of its scores,
	// and the pairs of a query are then scaled together so that their sum depends less on the
	// length of the list. NoRankNormalization turns both off.
	RankTruncation      int
	NoRankNormalization bool
	// Base are the margins that rows start from: one for each output, or one for all. nil means
	// the best constants (the prior), and 0 for LambdaMART and Custom.
	Base []float64

	// Start is a model that training continues: rows start from its margins, rounds count on
	// from its rounds, and its trees are the first of the new model, followed by NumTrees
	// rounds of new ones. Its features and their kinds, AbsentIsZero, objective and classes
	// must be the same. It does not go with DART, which drops only trees of its own training.
	// nil starts a new model.
	Start *Model

	// NumTrees is the number of rounds, each of which makes a tree for each output; 0 means
	// 100.
	NumTrees int
	// LearningRate is the factor of the leaves of a tree; 0 means 0.1.
	LearningRate float64
	// Schedule gives the learning rate of each round, from 1, in place of LearningRate. It is
	// called on every subtask, and must depend on the round alone.
	Schedule func(round int) float64
	// GrowPolicy is the order in which nodes are split; the zero value is DepthWise.
	GrowPolicy GrowPolicy
	// MaxDepth is the largest number of splits on the path to a leaf. 0 means 6, and no limit
	// for LossGuide; −1 means no limit.
	MaxDepth int
	// MaxLeaves is the largest number of leaves of a tree. 0 means no limit, and 31 for
	// LossGuide.
	MaxLeaves int
	// MaxBins is the largest number of bins of a feature of numbers, 2 to 255; 0 means 255. It
	// does not bound categories; a feature may have 65,535 of these.
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
	// MinSplitGain is the least gain of a split (gamma).
	MinSplitGain float64
	// MaxDeltaStep bounds the absolute value of a leaf before the learning rate. 0 means no
	// bound, and 0.7 for Poisson; a negative number means no bound.
	MaxDeltaStep float64
	// MaxOneHot is the largest number of categories of a feature that is split one category
	// against the others. With more categories a split puts them in the order of their
	// gradients and divides that. 0 means 4.
	MaxOneHot int
	// MaxCategories is the largest number of categories on the smaller side of a split. 0 means
	// no bound if CategorySmooth is 0. Otherwise 0 means 64, and for a feature of more than
	// 1,024 categories twice the square root of their number.
	MaxCategories int
	// MinCategoryRows is the least number of rows in the categories between one split that is
	// tried and the next, in their order, and in those on the other side. The rows of a
	// category are estimated from its hessians. 0 means no bound.
	MinCategoryRows int
	// CategorySmooth is added to the hessians of categories when they are put in order. With 0
	// each node estimates from its rows how far categories differ by more than chance. It
	// shrinks their gradients towards each other accordingly, and does not split them where
	// they differ by no more than chance. A negative number means no smoothing.
	CategorySmooth float64
	// CategoryLambda is added to Lambda at splits by that order; 0 means 10, a negative number
	// none.
	CategoryLambda float64
	// Monotone has constraints by the name of the feature: 1 where the prediction must not fall
	// as the feature rises, −1 where it must not rise, 0 for none.
	Monotone map[string]int
	// Interactions are sets of features by name. The features on the path to a leaf are all in
	// one set. A feature in no set is combined with no other. nil allows all combinations.
	Interactions [][]string

	// Subsample is the share of the rows that each round draws; 0 means 1.
	Subsample float64
	// GOSS takes the share TopRate of the rows, those of the largest gradients, and draws the
	// share OtherRate of all rows from the others. The drawn rows are weighted up to count for
	// those left out. 0 means 0.2 and 0.1. See Ke et al., "LightGBM", NeurIPS 2017.
	GOSS               bool
	TopRate, OtherRate float64
	// ColsampleByTree, ColsampleByLevel and ColsampleByNode are the shares of the features
	// that are drawn for each tree, of these for each level, and of these for each node; 0
	// means 1.
	ColsampleByTree, ColsampleByLevel, ColsampleByNode float64
	// ScalePosWeight multiplies the weights of the second class of Logistic; 0 means 1.
	ScalePosWeight float64
	// ClassWeights has a factor of the weights of rows for each class, as text; classes that
	// are not named have 1. Balanced sets the factor of a class to the total weight divided by
	// (number of classes · weight of the class). Metrics use the weights of WeightCol alone.
	ClassWeights map[string]float64
	Balanced     bool

	// DART drops earlier rounds at random while new trees are made (Rashmi and Gilad-Bachrach,
	// "DART", AISTATS 2015). With probability SkipDrop a round drops none; 0 means 0.5, a
	// negative number 0. Otherwise it drops each earlier round with probability DropRate (0
	// means 0.1), but at most MaxDrop of them; 0 means 50, a negative number no bound.
	DART               bool
	DropRate, SkipDrop float64
	MaxDrop            int

	// Metrics are measured after each round: rmse, mae, huber, quantile, logloss, error, auc,
	// aucpr, mlogloss, merror, poisson_deviance, gamma_deviance, tweedie_deviance,
	// aft_nloglik, ndcg and map. The last two may be followed by "@" and the number of places.
	// nil means the metric of the objective.
	Metrics []string
	// CustomMetrics are measured too, after Metrics.
	CustomMetrics []CustomMetric
	// NoTrainMetrics measures metrics on evaluation sets only.
	NoTrainMetrics bool
	// EarlyStoppingRounds ends training when the first metric on the first evaluation set has
	// not improved by more than EarlyStoppingTolerance for that many rounds. The model then has
	// the trees up to the best round. It is an error if the metric is NaN in all rounds, as auc
	// is where all rows are of one class. 0 turns it off.
	EarlyStoppingRounds    int
	EarlyStoppingTolerance float64
	// ValidationFraction is the share of the rows that is drawn at random and held out. They
	// are the first evaluation set, named "validation". 0 means none.
	ValidationFraction float64
	// Seed seeds all draws; 0 means the seed of the job.
	Seed uint64
}

// Defaults of parameters, for a value of 0.
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

// withDefaults returns valid parameters with every zero replaced by the default that it means,
// and then every negative number that means 0 by 0. seed is the seed of the job.
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

// set replaces a zero value by to.
func set[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// orNone replaces 0 by to, and a negative number by 0.
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
