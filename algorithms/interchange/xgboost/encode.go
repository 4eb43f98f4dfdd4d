package xgboost

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/wholefile"
)

// written is the version of XGBoost that encoded files declare. The files follow the rules of
// this version, and XGBoost 1.7 to 3.x can read them.
var written = []int{2, 1, 0}

// Encode returns the model as JSON, for XGBoost 1.7 to 3.x. For rows of float32, XGBoost's
// predictions equal those of the ensemble except for sums in float32. Equal models give equal
// bytes.
//
//   - Values are rounded to float32. Thresholds of ensembles that are not Single are rounded up
//     to float32, so that rows of float32 go the same way as before.
//   - base_score holds the base as far as one float32 in the space of predictions can represent
//     it. The rest is added to the leaf values of the first tree of each output.
//   - If the ensemble averages, leaf values are divided by the number of trees, so that sums
//     equal the averages. A tree whose leaves have values for several outputs becomes one tree
//     for each output.
//   - If a tree has a weight other than 1, the booster is dart.
//   - Names of categories are not written, because XGBoost takes the codes of categories.
//
// XGBoost cannot express a node that treats zeros as missing and sends them to another side
// than its threshold would. Encode returns an error for such a node, and for numbers that
// overflow float32.
func (m *Model) Encode() ([]byte, error) { return m.encode(appendJSON) }

// EncodeUBJSON returns the same content as Encode in UBJSON, which is shorter and faster to
// read.
func (m *Model) EncodeUBJSON() ([]byte, error) { return m.encode(appendUBJSON) }

// Save writes the model to the file path, in UBJSON if path ends in .ubj, and in JSON
// otherwise. An existing file is replaced atomically: after a failure it still has the old
// contents.
func (m *Model) Save(path string) error {
	encode := m.Encode
	if strings.EqualFold(filepath.Ext(path), ".ubj") {
		encode = m.EncodeUBJSON
	}
	data, err := encode()
	if err != nil {
		return err
	}
	if err := wholefile.Write(path, data); err != nil {
		return fmt.Errorf("xgboost: %w", err)
	}
	return nil
}

func (m *Model) encode(write func([]byte, any) []byte) ([]byte, error) {
	v, err := m.value()
	if err != nil {
		return nil, fmt.Errorf("xgboost: %w", err)
	}
	return write(nil, v), nil
}

// value returns the content of the file as a value.
func (m *Model) value() (any, error) {
	e := m.Ensemble
	if err := e.Validate(); err != nil {
		return nil, err
	}
	o, err := objectiveOf(m.Objective)
	if err != nil {
		return nil, err
	}
	if err := m.check(o); err != nil {
		return nil, err
	}
	score, rest := baseScore(e, o)
	placed, weights, err := m.place(rest)
	if err != nil {
		return nil, err
	}
	booster, err := m.booster(placed, weights)
	if err != nil {
		return nil, err
	}
	learner := members{{"attributes", pairsOf(m.Attributes)}}
	if names := m.names(); names != nil {
		learner = append(learner, member{"feature_names", names})
	}
	if types := m.types(); types != nil {
		learner = append(learner, member{"feature_types", types})
	}
	learner = append(learner,
		member{"gradient_booster", booster},
		member{"learner_model_param", m.shape(o, score)},
		member{"objective", m.objective(o)})
	return members{{"learner", learner}, {"version", written}}, nil
}

// check returns an error about facts that a file cannot express, except facts about trees.
func (m *Model) check(o objective) error {
	e := m.Ensemble
	switch {
	case len(e.Features) == 0:
		return errors.New("the ensemble has no features: XGBoost reads no model without")
	case o.classes && e.Outputs < 2:
		return fmt.Errorf("%s has one output: want one for each class", m.Objective)
	case m.Types != nil && len(m.Types) != len(e.Features):
		return fmt.Errorf("there are %d types of %d features", len(m.Types), len(e.Features))
	case m.ParallelTrees < 0:
		return fmt.Errorf("a round has %d trees for each output", m.ParallelTrees)
	}
	return nil
}

func pairsOf(pairs map[string]string) members {
	made := members{}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		made = append(made, member{name, pairs[name]})
	}
	return made
}

// names returns the names of the features, or nil if they are XGBoost's default names. XGBoost
// applies a model with names only to data with the same names.
func (m *Model) names() []string {
	for i, name := range m.Ensemble.Features {
		if name != unnamed(i) {
			return m.Ensemble.Features
		}
	}
	return nil
}

// types returns the types of the features, or nil if none is known. A feature is categorical
// if it has names of categories or a categorical split.
func (m *Model) types() []string {
	if m.Types != nil {
		return m.Types
	}
	e := m.Ensemble
	types := make([]string, len(e.Features))
	for i := range types {
		types[i] = "float"
		if e.Categories != nil && e.Categories[i] != nil {
			types[i] = "c"
		}
	}
	for t := range e.Trees {
		for i := range e.Trees[t].Nodes {
			if n := &e.Trees[t].Nodes[i]; !n.Leaf() && n.Flags&tree.Categorical != 0 {
				types[n.Feature] = "c"
			}
		}
	}
	if !slices.Contains(types, "c") {
		return nil
	}
	return types
}

func (m *Model) shape(o objective, score float32) members {
	classes, targets := 0, 1
	switch {
	case o.classes:
		classes = m.Ensemble.Outputs
	default:
		targets = m.Ensemble.Outputs
	}
	return members{
		{"base_score", string(appendFloat(nil, score))},
		{"boost_from_average", "1"},
		{"num_class", strconv.Itoa(classes)},
		{"num_feature", strconv.Itoa(len(m.Ensemble.Features))},
		{"num_target", strconv.Itoa(targets)},
	}
}

// objective returns the objective with its parameters. XGBoost's defaults are used for absent
// parameters.
func (m *Model) objective(o objective) members {
	made := members{{"name", m.Objective}}
	if o.block == "" {
		return made
	}
	parameters := map[string]string{}
	for i := 0; i < len(o.parameters); i += 2 {
		parameters[o.parameters[i]] = o.parameters[i+1]
	}
	maps.Copy(parameters, m.Parameters)
	if o.classes {
		parameters["num_class"] = strconv.Itoa(m.Ensemble.Outputs)
	}
	made = append(made, member{o.block, pairsOf(parameters)})
	if o.old != "" {
		made = append(made, member{o.old, pairsOf(parameters)})
	}
	return made
}

// booster returns the booster with the trees in rounds.
func (m *Model) booster(placed []placed, weights []any) (members, error) {
	trees := make([]any, len(placed))
	info := make([]int, len(placed))
	for i := range placed {
		one, err := placed[i].value(i, m.Ensemble)
		if err != nil {
			return nil, err
		}
		trees[i], info[i] = one, placed[i].output
	}
	round := m.parallel() * m.Ensemble.Outputs
	rounds := []int{}
	for at := 0; at <= len(placed); at += round {
		rounds = append(rounds, at)
	}
	booster := members{
		{"model", members{
			{"gbtree_model_param", members{{"num_parallel_tree", strconv.Itoa(m.parallel())}, {"num_trees", strconv.Itoa(len(placed))}}},
			{"iteration_indptr", rounds},
			{"tree_info", info},
			{"trees", trees},
		}},
		{"name", "gbtree"},
	}
	if weights != nil {
		booster = members{{"gbtree", booster}, {"name", "dart"}, {"weight_drop", weights}}
	}
	return booster, nil
}
