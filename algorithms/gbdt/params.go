package gbdt

// Params are the parameters of Train. The zero value of each field means its default; only
// LabelCol is required. Where 0 is a sensible value but not the default, a negative number
// means 0. Params can be used as a stage of a pipeline.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. Alternatively,
	// FeatureCols names several columns of numbers, bools, and text, which is categorical. If
	// both are empty, the features are the dataset's only vector column. Null and NaN are
	// missing values. Features absent from a sparse vector are missing too, unless AbsentIsZero
	// is set.
	VectorCol    string
	FeatureCols  []string
	AbsentIsZero bool
	// CategoricalCols names the columns in FeatureCols whose integers, 0 to 65,535, are
	// categories. CategoricalAt has the numbers of the components of the vector column whose
	// integers are categories in the same range.
	CategoricalCols []string
	CategoricalAt   []int
	// LabelCol names the column of the labels: numbers, or for Logistic and Softmax classes of
	// any type. The classes are the distinct labels in ascending order. LabelCol is required.
	LabelCol string
	// LabelUpperCol names the column of the upper ends of the intervals of times, for AFT. Null
	// and +Inf mean that only the lower end is known. If LabelUpperCol is empty, labels are
	// known times.
	LabelUpperCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1. With LambdaMART a query has the weight of its first row.
	WeightCol string
	// MarginCols names number columns, one for each output, with the margins that rows start
	// from in place of Base or the prior. They are not part of the model: its predictions do
	// not include them.
	MarginCols []string
	// GroupCol names the column of queries, of any type, for LambdaMART. Rows of the same query
	// are ranked against each other.
	GroupCol string
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and, for Logistic and Softmax, "probability".
	PredictionCol, ProbabilityCol string
	// Skip leaves out rows whose label or weight is null or NaN, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// Objective is the loss to minimise; the zero value is Squared.
	Objective Objective
	// CustomObjective is the objective if Objective is Custom.
	CustomObjective *CustomObjective
	// QuantileAt is the quantile that Quantile predicts, in (0, 1); 0 means 0.5.
	QuantileAt float64
	// HuberDelta is the absolute error above which the loss of Huber is linear; 0 means 1.
	HuberDelta float64
	// TweediePower is p, in (1, 2), for a variance in proportion to mean^p; 0 means 1.5.
	TweediePower float64
	// Time is the distribution of the error in AFT, and TimeScale is its scale; 0 means 1.
	Time      Distribution
	TimeScale float64
	// RankTruncation is the number of first places of a ranking that LambdaMART optimises: it
	// uses pairs with at least one row in these places. 0 means 30. By default the weight of a
	// pair is divided by the difference of its scores, and the pairs of a query are then scaled
	// together so that their sum depends less on the length of the list. NoRankNormalization
	// turns off both steps.
	RankTruncation      int
	NoRankNormalization bool
	// Base has the margins that rows start from: one for each output, or a single one for all
	// outputs. nil means the best constants (the prior), but 0 for LambdaMART and Custom.
	Base []float64

	// Start is a model that training continues: rows start from its margins, the numbers of
	// rounds continue, and the new model has its trees, followed by those of NumTrees new
	// rounds. Its features and their kinds, AbsentIsZero, objective and classes must be the
	// same as in this training. Start cannot be combined with DART, which can drop only trees
	// of the same training. nil starts a new model.
	Start *Model

	// NumTrees is the number of rounds, each of which makes a tree for each output; 0 means
	// 100.
	NumTrees int
	// LearningRate is the factor by which leaf values are multiplied; 0 means 0.1.
	LearningRate float64
	// Schedule gives the learning rate of each round, from 1, in place of LearningRate. It is
	// called on every subtask, and its result must depend only on the round.
	Schedule func(round int) float64
	// GrowPolicy is the order in which nodes are split; the zero value is DepthWise.
	GrowPolicy GrowPolicy
	// MaxDepth is the largest number of splits on the path to a leaf. 0 means 6, but no limit
	// for LossGuide. −1 means no limit.
	MaxDepth int
	// MaxLeaves is the largest number of leaves of a tree. 0 means no limit, but 31 for
	// LossGuide.
	MaxLeaves int
	// MaxBins is the largest number of bins of a feature of numbers, 2 to 255; 0 means 255. It
	// does not bound the number of categories, of which a feature may have 65,535.
	MaxBins int
	// MinChildWeight is the least sum of hessians in a child; 0 means 1, and a negative number
	// means no bound.
	MinChildWeight float64
	// MinSamplesLeaf is the least number of rows in a child; 0 means 1.
	MinSamplesLeaf int
	// Lambda is the L2 penalty of leaf values; 0 means 1, and a negative number means no
	// penalty.
	Lambda float64
	// Alpha is the L1 penalty of leaf values.
	Alpha float64
	// MinSplitGain is the least gain of a split (gamma).
	MinSplitGain float64
	// MaxDeltaStep bounds the absolute value of a leaf before it is multiplied by the learning
	// rate. 0 means no bound, but 0.7 for Poisson. A negative number means no bound.
	MaxDeltaStep float64
	// A feature of at most MaxOneHot categories is split by separating one category from all
	// others. If a feature has more, its categories are sorted by gradient divided by hessian,
	// and a split cuts the sorted list in two. 0 means 4.
	MaxOneHot int
	// MaxCategories is the largest number of categories on the smaller side of a split. 0 means
	// no bound if CategorySmooth is 0. If CategorySmooth is not 0, 0 means 64, or twice the
	// square root of the number of categories if a feature has more than 1,024.
	MaxCategories int
	// Splits of the sorted list of categories are tried from its start. MinCategoryRows is the
	// least number of rows in the categories between a split that is tried and the next one,
	// and in the categories on the other side of a split. The rows of a category are estimated
	// from its hessians. 0 means no bound.
	MinCategoryRows int
	// CategorySmooth is added to the hessians of categories when they are sorted. If it is 0,
	// each node estimates from its rows how far categories differ by more than chance. The node
	// then shrinks the gradients of its categories towards each other accordingly, and does not
	// split them if they differ by no more than chance. A negative number means no smoothing.
	CategorySmooth float64
	// CategoryLambda is added to Lambda for splits of the sorted list of categories; 0 means
	// 10, and a negative number means that nothing is added.
	CategoryLambda float64
	// Monotone has constraints by the names of features: 1 means that the prediction must not
	// fall as the feature rises, −1 that it must not rise, and 0 no constraint.
	Monotone map[string]int
	// Interactions are sets of features by name. All features on the path to a leaf are in one
	// of the sets. A feature in no set is combined with no other. nil allows all combinations.
	Interactions [][]string

	// Subsample is the share of the rows that each round draws; 0 means 1.
	Subsample float64
	// If GOSS is true, a round uses the share TopRate of the rows that have the largest
	// gradients, and draws the share OtherRate of all rows from the remaining rows. The weights
	// of the drawn rows are raised, to make up for those that are not drawn. 0 means 0.2 for
	// TopRate and 0.1 for OtherRate. See Ke et al., "LightGBM", NeurIPS 2017.
	GOSS               bool
	TopRate, OtherRate float64
	// ColsampleByTree, ColsampleByLevel and ColsampleByNode are the shares of features that are
	// drawn: for each tree from all features, for each level from those of the tree, and for
	// each node from those of the level. 0 means 1.
	ColsampleByTree, ColsampleByLevel, ColsampleByNode float64
	// ScalePosWeight multiplies the weights of the second class of Logistic; 0 means 1.
	ScalePosWeight float64
	// ClassWeights has, for each class as text, the factor by which the weights of its rows are
	// multiplied. Classes that are not in the map have the factor 1. Balanced sets the factor
	// of a class to the total weight divided by (number of classes · weight of the class).
	// Metrics use the weights of WeightCol alone.
	ClassWeights map[string]float64
	Balanced     bool

	// If DART is true, earlier rounds are dropped at random while new trees are made (Rashmi
	// and Gilad-Bachrach, "DART", AISTATS 2015). With probability SkipDrop (0 means 0.5, a
	// negative number means 0) a round drops no earlier round. Otherwise it drops each earlier
	// round with probability DropRate (0 means 0.1), but at most MaxDrop rounds (0 means 50, a
	// negative number means no bound).
	DART               bool
	DropRate, SkipDrop float64
	MaxDrop            int

	// Metrics are measured after each round: rmse, mae, huber, quantile, logloss, error, auc,
	// aucpr, mlogloss, merror, poisson_deviance, gamma_deviance, tweedie_deviance, aft_nloglik,
	// ndcg and map. ndcg and map may be followed by "@" and the number of first places that
	// count. nil means the metric of the objective.
	Metrics []string
	// CustomMetrics are measured in addition to Metrics, after them.
	CustomMetrics []CustomMetric
	// If NoTrainMetrics is true, metrics are measured only on evaluation sets.
	NoTrainMetrics bool
	// EarlyStoppingRounds ends training when the first metric on the first evaluation set has
	// not improved by more than EarlyStoppingTolerance for that many rounds. The model then has
	// the trees up to the best round. It is an error if the metric is NaN in all rounds; auc,
	// for example, is NaN if all rows are of one class. 0 turns early stopping off.
	EarlyStoppingRounds    int
	EarlyStoppingTolerance float64
	// ValidationFraction is the share of the rows that are drawn at random and not trained on.
	// These held-out rows are the first evaluation set, named "validation". 0 means that no
	// rows are held out.
	ValidationFraction float64
	// Seed is the seed of all random draws; 0 means the seed of the job.
	Seed uint64
}

// These are the defaults of parameters whose value is 0.
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

// withDefaults returns the valid parameters p with every zero replaced by the default that it
// means, and then every negative number that means 0 replaced by 0. seed is the seed of the
// job.
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

// set stores its second argument in *v if *v is the zero value.
func set[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// orNone stores its second argument in *v if *v is 0, and stores 0 if *v is negative.
func orNone[T int | float64](v *T, to T) {
	switch {
	case *v == 0:
		*v = to
	case *v < 0:
		*v = 0
	}
}

// rate returns the learning rate of a round; rounds count from 1.
func (p *Params) rate(round int) float64 {
	if p.Schedule != nil {
		return p.Schedule(round)
	}
	return p.LearningRate
}
