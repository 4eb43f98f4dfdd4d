package builtin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TreeArgs are flags of all trainings of trees.
type TreeArgs struct {
	Categories    list           `param:"CategoricalCols" placeholder:"COLUMN,..." help:"Columns whose whole numbers, 0 to 65,535, are categories. Text always is, with up to 65,535 of them."`
	CategoriesAt  []int          `want:"0..2147483647" param:"CategoricalAt" placeholder:"N" help:"The same of files whose features have no names, such as LibSVM: numbers of the components, the first of which is 0."`
	MaxLeaves     int            `want:"2..16777216" placeholder:"N" help:"Largest number of leaves of a tree."`
	MaxBins       int            `want:"2..255" placeholder:"N" help:"Largest number of bins of a feature of numbers, up to 255 (default: 255). Categories are not bounded by it."`
	ClassWeights  pairs[float64] `want:">0.." placeholder:"CLASS=WEIGHT" help:"Factors of the weights of the rows of classes, such as yes=2;no=1."`
	Balanced      bool           `help:"Make all classes weigh the same."`
	ZeroIfMissing bool           `param:"AbsentIsZero" help:"Take what sparse rows leave out for 0, in place of missing."`
}

// withCategories wraps a function that makes a stage for validation. The columns of the file are
// not known then, so that the categorical columns stand in for the features.
func (a TreeArgs) withCategories(stage func(c columns) model.Stage) func(c columns) model.Stage {
	return func(c columns) model.Stage {
		if len(a.Categories) > 0 {
			c.vector, c.features = "", a.Categories
		}
		return stage(c)
	}
}

// native says that trees read text, as categories, and missing values as they are.
func (TreeArgs) native() {}

// objective is a flag for those of boosted trees that need no function of a program.
type objective gbdt.Objective

// MarshalText implements encoding.TextMarshaler.
func (o objective) MarshalText() ([]byte, error) { return gbdt.Objective(o).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *objective) UnmarshalText(text []byte) error {
	var names []string
	for at := gbdt.Squared; at != gbdt.Custom; at++ {
		if at.String() == string(text) {
			*o = objective(at)
			return nil
		}
		names = append(names, at.String())
	}
	return fmt.Errorf("unknown objective %q: want one of %s", text, strings.Join(names, ", "))
}

// GBDTTrain are the flags of training boosted trees.
type GBDTTrain struct {
	TrainArgs
	TreeArgs
	Objective     objective       `required:"" placeholder:"NAME" help:"What is predicted, and what training makes small: squared, absolute, huber, quantile; of classes logistic or softmax; poisson, gamma, tweedie; lambdamart, to rank."`
	Group         string          `of:"objective=lambdamart" param:"GroupCol" placeholder:"COLUMN" help:"Of lambdamart: column of the query of a row. LibSVM files call it qid."`
	GroupSizes    string          `of:"objective=lambdamart" placeholder:"FILE" help:"Of lambdamart, in place of --group: file with the number of rows of each query, a line each, in the order of the rows."`
	TestSizes     string          `of:"objective=lambdamart" name:"test-group-sizes" placeholder:"FILE" help:"The same of the rows of --test."`
	Rounds        int             `want:"1..1048576" param:"NumTrees" placeholder:"N" help:"Number of rounds, each of which makes a tree for every output (default: 100)."`
	LearningRate  float64         `want:">0.." placeholder:"RATE" help:"What the leaves of a tree are multiplied with (default: 0.1)."`
	Grow          gbdt.GrowPolicy `param:"GrowPolicy" placeholder:"HOW" help:"In which order nodes are split: depthwise (the default), level by level, or lossguide, the leaf that wins most." default:"depthwise"`
	MaxDepth      int             `want:"-1|1..2147483647" placeholder:"N" help:"Largest number of splits above a leaf; -1: no limit (default: 6, of lossguide no limit)."`
	MinWeight     float64         `want:"0.." zero:"-1" param:"MinChildWeight" name:"min-child-weight" placeholder:"SUM" help:"Least sum of hessians in a child; 0: any (default: 1)."`
	MinRows       int             `want:"1..2147483647" param:"MinSamplesLeaf" name:"min-child-rows" placeholder:"N" help:"Least number of rows in a child (default: 1)."`
	Lambda        float64         `want:"0.." zero:"-1" placeholder:"STRENGTH" help:"Strength of the ridge penalty on leaves; 0: none (default: 1)."`
	Alpha         float64         `want:"0.." placeholder:"STRENGTH" help:"Strength of the lasso penalty on leaves (default: 0)."`
	Gamma         float64         `want:"0.." param:"MinSplitGain" placeholder:"GAIN" help:"What a split must win at least (default: 0)."`
	Subsample     float64         `want:">0..1" placeholder:"SHARE" help:"Share of the rows that are drawn anew for each round (default: 1)."`
	Columns       float64         `want:">0..1" param:"ColsampleByTree" placeholder:"SHARE" help:"Share of the features that are drawn for each tree (default: 1)."`
	GOSS          bool            `name:"goss" help:"Draw rows by the size of their gradients."`
	DART          bool            `name:"dart" help:"Drop trees at random while others are made."`
	Monotone      pairs[int]      `want:"-1..1" placeholder:"COLUMN=SIGN" help:"1 where the prediction must not fall as the column rises, -1 where it must not rise, such as age=1;debt=-1."`
	QuantileAt    float64         `want:">0..<1" of:"objective=quantile" placeholder:"SHARE" help:"Of quantile: which one (default: 0.5)."`
	HuberDelta    float64         `want:">0.." of:"objective=huber" placeholder:"ERROR" help:"Of huber: the error from which on it is absolute (default: 1)."`
	Power         float64         `want:">1..<2" of:"objective=tweedie" param:"TweediePower" placeholder:"POWER" help:"Of tweedie: the power of the mean that the variance is in proportion to (default: 1.5)."`
	Metrics       []string        `placeholder:"NAME" help:"What is measured after each round: rmse, mae, logloss, error, auc, aucpr, mlogloss, merror, ndcg@5 and others (default: what suits the objective)."`
	EarlyStopping int             `want:"1..1048576" param:"EarlyStoppingRounds" placeholder:"N" help:"End when the first metric has not become better for N rounds on the rows that --validation holds out, or else on those of --test, and keep the trees up to the best round."`
	Validation    float64         `want:">0..<1" param:"ValidationFraction" placeholder:"SHARE" help:"Share of the rows to hold out and measure on."`
	BoostArgs
}

func (a GBDTTrain) goal() goal {
	switch gbdt.Objective(a.Objective) {
	case gbdt.Logistic, gbdt.Softmax:
		return classesGoal
	case gbdt.LambdaMART:
		return ranksGoal
	}
	return numbersGoal
}

// Validate refuses what cannot be meant.
func (a GBDTTrain) Validate(k *kong.Context) error {
	var errs []error
	bad := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New(text))
		}
	}
	bad(a.GroupSizes != "" && a.Group != "", "both --group and --group-sizes tell the queries of rows: give one of them")
	bad((a.GroupSizes != "" && a.Test != "") != (a.TestSizes != ""), "--group-sizes with --test needs --test-group-sizes, which goes with nothing else")
	bad(a.EarlyStopping > 0 && a.Test == "" && a.Validation == 0, "--early-stopping needs rows that are not trained on: give --test or --validation")
	bad(a.EarlyStopping > 0 && a.Test != "" && a.Validation == 0 && (a.Encode || a.Missing == "fill"),
		"--early-stopping on --test does not go with --encode and --missing fill: trees read text and missing values as they are, or give --validation")
	bad(a.NoTrainMetrics && a.Test == "" && a.Validation == 0, "--no-train-metrics measures nothing without --test or --validation")
	return refuse(k, errors.Join(append(errs, a.validate(a.goal(), a.TreeArgs.withCategories(a.stage)))...))
}

func (a GBDTTrain) stage(c columns) model.Stage { return a.params(c) }

func (a GBDTTrain) params(c columns) gbdt.Params {
	p := gbdt.Params{VectorCol: c.vector, FeatureCols: c.features, CategoricalCols: a.Categories, CategoricalAt: a.CategoriesAt, LabelCol: c.label, PredictionCol: c.prediction, ProbabilityCol: c.probability, WeightCol: c.weight, Skip: c.skip,
		AbsentIsZero: a.ZeroIfMissing, Objective: gbdt.Objective(a.Objective), GroupCol: c.group, QuantileAt: a.QuantileAt, HuberDelta: a.HuberDelta, TweediePower: a.Power,
		NumTrees: a.Rounds, LearningRate: a.LearningRate, GrowPolicy: a.Grow, MaxDepth: a.MaxDepth, MaxLeaves: a.MaxLeaves, MaxBins: a.MaxBins,
		MinChildWeight: a.MinWeight, MinSamplesLeaf: a.MinRows, Lambda: a.Lambda, Alpha: a.Alpha, MinSplitGain: a.Gamma,
		Subsample: a.Subsample, ColsampleByTree: a.Columns, GOSS: a.GOSS, DART: a.DART, Monotone: a.Monotone,
		ClassWeights: a.ClassWeights, Balanced: a.Balanced, Metrics: a.Metrics, EarlyStoppingRounds: a.EarlyStopping, ValidationFraction: a.Validation}
	a.BoostArgs.into(&p)
	return p
}

// sizedGroup is the column of queries where --group-sizes tells them.
const sizedGroup = "query by its size"

// sized adds the column of queries to rows, those of --test or others, where files of sizes
// tell them.
func (a GBDTTrain) sized(rows *engine.Dataset, test bool) *engine.Dataset {
	file, flag := a.GroupSizes, "--group-sizes"
	if test {
		file, flag = a.TestSizes, "--test-group-sizes"
	}
	if file == "" || rows.Poisoned() {
		return rows
	}
	sizes := operators.ReadCSV(rows.Builder(), file, operators.CSVOptions{Columns: []operators.Column{{Name: "size", Type: "int64"}}, TrimSpace: true})
	return gbdt.WithGroups(rows, sizes, sizedGroup).Named(flag)
}

// group returns the column of queries.
func (a GBDTTrain) group(schema *arrow.Schema) string {
	if a.GroupSizes != "" {
		return sizedGroup
	}
	if a.Group == "" && gbdt.Objective(a.Objective) == gbdt.LambdaMART && schema.HasField("qid") {
		return "qid"
	}
	return a.Group
}

// fit trains, with the rows of --test as an evaluation set where there are.
func (a GBDTTrain) fit(c columns, rows, tested *engine.Dataset) *engine.Dataset {
	var sets []gbdt.Set
	if tested != nil {
		sets = append(sets, gbdt.Set{Name: "test", Rows: tested, Skip: true})
	}
	return gbdt.Train(rows, a.params(c), sets...)
}

// ForestTrain are the flags of training forests.
type ForestTrain struct {
	TrainArgs
	TreeArgs
	TaskArgs
	Method      forest.Method    `placeholder:"HOW" help:"How trees differ: random-forest (the default), extra-trees, or single-tree, which is one." default:"random-forest"`
	Criterion   forest.Criterion `placeholder:"NAME" help:"What splits lessen: gini (the default) or entropy of classes, variance (the default) or poisson of numbers." default:"auto"`
	Trees       int              `want:"1..1048576" param:"NumTrees" placeholder:"N" help:"Number of trees (default: 100)."`
	MaxDepth    int              `want:"-1|1..65536" placeholder:"N" help:"Largest number of splits above a leaf (default: no limit, like -1: until leaves are pure, or their rows lie in the same bins)."`
	MinRows     int              `want:"1..2147483647" param:"MinSamplesLeaf" name:"min-child-rows" placeholder:"N" help:"Least number of rows in a leaf (default: 1)."`
	MaxFeatures string           `placeholder:"WHAT" help:"Features that are tried at a node: sqrt (the default for classes), third (for numbers), log2, all, a number, or a share such as 0.4."`
	SampleShare float64          `want:">0..1" placeholder:"SHARE" help:"Share of the rows that are drawn for a tree (default: 1)."`
	Sampling    forest.Sampling  `placeholder:"HOW" help:"How the rows of a tree are drawn: bootstrap (the default of random-forest), subset, without repetition, or whole (that of the others)." default:"auto"`
	MinSplit    int              `want:"2..2147483647" param:"MinSamplesSplit" name:"min-split-rows" placeholder:"N" help:"Least number of rows in a node that is split (default: 2)."`
	MinGain     float64          `want:"0.." param:"MinSplitGain" placeholder:"GAIN" help:"Least share of the tree's impurity that a split lessens (default: 0)."`
	OOB         bool             `param:"OOBScore" name:"oob" help:"Measure the forest on the rows, each by the trees that did not draw it."`
}

// Validate refuses what cannot be meant.
func (a ForestTrain) Validate(k *kong.Context) error {
	return refuse(k, a.validate(a.goal(), a.TreeArgs.withCategories(a.stage)))
}

func (a ForestTrain) stage(c columns) model.Stage {
	p := forest.Params{VectorCol: c.vector, FeatureCols: c.features, CategoricalCols: a.Categories, CategoricalAt: a.CategoriesAt, LabelCol: c.label, PredictionCol: c.prediction, ProbabilityCol: c.probability, WeightCol: c.weight, Skip: c.skip,
		AbsentIsZero: a.ZeroIfMissing, Method: a.Method, Criterion: a.Criterion, NumTrees: a.Trees, MaxDepth: a.MaxDepth, MaxLeaves: a.MaxLeaves,
		Sampling: a.Sampling, MinSamplesSplit: a.MinSplit, MinSplitGain: a.MinGain,
		MinSamplesLeaf: a.MinRows, MaxFeatures: a.MaxFeatures, MaxBins: a.MaxBins, SampleShare: a.SampleShare, OOBScore: a.OOB,
		ClassWeights: a.ClassWeights, Balanced: a.Balanced}
	if a.goal() == classesGoal {
		p.Task = forest.Classification
	}
	return p
}
