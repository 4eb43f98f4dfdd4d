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
	// Ensemble has the trees. Its margins equal XGBoost's predictions with output_margin.
	// Ensemble.Base is always a margin, even if base_score in the file is not a margin.
	Ensemble *tree.Ensemble
	// Objective is XGBoost's name of the objective, such as "binary:logistic". The objective
	// determines how margins become predictions; see Transform.
	Objective string
	// Parameters has the parameters of the objective, such as "tweedie_variance_power", with
	// their values as text in the form that the file has. Absent parameters are written with
	// XGBoost's defaults.
	Parameters map[string]string
	// Attributes has the attributes that XGBoost stores with a model, such as "best_iteration".
	Attributes map[string]string
	// Types has the types of the features by XGBoost's names: "float", "int", "i" (0 or 1), "q"
	// (a quantity), "c" (a category). If Types is nil, Encode derives types from the splits.
	Types []string
	// ParallelTrees is the number of trees of an output in a round, for boosted forests; 0
	// means 1.
	ParallelTrees int
	// Version is the version of the library that wrote the file. It is zero for models that New
	// returns.
	Version [3]int
}

// New returns a model of an ensemble. objective is XGBoost's name of the objective. classes is
// the number of classes for multi:softprob and multi:softmax, and must equal the number of
// outputs of the ensemble. It is ignored for other objectives. The model keeps a reference to
// the ensemble.
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

// BestRound returns the best number of rounds according to early stopping, at least 1. It
// returns false if the attributes do not have this number. XGBoost's predict uses all rounds by
// default, and so does the Ensemble; First returns a model with fewer rounds.
func (m *Model) BestRound() (int, bool) {
	n, err := strconv.Atoi(m.Attributes["best_iteration"])
	if err != nil || n < 0 || n == math.MaxInt {
		return 0, false
	}
	return n + 1, true
}

// Rounds returns the number of boosting rounds. A round adds ParallelTrees trees to each
// output.
func (m *Model) Rounds() int {
	most := 0
	for _, n := range m.counts() {
		most = max(most, n)
	}
	return (most + m.parallel() - 1) / m.parallel()
}

// First returns the model of the given number of first rounds. It shares the trees with m.
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

// counts returns, for each output, the number of trees that add to it.
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
