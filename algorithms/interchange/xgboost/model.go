package xgboost

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/spelling"
)

// Model is a boosted model in the form of XGBoost's files.
type Model struct {
	// Ensemble has the trees. Its margins equal XGBoost's with output_margin. Base is in the
	// space of margins, whatever the file has.
	Ensemble *tree.Ensemble
	// Objective is XGBoost's name of the objective, such as "binary:logistic". It links
	// margins to predictions; see Transform.
	Objective string
	// Parameters are the parameters of the objective, such as "tweedie_variance_power", as
	// the file spells them. Missing ones are written with XGBoost's defaults.
	Parameters map[string]string
	// Attributes are notes that XGBoost keeps with a model, such as "best_iteration".
	Attributes map[string]string
	// Types are the types of the features in XGBoost's words: "float", "int", "i" (0 or 1),
	// "q" (a quantity), "c" (a category). Where it is nil, Encode derives types from the
	// splits.
	Types []string
	// ParallelTrees is the number of trees of an output in a round, for boosted forests; 0
	// means 1.
	ParallelTrees int
	// Version is the version of the library that wrote the file; zero for models made here.
	Version [3]int
}

// New returns a model of an ensemble. The objective is XGBoost's name. classes is the number
// of classes for the objectives multi:softprob and multi:softmax, whose ensemble has as many
// outputs. Other objectives ignore it. The model refers to the ensemble.
func New(e *tree.Ensemble, objective string, classes int) (*Model, error) {
	m := &Model{Ensemble: e, Objective: objective}
	o, err := objectiveOf(objective)
	if err != nil {
		return nil, fmt.Errorf("xgboost: %w", err)
	}
	if e == nil {
		return nil, errors.New("xgboost: there is no ensemble")
	}
	if o.classes && e.Outputs != classes {
		return nil, fmt.Errorf("xgboost: the ensemble has %d outputs: %s with %d classes has one for each class", e.Outputs, objective, classes)
	}
	return m, nil
}

// Objectives returns the names of the known objectives, in ascending order.
func Objectives() []string { return slices.Sorted(maps.Keys(objectives)) }

// BestRound returns the best number of rounds by early stopping, at least 1, if the
// attributes have it. XGBoost's own predict uses all rounds unless told otherwise, and so
// does the ensemble here. See First.
func (m *Model) BestRound() (int, bool) {
	n, err := strconv.Atoi(m.Attributes["best_iteration"])
	if err != nil || n < 0 || n == math.MaxInt {
		return 0, false
	}
	return n + 1, true
}

// Rounds returns the number of boosting rounds: a round adds ParallelTrees trees to each
// output.
func (m *Model) Rounds() int {
	most := 0
	for _, n := range m.counts() {
		most = max(most, n)
	}
	return (most + m.parallel() - 1) / m.parallel()
}

// First returns the model of the first rounds. It shares the trees.
func (m *Model) First(rounds int) *Model {
	made, e := *m, *m.Ensemble
	made.Ensemble, e.Trees = &e, nil
	left := make([]int, e.Outputs)
	for i := range left {
		left[i] = max(0, rounds) * m.parallel()
	}
	for _, t := range m.Ensemble.Trees {
		if o := int(t.Output); t.Values == nil && left[o] > 0 || t.Values != nil && left[0] > 0 {
			left[o]--
			e.Trees = append(e.Trees, t)
		}
	}
	return &made
}

func (m *Model) parallel() int { return max(1, m.ParallelTrees) }

// counts returns, by output, the number of trees that add to it.
func (m *Model) counts() []int {
	counts := make([]int, m.Ensemble.Outputs)
	for i := range m.Ensemble.Trees {
		t := &m.Ensemble.Trees[i]
		if t.Values == nil {
			counts[t.Output]++
			continue
		}
		for o := range counts {
			counts[o]++
		}
	}
	return counts
}

// objectiveOf returns the properties of an objective.
func objectiveOf(name string) (objective, error) {
	o, ok := objectives[name]
	if !ok {
		return o, fmt.Errorf("there is no objective %q%s", name, spelling.DidYouMean(": ", name, Objectives()))
	}
	return o, nil
}
