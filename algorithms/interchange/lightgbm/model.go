package lightgbm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/spelling"
)

// Model is a boosted model or a forest as files of LightGBM have it.
type Model struct {
	// Ensemble is the trees. Its margins are what LightGBM returns as raw scores, but for
	// forests (Average), whose raw scores are sums.
	Ensemble *tree.Ensemble
	// Objective is LightGBM's name for what was minimised, such as "binary"; "" for a
	// function of the user's. It links margins to predictions; see Transform.
	Objective string
	// Parameters are those that stand with the objective in the file, such as "sigmoid",
	// and "sqrt", whose value is "".
	Parameters map[string]string
	// Ranges says of each feature what values training saw, as the file has it:
	// "[least:most]", "none" for a feature that is not in use, or the categories with
	// colons between them. Nil has it written of what the splits show.
	Ranges []string
	// Bare says of each feature whether its categories are numbers or truth values in data
	// frames, rather than text; nil of none. Files then have their names without quotes.
	Bare []bool
	// Monotone are the constraints of the features, −1, 0 or 1; nil if there are none.
	Monotone []int8
	// LabelIndex is the number of the column with the label in the file of training rows.
	LabelIndex int
	// Settings are the lines of the training's parameters.
	Settings []string
	// Version is that of the file, such as "v4"; "" for models made here.
	Version string
}

// New returns a model of an ensemble. The objective is LightGBM's name, or "". classes is
// the number of classes for multiclass and multiclassova, whose ensemble has as many
// outputs, and not looked at for others. The model refers to the ensemble.
func New(e *tree.Ensemble, objective string, classes int) (*Model, error) {
	o, err := objectiveOf(objective)
	if err != nil {
		return nil, fmt.Errorf("lightgbm: %w", err)
	}
	if e == nil {
		return nil, errors.New("lightgbm: there is no ensemble")
	}
	m := &Model{Ensemble: e, Objective: objective}
	if o.classes {
		if e.Outputs != classes {
			return nil, fmt.Errorf("lightgbm: the ensemble has %d outputs: %s with %d classes has one for each class", e.Outputs, objective, classes)
		}
		m.Parameters = map[string]string{"num_class": strconv.Itoa(classes)}
	}
	return m, nil
}

// Objectives returns the names of the objectives that are known, in ascending order.
func Objectives() []string { return slices.Sorted(maps.Keys(objectives)) }

// objectiveOf finds what is known of an objective; "" is one.
func objectiveOf(name string) (objective, error) {
	if name == "" {
		return objective{}, nil
	}
	o, ok := objectives[name]
	if !ok {
		return o, fmt.Errorf("there is no objective %q%s", name, spelling.DidYouMean(": ", name, Objectives()))
	}
	return o, nil
}
