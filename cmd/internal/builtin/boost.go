package builtin

import (
	"github.com/superstep-ml/superstep/algorithms/gbdt"
)

// BoostArgs are the flags of boosted trees that few need. They are 0 where they are not given,
// which to the parameters is the default.
type BoostArgs struct {
	Base              []float64         `want:".." placeholder:"MARGIN" help:"Margins that rows start from, one for each output or one for all (default: the best constants)."`
	Margins           list              `param:"MarginCols" placeholder:"COLUMN,..." help:"Columns of the margins that rows start from, one for each output. The model lacks them: they are to be added to what it predicts."`
	LabelUpper        string            `of:"objective=aft" param:"LabelUpperCol" placeholder:"COLUMN" help:"Of aft: column of the upper ends of times, empty where they are open; --label are the lower ones."`
	Time              gbdt.Distribution `of:"objective=aft" placeholder:"NAME" help:"Of aft: distribution of the error of the logarithm of a time: normal (the default), logistic or extreme." default:"normal"`
	TimeScale         float64           `want:">0.." of:"objective=aft" placeholder:"SCALE" help:"Of aft: scale of that distribution (default: 1)."`
	RankTruncation    int               `want:"1..2147483647" of:"objective=lambdamart" placeholder:"N" help:"Of lambdamart: places at the head of a list that are to be right (default: 30)."`
	NoRankNorm        bool              `of:"objective=lambdamart" param:"NoRankNormalization" name:"no-rank-normalization" help:"Of lambdamart: leave the weights of pairs as they are, however long their list."`
	MaxDeltaStep      float64           `want:"0.." zero:"-1" placeholder:"SIZE" help:"Largest leaf, before the learning rate; 0: no bound (default: none, of poisson 0.7)."`
	MaxOneHot         int               `want:"1..255" placeholder:"N" help:"Largest number of categories of which a split takes one off (default: 4)."`
	MaxCategories     int               `want:"1..2147483647" placeholder:"N" help:"Largest number of categories on the smaller side of a split (default: none, with --category-smooth 64 or more)."`
	MinCategoryRows   int               `want:"0..2147483647" placeholder:"N" help:"Least number of rows of the categories between two splits that are tried (default: none)."`
	CategorySmooth    float64           `want:"0.." zero:"-1" placeholder:"SUM" help:"Added to the hessians of categories when they are put in order; 0: nothing, they count as they are seen (default: each node learns by how much categories differ by more than chance)."`
	CategoryLambda    float64           `want:"0.." zero:"-1" placeholder:"STRENGTH" help:"Added to --lambda at splits of several categories; 0: nothing (default: 10)."`
	Interactions      sets              `placeholder:"COLUMNS;..." help:"Sets of features that may be on the way to one leaf together, such as age,fare;sex,class (default: all may)."`
	TopRate           float64           `want:">0..1" of:"goss" placeholder:"SHARE" help:"Of --goss: share of the rows, those of the largest gradients, that all count (default: 0.2)."`
	OtherRate         float64           `want:">0..1" of:"goss" placeholder:"SHARE" help:"Of --goss: share of the rows that is drawn from the others (default: 0.1)."`
	ColumnsByLevel    float64           `want:">0..1" param:"ColsampleByLevel" placeholder:"SHARE" help:"Share of the tree's features that is drawn for each level (default: 1)."`
	ColumnsByNode     float64           `want:">0..1" param:"ColsampleByNode" placeholder:"SHARE" help:"Share of the level's features that is drawn for each node (default: 1)."`
	ScalePosWeight    float64           `want:">0.." of:"objective=logistic" placeholder:"FACTOR" help:"Of logistic: factor of the weights of the rows of the second class (default: 1)."`
	DropRate          float64           `want:">0..1" of:"dart" placeholder:"SHARE" help:"Of --dart: probability with which a tree is dropped (default: 0.1)."`
	SkipDrop          float64           `want:"0..1" zero:"-1" of:"dart" placeholder:"SHARE" help:"Of --dart: share of the rounds that drop no tree; 0: none (default: 0.5)."`
	MaxDrop           int               `want:"-1|1..2147483647" of:"dart" placeholder:"N" help:"Of --dart: most trees that a round drops; -1: any number (default: 50)."`
	NoTrainMetrics    bool              `help:"Measure on the rows of --test and --validation alone."`
	StoppingTolerance float64           `want:"0.." of:"early-stopping" param:"EarlyStoppingTolerance" placeholder:"AMOUNT" help:"Of --early-stopping: by how much a metric must become better to count (default: 0)."`
}

// into sets the parameters.
func (a BoostArgs) into(p *gbdt.Params) {
	p.Base, p.MarginCols, p.LabelUpperCol, p.Time, p.TimeScale = a.Base, a.Margins, a.LabelUpper, a.Time, a.TimeScale
	p.RankTruncation, p.NoRankNormalization = a.RankTruncation, a.NoRankNorm
	p.MaxDeltaStep, p.MaxOneHot, p.MaxCategories, p.MinCategoryRows = a.MaxDeltaStep, a.MaxOneHot, a.MaxCategories, a.MinCategoryRows
	p.CategorySmooth, p.CategoryLambda = a.CategorySmooth, a.CategoryLambda
	p.Interactions = a.Interactions
	p.TopRate, p.OtherRate = a.TopRate, a.OtherRate
	p.ColsampleByLevel, p.ColsampleByNode, p.ScalePosWeight = a.ColumnsByLevel, a.ColumnsByNode, a.ScalePosWeight
	p.DropRate, p.SkipDrop, p.MaxDrop = a.DropRate, a.SkipDrop, a.MaxDrop
	p.NoTrainMetrics, p.EarlyStoppingTolerance = a.NoTrainMetrics, a.StoppingTolerance
}

// beside are the columns that are read beside features and label.
func (a BoostArgs) beside() map[string][]string {
	return map[string][]string{"--margins": a.Margins, "--label-upper": one(a.LabelUpper)}
}

// one is a list of a column, empty where there is none.
func one(column string) []string {
	if column == "" {
		return nil
	}
	return []string{column}
}
