package forest

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/model"
)

var _ model.Estimator = Params{}

// Predicts implements model.Predictor.
func (p Params) Predicts() model.Prediction { return p.Task.Predicts() }

// Command implements model.Estimator.
func (Params) Command() model.Command {
	return model.Command{
		Name: "forest", About: "numbers or classes by a random forest, extra trees or a single tree", Trees: true,
		Flags: slices.Concat(bins.Flags, []model.Flag{
			model.TaskFlag,
			{Name: "method", Param: "Method", Tag: `placeholder:"HOW" help:"How trees differ: random-forest (the default), extra-trees, or single-tree (one tree)." default:"random-forest"`,
				Words: map[string]string{"SingleTree": "single-tree"}},
			{Name: "criterion", Param: "Criterion", Tag: `placeholder:"NAME" help:"Impurity that splits reduce: gini (the default) or entropy for classes, variance (the default) or poisson for numbers." default:"auto"`},
			{Name: "trees", Param: "NumTrees", Tag: `want:"1..1048576" placeholder:"N" help:"Number of trees (default: 100)."`},
			{Name: "max-depth", Param: "MaxDepth", Tag: `want:"-1|1..65536" placeholder:"N" help:"Largest number of splits above a leaf (default: no limit, like -1: until leaves are pure, or their rows lie in the same bins)."`},
			{Name: "min-child-rows", Param: "MinSamplesLeaf", Tag: `want:"1..2147483647" placeholder:"N" help:"Least number of rows in a leaf (default: 1)."`},
			{Name: "max-features", Param: "MaxFeatures", Tag: `placeholder:"WHAT" help:"Features that are tried at a node: sqrt (the default for classes), third (for numbers), log2, all, a number, or a share such as 0.4."`},
			{Name: "sample-share", Param: "SampleShare", Tag: `want:">0..1" placeholder:"SHARE" help:"Share of the rows that are drawn for a tree (default: 1)."`},
			{Name: "sampling", Param: "Sampling", Tag: `placeholder:"HOW" help:"How the rows of a tree are drawn: bootstrap (the default of random-forest), subset (without repetition), or whole (all rows, the default of the other methods)." default:"auto"`,
				Words: map[string]string{"Bootstrap": "bootstrap", "Subset": "subset"}},
			{Name: "min-split-rows", Param: "MinSamplesSplit", Tag: `want:"2..2147483647" placeholder:"N" help:"Least number of rows in a node that is split (default: 2)."`},
			{Name: "min-gain", Param: "MinSplitGain", Tag: `want:"0.." placeholder:"GAIN" help:"Least reduction of impurity by a split, times the node's share of the tree's weight (default: 0)."`},
			{Name: "oob", Param: "OOBScore", Tag: `help:"Measure the forest on the rows, each by the trees that did not draw it."`},
		}),
	}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	return m.Task.Predicts().Named(m.PredictionCol, m.ProbabilityCol, m.Classes.Values)
}

// Describe implements model.Describer. The description has the measures of the forest on the
// rows that its trees did not draw, and the importances of features.
func (m *Model) Describe(feature func(i int) string) (d model.Description) {
	if o := m.OutOfBag; o != nil {
		score, loss := "R² out of bag", "rmse out of bag"
		if m.Task == Classification {
			score, loss = "accuracy out of bag", "log-loss out of bag"
		}
		d.Facts = []model.Fact{{Name: score, Value: o.Score}, {Name: loss, Value: o.Loss}}
	}
	d.AddImportances(m.Trees, feature)
	return d
}

// Categories implements model.Categorizer.
func (m *Model) Categories() model.Categories { return model.TreeCategories(m.Trees, m.Summary.Rows) }

// Treats implements model.Treater.
func (m *Model) Treats(string) (missing, unseen model.Treatment) {
	return model.Taken, model.LikeMissing
}
