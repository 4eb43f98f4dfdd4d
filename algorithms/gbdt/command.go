package gbdt

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

var (
	_ model.Estimator    = Params{}
	_ model.EvalFitter   = Params{}
	_ model.SetupChecker = Params{}
)

// Predicts implements model.Predictor.
func (p Params) Predicts() model.Prediction {
	made := model.Prediction{Column: "prediction", Scores: "probability"}
	switch {
	case p.Objective.classes():
		made.Target = model.Class
	case p.Objective == LambdaMART:
		made.Target = model.Rank
	}
	return made
}

// FitEval implements model.EvalFitter. It calls Train with eval as the only evaluation set.
func (p Params) FitEval(rows, eval *engine.Dataset) *engine.Dataset {
	if eval == nil {
		return Train(rows, p)
	}
	return Train(rows, p, Set{Name: "test", Rows: eval, Skip: true})
}

// CheckSetup implements model.SetupChecker.
func (p Params) CheckSetup(s model.TrainingSetup) []error {
	var errs []error
	bad := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New(text))
		}
	}
	stops, holdsOut := p.EarlyStoppingRounds > 0, p.ValidationFraction != 0
	bad(stops && !s.Tests && !holdsOut, "--early-stopping needs rows that are not trained on: give --test or --validation")
	bad(stops && s.Tests && !holdsOut && s.Prepares,
		"--early-stopping on --test does not go with --encode and --missing fill: leave these out, as trees read text and missing values as they are, or give --validation")
	bad(p.NoTrainMetrics && !s.Tests && !holdsOut, "--no-train-metrics measures nothing without --test or --validation")
	return errs
}

// objectiveFlag is an objective that can be named on the command line: any objective except
// Custom, which needs a Go function.
type objectiveFlag Objective

// MarshalText implements encoding.TextMarshaler.
func (o objectiveFlag) MarshalText() ([]byte, error) { return Objective(o).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *objectiveFlag) UnmarshalText(text []byte) error {
	i := slices.Index(objectives.Names[:Custom], string(text))
	if i < 0 {
		return fmt.Errorf("unknown objective %q: want one of %s", text, strings.Join(objectives.Names[:Custom], ", "))
	}
	*o = objectiveFlag(i)
	return nil
}

// Command implements model.Estimator.
func (Params) Command() model.Command {
	return model.Command{
		Name: "gbdt", About: "numbers, classes or ranks by gradient boosted trees", Curve: true, Trees: true,
		Flags: slices.Concat(bins.Flags, []model.Flag{
			{Name: "objective", Param: "Objective", Tag: `required:"" placeholder:"NAME" help:"Loss that training minimises: squared, absolute, huber or quantile; logistic or softmax, to predict classes; poisson, gamma or tweedie; aft, to predict times; lambdamart, to rank."`, As: objectiveFlag(0),
				Words: map[string]string{"Logistic": "logistic", "Softmax": "softmax", "LambdaMART": "lambdamart", "AFT": "aft"}},
			{Name: "group", Param: "GroupCol", Tag: `of:"objective=lambdamart" placeholder:"COLUMN" help:"Of lambdamart: column that names the query of each row. LibSVM files call it qid."`},
			{Name: "group-sizes", Tag: `of:"objective=lambdamart" placeholder:"FILE" help:"Of lambdamart, in place of --group: file with the number of rows of each query, one a line, in the order of the rows."`},
			{Name: "test-group-sizes", Tag: `of:"objective=lambdamart" placeholder:"FILE" help:"The same file for the rows of --test."`},
			{Name: "rounds", Param: "NumTrees", Tag: `want:"1..1048576" placeholder:"N" help:"Number of rounds, each of which makes a tree for every output (default: 100)."`},
			{Name: "learning-rate", Param: "LearningRate", Tag: `want:">0.." placeholder:"RATE" help:"Factor by which the leaves of a tree are multiplied (default: 0.1)."`},
			{Name: "grow", Param: "GrowPolicy", Tag: `placeholder:"HOW" help:"Order in which nodes are split: depthwise (the default), level by level, or lossguide, the leaf of the largest gain first." default:"depthwise"`},
			{Name: "max-depth", Param: "MaxDepth", Tag: `want:"-1|1..2147483647" placeholder:"N" help:"Largest number of splits above a leaf; -1: no limit (default: 6, of lossguide no limit)."`},
			{Name: "min-child-weight", Param: "MinChildWeight", Tag: `want:"0.." zero:"-1" placeholder:"SUM" help:"Least sum of hessians in a child; 0: any (default: 1)."`},
			{Name: "min-child-rows", Param: "MinSamplesLeaf", Tag: `want:"1..2147483647" placeholder:"N" help:"Least number of rows in a child (default: 1)."`},
			{Name: "lambda", Param: "Lambda", Tag: `want:"0.." zero:"-1" placeholder:"STRENGTH" help:"Strength of the ridge penalty on leaves; 0: none (default: 1)."`},
			{Name: "alpha", Param: "Alpha", Tag: `want:"0.." placeholder:"STRENGTH" help:"Strength of the lasso penalty on leaves (default: 0)."`},
			{Name: "gamma", Param: "MinSplitGain", Tag: `want:"0.." placeholder:"GAIN" help:"Least gain of a split (default: 0)."`},
			{Name: "subsample", Param: "Subsample", Tag: `want:">0..1" placeholder:"SHARE" help:"Share of the rows that are drawn anew for each round (default: 1)."`},
			{Name: "columns", Param: "ColsampleByTree", Tag: `want:">0..1" placeholder:"SHARE" help:"Share of the features that are drawn for each tree (default: 1)."`},
			{Name: "goss", Param: "GOSS", Tag: `help:"Draw rows by the size of their gradients."`},
			{Name: "dart", Param: "DART", Tag: `help:"Leave earlier trees out at random while new ones are made."`},
			{Name: "monotone", Param: "Monotone", Tag: `want:"-1..1" placeholder:"COLUMN=SIGN" help:"1 where the prediction must not fall as the column rises, -1 where it must not rise, such as age=1;debt=-1."`},
			{Name: "quantile-at", Param: "QuantileAt", Tag: `want:">0..<1" of:"objective=quantile" placeholder:"SHARE" help:"Of quantile: the quantile to predict (default: 0.5)."`},
			{Name: "huber-delta", Param: "HuberDelta", Tag: `want:">0.." of:"objective=huber" placeholder:"ERROR" help:"Of huber: the error above which the loss is linear (default: 1)."`},
			{Name: "power", Param: "TweediePower", Tag: `want:">1..<2" of:"objective=tweedie" placeholder:"POWER" help:"Of tweedie: power p, where the variance is in proportion to mean^p (default: 1.5)."`},
			{Name: "metrics", Param: "Metrics", Tag: `sep:"," placeholder:"NAME" help:"Metrics that are measured after each round: rmse, mae, logloss, error, auc, aucpr, mlogloss, merror, ndcg@5 and others (default: that of the objective)."`},
			{Name: "early-stopping", Param: "EarlyStoppingRounds", Tag: `want:"1..1048576" placeholder:"N" help:"End when the first metric has not become better for N rounds, and keep the trees up to the best round. It is measured on the rows that --validation holds out, or else on those of --test."`},
			{Name: "validation", Param: "ValidationFraction", Tag: `want:">0..<1" placeholder:"SHARE" help:"Share of the rows to hold out and measure on."`},
			{Name: "base", Param: "Base", Tag: `want:".." placeholder:"MARGIN" help:"Margins that rows start from, one for each output or one for all (default: the best constants)."`},
			{Name: "margins", Param: "MarginCols", Tag: `reads:"" placeholder:"COLUMN,..." help:"Columns of the margins that rows start from, one for each output. They are no part of the model: add them to what it predicts."`},
			{Name: "label-upper", Param: "LabelUpperCol", Tag: `reads:"" of:"objective=aft" placeholder:"COLUMN" help:"Of aft: column of the upper end of each time, empty if it is not known; --label has the lower end."`},
			{Name: "time", Param: "Time", Tag: `of:"objective=aft" placeholder:"NAME" help:"Of aft: distribution of the error of the logarithm of a time: normal (the default), logistic or extreme." default:"normal"`},
			{Name: "time-scale", Param: "TimeScale", Tag: `want:">0.." of:"objective=aft" placeholder:"SCALE" help:"Of aft: scale of that distribution (default: 1)."`},
			{Name: "rank-truncation", Param: "RankTruncation", Tag: `want:"1..2147483647" of:"objective=lambdamart" placeholder:"N" help:"Of lambdamart: number of places at the head of a list that training optimises (default: 30)."`},
			{Name: "no-rank-normalization", Param: "NoRankNormalization", Tag: `of:"objective=lambdamart" help:"Of lambdamart: do not scale the weights of pairs by the length of the list."`},
			{Name: "max-delta-step", Param: "MaxDeltaStep", Tag: `want:"0.." zero:"-1" placeholder:"SIZE" help:"Largest leaf, before the learning rate; 0: no bound (default: none, of poisson 0.7)."`},
			{Name: "max-one-hot", Param: "MaxOneHot", Tag: `want:"1..255" placeholder:"N" help:"Features of at most N categories are split one category against the others (default: 4)."`},
			{Name: "max-categories", Param: "MaxCategories", Tag: `want:"1..2147483647" placeholder:"N" help:"Largest number of categories on the smaller side of a split (default: none, with --category-smooth 64 or more)."`},
			{Name: "min-category-rows", Param: "MinCategoryRows", Tag: `want:"0..2147483647" placeholder:"N" help:"Least number of rows in the categories between one split that is tried and the next (default: none)."`},
			{Name: "category-smooth", Param: "CategorySmooth", Tag: `want:"0.." zero:"-1" placeholder:"SUM" help:"Added to the hessians of categories when they are put in order; 0: nothing (default: each node estimates how far its categories differ by more than chance, and shrinks them accordingly)."`},
			{Name: "category-lambda", Param: "CategoryLambda", Tag: `want:"0.." zero:"-1" placeholder:"STRENGTH" help:"Added to --lambda at splits of several categories; 0: nothing (default: 10)."`},
			{Name: "interactions", Param: "Interactions", Tag: `placeholder:"COLUMNS;..." help:"Sets of features that one path to a leaf may combine, such as age,fare;sex,class (default: all may)."`},
			{Name: "top-rate", Param: "TopRate", Tag: `want:">0..1" of:"goss" placeholder:"SHARE" help:"Of --goss: share of the rows that are all taken, those of the largest gradients (default: 0.2)."`},
			{Name: "other-rate", Param: "OtherRate", Tag: `want:">0..1" of:"goss" placeholder:"SHARE" help:"Of --goss: share of the rows that is drawn from the others (default: 0.1)."`},
			{Name: "columns-by-level", Param: "ColsampleByLevel", Tag: `want:">0..1" placeholder:"SHARE" help:"Share of the tree's features that is drawn for each level (default: 1)."`},
			{Name: "columns-by-node", Param: "ColsampleByNode", Tag: `want:">0..1" placeholder:"SHARE" help:"Share of the level's features that is drawn for each node (default: 1)."`},
			{Name: "scale-pos-weight", Param: "ScalePosWeight", Tag: `want:">0.." of:"objective=logistic" placeholder:"FACTOR" help:"Of logistic: factor of the weights of the rows of the second class (default: 1)."`},
			{Name: "drop-rate", Param: "DropRate", Tag: `want:">0..1" of:"dart" placeholder:"SHARE" help:"Of --dart: probability with which a tree is dropped (default: 0.1)."`},
			{Name: "skip-drop", Param: "SkipDrop", Tag: `want:"0..1" zero:"-1" of:"dart" placeholder:"SHARE" help:"Of --dart: share of the rounds that drop no tree; 0: none (default: 0.5)."`},
			{Name: "max-drop", Param: "MaxDrop", Tag: `want:"-1|1..2147483647" of:"dart" placeholder:"N" help:"Of --dart: most trees that a round drops; -1: any number (default: 50)."`},
			{Name: "no-train-metrics", Param: "NoTrainMetrics", Tag: `help:"Measure on the rows of --test and --validation alone."`},
			{Name: "stopping-tolerance", Param: "EarlyStoppingTolerance", Tag: `want:"0.." of:"early-stopping" placeholder:"AMOUNT" help:"Of --early-stopping: least improvement of the metric that counts (default: 0)."`},
		}),
	}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	return Params{Objective: m.Objective}.Predicts().Named(m.PredictionCol, m.ProbabilityCol, m.Classes.Values)
}

// Describe implements model.Describer. The description has the metrics measured in training and
// the importance of each feature.
func (m *Model) Describe(feature func(i int) string) (d model.Description) {
	d.Settings = []model.Fact{{Name: "objective", Value: m.Objective.String()}}
	m.describeMetrics(&d)
	d.AddImportances(m.Ensemble, model.Chosen(m.Columns, feature))
	return d
}

// describeMetrics adds to d the values of the first metric on each set after every round, and
// the values of all metrics after the best round.
func (m *Model) describeMetrics(d *model.Description) {
	s := m.Summary
	if len(s.Record) == 0 || len(s.Metrics) == 0 {
		return
	}
	best := len(s.Record)
	if s.BestRound > 0 {
		best = min(best, s.BestRound)
	}
	d.Loss = s.Metrics[0]
	t := model.Table{Title: "measured after round " + strconv.Itoa(best), Columns: append([]string{"set"}, s.Metrics...)}
	for k, set := range s.Sets {
		curve := model.Curve{Name: set}
		for _, round := range s.Record {
			curve.Values = append(curve.Values, float64(round[k][0]))
		}
		d.Curves = append(d.Curves, curve)
		row := []any{set}
		for _, v := range s.Record[best-1][k] {
			row = append(row, float64(v))
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) > 0 {
		d.Tables = append(d.Tables, t)
	}
}

// Categories implements model.Categorizer.
func (m *Model) Categories() model.Categories {
	return model.TreeCategories(m.Ensemble, m.Summary.Rows)
}

// Treats implements model.Treater.
func (m *Model) Treats(string) (missing, unseen model.Treatment) {
	return model.Taken, model.LikeMissing
}
