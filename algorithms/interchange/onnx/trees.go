package onnx

import (
	"cmp"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// Trees become nodes with the operators TreeEnsembleRegressor and TreeEnsembleClassifier
// (ai.onnx.ml 3), with thresholds, leaves and sums of float32. The graph rounds features to
// float32 first, as training does, so that rows go the same way. For each set of a categorical
// node the graph adds a feature. It is 1 or more if the category is in the set, 0 if it is not,
// and NaN if the category is missing; see members.

// link is a function from the outputs of trees to predictions.
type link uint8

const (
	linkIdentity link = iota
	linkExp
	linkSigmoid
	linkSoftmax
	// linkShares means that the outputs are the probabilities of the classes.
	linkShares
)

// grown has the facts about a model of trees that models of packages gbdt and forest have in
// common.
type grown struct {
	ensemble *tree.Ensemble
	reads    []model.Input
	dim      int     // number of features of a row
	columns  []int32 // the features that the ensemble reads; nil means all
	// unseen is the code of text that did not occur in training: NaN or −1.
	unseen                  float64
	link                    link
	labels                  string // type of the labels; "" for a regression
	classes                 []string
	prediction, probability string
}

func (b *builder) gbdt(m *gbdt.Model) {
	g := grown{ensemble: m.Ensemble, reads: m.Inputs(), dim: m.Dim, columns: m.Columns, unseen: math.NaN(),
		labels: m.Classes.Type, classes: m.Classes.Values, prediction: m.PredictionCol, probability: m.ProbabilityCol}
	switch m.Link {
	case gbdt.Identity:
	case gbdt.Exponential:
		g.link = linkExp
	case gbdt.Sigmoid:
		g.link = linkSigmoid
	case gbdt.Shares:
		g.link = linkSoftmax
	default:
		b.fail("there is no operator for the link %v", m.Link)
		return
	}
	b.trees(&g)
}

func (b *builder) forest(m *forest.Model) {
	g := grown{ensemble: m.Trees, reads: m.Inputs(), dim: m.Dim, unseen: -1, labels: m.Classes.Type, classes: m.Classes.Values,
		prediction: m.PredictionCol, probability: m.ProbabilityCol}
	if m.Task == forest.Classification {
		g.link = linkShares
	}
	b.trees(&g)
}

// trees adds the nodes of a model of trees.
func (b *builder) trees(g *grown) {
	if err := g.ensemble.Validate(); err != nil {
		b.fail("%w", err)
		return
	}
	x := b.treeFeatures(g)
	if b.err != nil {
		return
	}
	t := newTreeLists(b, g.ensemble)
	x = t.withSets(x)
	t.fill()
	if b.err != nil {
		return
	}
	if len(g.classes) == 0 && g.ensemble.Outputs != 1 {
		b.fail("it has %d outputs, and predicts one number", g.ensemble.Outputs)
		return
	}
	if len(g.classes) == 0 {
		y := t.margins(x)
		switch g.link {
		case linkExp:
			y = b.op("Exp", []string{y})
		case linkSigmoid:
			y = b.op("Sigmoid", []string{y})
		}
		b.output(cmp.Or(g.prediction, "prediction"), y, b.real, 1, "float64")
		return
	}
	var p string
	if b.real == typeFloat && len(g.ensemble.Trees) > 0 {
		p = t.classifier(x, g.link)
	} else {
		p = t.probabilities(x, g.link)
	}
	b.classes(cmp.Or(g.prediction, "prediction"), b.largest(p), g.labels, g.classes)
	b.output(cmp.Or(g.probability, "probability"), p, b.real, len(g.classes), "vector")
}

// treeFeatures returns the features of the ensemble, as float32.
func (b *builder) treeFeatures(g *grown) string {
	if len(g.reads) == 1 && model.IsVector(g.reads[0].Type) {
		x := b.numbers(g.reads[0].Column, g.dim)
		return b.float32s(b.chosen(x, g.columns))
	}
	at := g.columns
	if at == nil {
		for j := range g.reads {
			at = append(at, int32(j))
		}
	}
	if len(at) != len(g.ensemble.Features) || len(at) == 0 {
		b.fail("%d of %d columns are features, and trees look at %d", len(at), len(g.reads), len(g.ensemble.Features))
		return ""
	}
	var parts []string
	for f, j := range at {
		name := g.reads[j].Column
		if g.ensemble.Categories != nil && g.ensemble.Categories[f] != nil && b.find(name).elem == typeString {
			parts = append(parts, b.codes(name, g.ensemble.Categories[f], g.unseen))
			continue
		}
		parts = append(parts, b.numbers(name, 1))
	}
	return b.float32s(b.concat(parts))
}

func (b *builder) chosen(x string, columns []int32) string {
	if columns == nil {
		return x
	}
	at := make([]int64, len(columns))
	for k, j := range columns {
		at[k] = int64(j)
	}
	return b.gather(x, at)
}

// codes returns the codes of the categories of a text column. The empty text is treated as
// missing unless it is a category.
func (b *builder) codes(name string, categories []string, unseen float64) string {
	keys := slices.Clone(categories)
	if !slices.Contains(keys, "") {
		keys = append(keys, "")
	}
	at := b.index(name, keys)
	made := b.cast(at, b.real)
	made = b.op("Where", []string{b.op("Less", []string{at, b.ints("first", 0)}), b.constant("unseen", unseen), made})
	if len(keys) == len(categories) {
		return made
	}
	empty := b.op("Equal", []string{at, b.ints("empty", int64(len(categories)))})
	return b.op("Where", []string{empty, b.constant("missing", math.NaN()), made})
}

// float32s returns a tensor with the numbers of x rounded to float32, because trees compare
// float32.
func (b *builder) float32s(x string) string {
	if b.real == typeFloat {
		return x
	}
	return b.cast(x, typeFloat)
}
