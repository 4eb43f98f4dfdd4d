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

// Model is a boosted model or a forest in the form of LightGBM's files.
type Model struct {
	// Ensemble has the trees. Its margins equal LightGBM's raw scores, except for forests
	// (Average): for these LightGBM's raw scores are sums.
	Ensemble *tree.Ensemble
	// Objective is LightGBM's name of the objective, such as "binary"; "" means a user-defined
	// function. The objective determines how margins become predictions; see Transform.
	Objective string
	// Parameters has the parameters that follow the objective in the file, such as "sigmoid".
	// The value of "sqrt" is "".
	Parameters map[string]string
	// Ranges has, for each feature, the range of its values in training, in the form that the
	// file has: "[least:most]", "none" for an unused feature, or the categories separated by
	// colons. If Ranges is nil, Encode derives ranges from the splits.
	Ranges []string
	// Bare says, for each feature, whether its categories are numbers or bools in data frames
	// and not text. Files have the names of such categories without quotes. nil means that no
	// feature has such categories.
	Bare []bool
	// Monotone has the constraints of the features, −1, 0 or 1. It is nil if there are none.
	Monotone []int8
	// LabelIndex is the index of the label column in the file of training rows.
	LabelIndex int
	// Settings has the lines with the parameters of training.
	Settings []string
	// Version is the version of the file, such as "v4". It is "" for models that New returns.
	Version string
}

// New returns a model of an ensemble. objective is LightGBM's name of the objective, or "".
// classes is the number of classes for multiclass and multiclassova, and must equal the number
// of outputs of the ensemble. It is ignored for other objectives. The model keeps a reference
// to the ensemble.
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

// Objectives returns the names of the known objectives, in ascending order.
func Objectives() []string { return slices.Sorted(maps.Keys(objectives)) }

// objectiveOf returns the properties of an objective. The objective "" is known too.
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
