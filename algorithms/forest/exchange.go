package forest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/interchange/foreign"
	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// XGBoost returns an XGBoost model that makes the same predictions, in float32. The trees are
// one round of parallel trees, and leaf values are divided by the number of trees. A
// classification becomes a regression with a target for each class, which predicts the
// probabilities, because XGBoost has no objective whose leaves are shares. The XGBoost model
// takes the same rows as Predict.
//
// The attribute superstep holds the facts that the format cannot represent, such as the names
// of classes and categories. FromXGBoost reads it and returns the same forest, except for the
// summary of training and the measures out of the bag.
func (m *Model) XGBoost() (*xgboost.Model, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	x, err := xgboost.New(m.Trees, "reg:squarederror", 0)
	if err != nil {
		return nil, err
	}
	x.ParallelTrees = len(m.Trees.Trees)
	return m.notes().XGBoost(x)
}

// LightGBM returns a LightGBM model that makes the same predictions. For a classification it
// predicts the probabilities of the classes, with a custom objective, because LightGBM has no
// objective whose leaves are shares. The parameter superstep, after the objective, holds the
// facts that the format cannot represent. FromLightGBM reads it and returns the same forest.
func (m *Model) LightGBM() (*lightgbm.Model, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	objective := "regression"
	if m.Task == Classification {
		objective = "custom"
	}
	x, err := lightgbm.New(m.Trees, objective, 0)
	if err != nil {
		return nil, err
	}
	return m.notes().LightGBM(x)
}

// notes returns the facts that the file formats of other libraries cannot represent.
func (m *Model) notes() foreign.Notes {
	n := foreign.Notes{Kind: Kind, LabelType: m.Classes.Type, Classes: m.Classes.Values, Inputs: m.inputs, AbsentIsZero: m.AbsentIsZero,
		PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol}
	n.SetCategories(m.Trees)
	return n
}

// ErrForeign is returned when a model is imported that this package has not exported. Packages
// xgboost, lightgbm and gbdt can read such models.
var ErrForeign = errors.New("the file does not say that it is a forest made here")

// FromXGBoost returns the forest that was exported by the method XGBoost. Its leaf values are
// rounded to float32.
func FromXGBoost(x *xgboost.Model) (*Model, error) {
	notes, err := foreign.OfXGBoost(x, Kind)
	return importedFrom("xgboost", x.Ensemble, notes, err)
}

// FromLightGBM returns the forest that was exported by the method LightGBM.
func FromLightGBM(x *lightgbm.Model) (*Model, error) {
	notes, err := foreign.OfLightGBM(x, Kind)
	return importedFrom("lightgbm", x.Ensemble, notes, err)
}

// importedFrom returns the forest of the ensemble e of a library, with the given notes. err is
// the error of reading the notes.
func importedFrom(library string, e *tree.Ensemble, notes *foreign.Notes, err error) (m *Model, _ error) {
	if err == nil {
		m, err = imported(e, notes)
	}
	if err != nil {
		return nil, fmt.Errorf("%s model: %w", library, err)
	}
	return m, nil
}

// imported returns the forest of the ensemble e with the given notes.
func imported(e *tree.Ensemble, notes *foreign.Notes) (*Model, error) {
	switch {
	case notes == nil:
		return nil, ErrForeign
	case len(notes.Inputs) == 0:
		return nil, errors.New("its notes name no columns")
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	m := &Model{
		Classes: Classes{Type: notes.LabelType, Values: notes.Classes}, Dim: len(e.Features), AbsentIsZero: notes.AbsentIsZero,
		PredictionCol: notes.PredictionCol, ProbabilityCol: notes.ProbabilityCol, inputs: notes.Inputs,
	}
	if notes.LabelType != "" {
		m.Task = Classification
	}
	e, err := notes.Restore(foreign.Single(e), m.inputs.IsVector())
	if err != nil {
		return nil, err
	}
	of, err := foreign.ByOutput(e)
	if err != nil {
		return nil, err
	}
	scale := 1.0 // the number of trees if leaf values were divided by it
	if !e.Average {
		scale = float64(len(of[0]))
	}
	m.Trees = &tree.Ensemble{Features: e.Features, Categories: e.Categories, Outputs: e.Outputs, Base: e.Base, Average: true, Single: true}
	for i := range of[0] {
		t, err := together(of, i, scale, m.Task == Classification)
		if err != nil {
			return nil, err
		}
		m.Trees.Trees = append(m.Trees.Trees, t)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	var depth []int32
	for i := range m.Trees.Trees {
		m.Summary.count(&m.Trees.Trees[i], &depth)
	}
	return m, nil
}

// together merges the i-th trees of all outputs into one tree, whose leaf values are multiplied
// by scale. If shares is true, a leaf has the values of all outputs.
func together(of [][]tree.Tree, i int, scale float64, shares bool) (tree.Tree, error) {
	made := of[0][i]
	made.Weight, made.Nodes = 1, slices.Clone(made.Nodes)
	if !shares {
		for n := range made.Nodes {
			made.Nodes[n].Value *= of[0][i].Weight * scale
		}
		return made, nil
	}
	made.Values = make([]float64, len(made.Nodes)*len(of))
	for k := range of {
		t := &of[k][i]
		if !slices.EqualFunc(t.Nodes, made.Nodes, sameSplit) || !slices.Equal(t.Sets, made.Sets) {
			return made, fmt.Errorf("tree %d of class %d splits otherwise than that of class 0: they are no longer shares of one tree", i, k)
		}
		for n := range t.Nodes {
			made.Values[n*len(of)+k] = t.Nodes[n].Value * t.Weight * scale
		}
	}
	for n := range made.Nodes {
		made.Nodes[n].Value = 0
	}
	return made, nil
}

// sameSplit reports whether two nodes send all rows the same way.
func sameSplit(a, b tree.Node) bool {
	return a.Feature == b.Feature && a.Left == b.Left && a.Right == b.Right && a.Set == b.Set && a.SetWords == b.SetWords &&
		a.Flags == b.Flags && a.Threshold == b.Threshold
}
