package gbdt

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/comqueue"
)

// maxNamed is the largest number of features for which a model keeps all features. A model with
// more features keeps only those that its trees use.
const maxNamed = 1 << 16

// finish returns the trained model, on subtask 0.
func (q *boosting) finish(ctx *comqueue.ComContext) (model.Model, error) {
	s := trained.Get(ctx)
	f, p := s.data.Facts, s.params
	m := &Model{
		Objective: p.Objective, Parameters: p.objectiveParameters(), Link: s.loss.link(), Dim: f.Declared, AbsentIsZero: p.AbsentIsZero,
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol, inputs: signature.InputsOf(p.VectorCol, p.FeatureCols, q.schema, f.Declared),
		Summary: Summary{Rows: f.Rows, Weight: f.Weight, Rounds: ctx.StepNo(), BestRound: s.Best, Record: s.Log},
	}
	if p.Objective.classes() {
		m.Classes = Classes{Type: f.LabelType, Values: f.Classes}
	}
	if p.CustomObjective != nil {
		m.CustomName = p.CustomObjective.Name
	}
	for _, set := range s.sets {
		m.Summary.Sets = append(m.Summary.Sets, set.name)
	}
	for _, metric := range s.metrics {
		m.Summary.Metrics = append(m.Summary.Metrics, metric.name)
	}
	trees := slices.Clone(s.trees[:s.Best*s.outputs])
	if s.dropped != nil {
		weights := s.dropped.weights
		if p.EarlyStoppingRounds > 0 {
			weights = s.dropped.best
		}
		for i := range trees {
			trees[i].Weight = weights[i/s.outputs]
		}
	}
	e := &tree.Ensemble{Outputs: s.outputs, Base: s.base, Single: true, Trees: trees}
	if err := m.assemble(e, s.data.Layout, p.Start); err != nil {
		return nil, err
	}
	return m, nil
}

// assemble sets the ensemble of m. Its trees are those of start, if training continues a model,
// and then the new trees in e. Its features are the features of both ensembles.
func (m *Model) assemble(e *tree.Ensemble, layout *bins.Layout, start *Model) error {
	names := make(map[int]*bins.Feature, len(layout.Features))
	for i := range layout.Features {
		names[layout.Features[i].Number] = &layout.Features[i]
	}
	if start != nil {
		if start.Dim != m.Dim {
			return fmt.Errorf("rows have %d features, and the model to continue was trained on %d", m.Dim, start.Dim)
		}
		old := slices.Clone(start.Ensemble.Trees)
		if start.Columns != nil {
			renumber(old, func(j int32) int32 { return start.Columns[j] })
		}
		m.alignCategories(e.Trees, names, start)
		e.Trees = append(old, e.Trees...)
	}
	if m.Dim > maxNamed {
		m.Columns = usedFeatures(e.Trees)
		renumber(e.Trees, func(j int32) int32 { return int32(m.place(int(j))) })
	}
	count := m.Dim
	if m.Columns != nil {
		count = len(m.Columns)
	}
	e.Features = make([]string, count)
	for at := range e.Features {
		j := at
		if m.Columns != nil {
			j = int(m.Columns[at])
		}
		e.Features[at] = featureName(j)
		if !m.inputs.IsVector() {
			e.Features[at] = m.inputs[j].Column
		}
		if codes := seenOf(names[j], start, j); codes != nil {
			if e.Seen == nil {
				e.Seen = make([][]int32, count)
			}
			e.Seen[at] = codes
		}
		categories := categoriesOf(names[j], start, j)
		if categories == nil {
			continue
		}
		if e.Categories == nil {
			e.Categories = make([][]string, count)
		}
		e.Categories[at] = categories
	}
	m.Ensemble = e
	return nil
}

// categoriesOf returns the names of the categories of a feature, in the order of their codes:
// first the categories of start, the model that training continues, then the new ones. It
// returns nil for a feature that is not text.
func categoriesOf(f *bins.Feature, start *Model, j int) []string {
	var old, own []string
	if f != nil {
		own = f.Names
	}
	if start != nil && start.Ensemble.Categories != nil {
		if at := start.place(j); at >= 0 {
			old = start.Ensemble.Categories[at]
		}
	}
	known := make(map[string]bool, len(old))
	for _, name := range old {
		known[name] = true
	}
	all := slices.Clone(old)
	for _, name := range own {
		if !known[name] {
			all = append(all, name)
		}
	}
	if all == nil && own != nil {
		return []string{} // the feature is text, but missing in every row
	}
	return all
}

// seenOf returns the codes of a feature of numeric categories that were seen in this training
// or in the training of start, the model that is continued. It returns nil for other features,
// and if start does not have the codes that it has seen.
func seenOf(f *bins.Feature, start *Model, j int) []int32 {
	if f == nil || !f.Categorical || f.Names != nil {
		return nil
	}
	if start == nil {
		return slices.Clone(f.Codes)
	}
	at := start.place(j)
	if at < 0 || start.Ensemble.Seen == nil {
		return nil
	}
	if all := tree.AlsoSeen([][]int32{f.Codes}, start.Ensemble.Seen[at:at+1]); all != nil {
		return all[0]
	}
	return nil
}

// alignCategories replaces the codes in the category sets of new trees. The old codes are those
// in the training rows; the new ones are indices in the result of categoriesOf.
func (m *Model) alignCategories(trees []tree.Tree, names map[int]*bins.Feature, start *Model) {
	codes := map[int32][]int{} // feature -> the new code of each old code
	for i := range trees {
		t := &trees[i]
		nodes, words := slices.Clone(t.Nodes), []uint32(nil)
		for n := range nodes {
			node := &nodes[n]
			if node.Flags&tree.Categorical == 0 {
				continue
			}
			to, ok := codes[node.Feature]
			if !ok {
				to = newCodes(names[int(node.Feature)], start, int(node.Feature))
				codes[node.Feature] = to
			}
			first := len(words)
			for c := range int(node.SetWords) * 32 {
				if !t.Has(int32(n), int32(c)) {
					continue
				}
				code := c
				if to != nil {
					code = to[c]
				}
				for len(words) <= first+code/32 {
					words = append(words, 0)
				}
				words[first+code/32] |= 1 << (code % 32)
			}
			node.Set, node.SetWords = int32(first), int32(len(words)-first)
		}
		t.Nodes, t.Sets = nodes, words
	}
}

// newCodes returns, for each code of a text feature in the training rows, its index in the
// result of categoriesOf. It returns nil for other features.
func newCodes(f *bins.Feature, start *Model, j int) []int {
	if f == nil || f.Names == nil {
		return nil
	}
	all := categoriesOf(f, start, j)
	place := make(map[string]int, len(all))
	for code, name := range all {
		place[name] = code
	}
	to := make([]int, len(f.Names))
	for c, name := range f.Names {
		to[c] = place[name]
	}
	return to
}

// usedFeatures returns the features that the trees split on, in ascending order.
func usedFeatures(trees []tree.Tree) []int32 {
	used := []int32{}
	for i := range trees {
		for n := range trees[i].Nodes {
			if node := &trees[i].Nodes[n]; !node.Leaf() {
				used = append(used, node.Feature)
			}
		}
	}
	slices.Sort(used)
	return slices.Compact(used)
}

// renumber replaces each feature number j in the trees by to(j). It replaces each slice of
// nodes by a changed copy, so the old slices keep their numbers.
func renumber(trees []tree.Tree, to func(j int32) int32) {
	for i := range trees {
		nodes := slices.Clone(trees[i].Nodes)
		for n := range nodes {
			if !nodes[n].Leaf() {
				nodes[n].Feature = to(nodes[n].Feature)
			}
		}
		trees[i].Nodes = nodes
	}
}

// objectiveParameters returns the parameters of the objective that a model keeps.
func (p *Params) objectiveParameters() map[string]float64 {
	switch p.Objective {
	case Quantile:
		return map[string]float64{"QuantileAt": p.QuantileAt}
	case Huber:
		return map[string]float64{"HuberDelta": p.HuberDelta}
	case Poisson:
		return map[string]float64{"MaxDeltaStep": p.MaxDeltaStep}
	case Tweedie:
		return map[string]float64{"TweediePower": p.TweediePower}
	case AFT:
		return map[string]float64{"Time": float64(p.Time), "TimeScale": p.TimeScale}
	case LambdaMART:
		return map[string]float64{"RankTruncation": float64(p.RankTruncation)}
	}
	return nil
}
