package gbdt

import (
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/interchange/foreign"
	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/batch"
)

// ImportOptions supplies the facts that the file of another library does not have. The zero
// value is enough for files that this package wrote.
type ImportOptions struct {
	// VectorCol names a vector column to read. Alternatively FeatureCols names one column for
	// each feature: a column of numbers, or of text if the model has the names of the
	// categories. If both are empty, a model that this package trained reads the columns of its
	// training. Any other model reads the columns with the names of its features, or, if its
	// features have no names, the vector column "features".
	VectorCol   string
	FeatureCols []string
	// AbsentIsZero says that values absent from sparse rows are 0; otherwise they are missing.
	AbsentIsZero bool
	// Classes are the classes whose labels are 0, 1 and so on. If empty, they are the classes
	// of the training if this package trained the model, and otherwise the integers themselves.
	// An empty type means text.
	Classes Classes
	// BestRound reads only the trees up to the best round of early stopping, whose number must
	// be in the file; only files of XGBoost have it. If BestRound is false, all trees are read;
	// XGBoost's predict uses all trees too.
	BestRound bool
}

// meant is the counterpart in this package of an objective of another library.
type meant struct {
	objective  Objective
	name       string // the name of a custom objective
	link       Link
	parameters map[string]float64
}

// meaningOf returns the counterpart of the objective that the library calls name. The function
// in parameter of selects the name that this library uses for an objective. The counterpart is
// the objective in notes, if the library calls it by this name. Otherwise it is the objective
// that has this name in the library, or else a custom objective with the link links[name].
func meaningOf(name string, notes *foreign.Notes, links map[string]Link, of func(n libraryNames) string) (meant, error) {
	if notes != nil {
		var o Objective
		if err := o.UnmarshalText([]byte(notes.Objective)); err != nil {
			return meant{}, err
		}
		if o != Custom && of(foreignNames[o]) == name {
			return meant{objective: o, link: linkOf(&Params{Objective: o}), parameters: maps.Clone(notes.Parameters)}, nil
		}
		for _, l := range []Link{Identity, Exponential, Sigmoid} {
			one := Model{Objective: Custom, Link: l, Ensemble: &tree.Ensemble{Outputs: 1}}
			if n, err := one.foreignOf(); err == nil && o == Custom && (of(n) == name || l == Identity && name == "custom") {
				return meant{objective: o, name: notes.CustomName, link: l}, nil
			}
		}
	}
	for o := Squared; o < Custom; o++ {
		if of(foreignNames[o]) == name {
			return meant{objective: o, link: linkOf(&Params{Objective: o})}, nil
		}
	}
	if l, ok := links[name]; ok {
		return meant{objective: Custom, name: name, link: l}, nil
	}
	return meant{}, fmt.Errorf("the objective %q has no counterpart here", name)
}

// FromXGBoost returns a model that makes the same predictions as the XGBoost model x. It
// returns an error if no objective of this package has the same predictions, as for
// binary:hinge.
func FromXGBoost(x *xgboost.Model, o ImportOptions) (*Model, error) {
	m, err := importXGBoost(x, o)
	if err != nil {
		return nil, fmt.Errorf("xgboost model: %w", err)
	}
	return m, nil
}

func importXGBoost(x *xgboost.Model, o ImportOptions) (*Model, error) {
	links := map[string]Link{
		"reg:logistic": Sigmoid, "binary:logitraw": Identity, "reg:squaredlogerror": Identity, "survival:cox": Exponential,
	}
	name := x.Objective
	switch name {
	case "multi:softmax":
		name = "multi:softprob"
	case "rank:pairwise", "rank:map":
		name = "rank:ndcg"
	}
	if err := x.Ensemble.Validate(); err != nil {
		return nil, err
	}
	notes, err := foreign.OfXGBoost(x, Kind)
	if err != nil {
		return nil, err
	}
	is, err := meaningOf(name, notes, links, func(n libraryNames) string { return n.xgboost })
	if err != nil {
		return nil, err
	}
	if is.parameters == nil {
		is.parameters = fromXGBoost(is.objective, x)
	}
	rounds, best := x.Rounds(), x.Rounds()
	if n, ok := x.BestRound(); ok {
		best = min(n, rounds)
	} else if o.BestRound {
		return nil, errors.New("the file does not tell the best round, which was asked for: it has no attribute best_iteration")
	}
	if o.BestRound {
		x = x.First(best)
	}
	m, err := imported(x.Ensemble, is, notes, o)
	if err != nil {
		return nil, err
	}
	m.Summary.Rounds, m.Summary.BestRound = rounds, best
	return m, nil
}

// FromLightGBM returns a model that makes the same predictions as the LightGBM model x, which
// may be a forest. It returns an error if no objective of this package has the same
// predictions, as for multiclassova and square roots (reg_sqrt).
func FromLightGBM(x *lightgbm.Model, o ImportOptions) (*Model, error) {
	m, err := importLightGBM(x, o)
	if err != nil {
		return nil, fmt.Errorf("lightgbm model: %w", err)
	}
	return m, nil
}

func importLightGBM(x *lightgbm.Model, o ImportOptions) (*Model, error) {
	links := map[string]Link{
		"fair": Identity, "mape": Identity, "custom": Identity, "": Identity, "rank_xendcg": Identity, "cross_entropy": Sigmoid,
	}
	if err := x.Ensemble.Validate(); err != nil {
		return nil, err
	}
	notes, err := foreign.OfLightGBM(x, Kind)
	if err != nil {
		return nil, err
	}
	is, err := meaningOf(x.Objective, notes, links, func(n libraryNames) string { return n.lightgbm })
	if err != nil {
		return nil, err
	}
	e := x.Ensemble
	if notes != nil {
		e = foreign.Single(e)
	}
	if is.parameters == nil {
		is.parameters = fromLightGBM(is.objective, x)
	}
	if _, root := x.Parameters["sqrt"]; root {
		return nil, fmt.Errorf("the objective %q predicts roots, and no objective here does", x.Objective)
	}
	if s, err := strconv.ParseFloat(x.Parameters["sigmoid"], 64); err == nil && s != 1 && is.objective == Logistic {
		e = foreign.Scaled(e, s) // LightGBM's log odds are s times the margin
	}
	if o.BestRound {
		return nil, errors.New("the file does not tell the best round, which was asked for: LightGBM writes the rounds up to it")
	}
	return imported(e, is, notes, o)
}

// imported returns a model with the trees of e and the objective in the parameter is. notes and
// o have the other facts about the model.
func imported(e *tree.Ensemble, is meant, notes *foreign.Notes, o ImportOptions) (*Model, error) {
	if !is.objective.classes() && notes == nil && e.Outputs > 1 {
		return nil, fmt.Errorf("it has %d outputs, such as targets of a regression: a model here predicts one number", e.Outputs)
	}
	e, err := foreign.InRounds(e)
	if err != nil {
		return nil, err
	}
	m := &Model{Objective: is.objective, Link: is.link, CustomName: is.name, Parameters: is.parameters, Ensemble: e, Dim: len(e.Features), AbsentIsZero: o.AbsentIsZero}
	m.Summary.Rounds, m.Summary.BestRound = m.Rounds(), m.Rounds()
	if notes != nil {
		m.inputs, m.AbsentIsZero = notes.Inputs, m.AbsentIsZero || notes.AbsentIsZero
		m.PredictionCol, m.ProbabilityCol = notes.PredictionCol, notes.ProbabilityCol
		if m.Ensemble, err = notes.Restore(e, m.inputs.IsVector()); err != nil {
			return nil, err
		}
	}
	if err := m.importClasses(notes, o); err != nil {
		return nil, err
	}
	if err := m.importInputs(o); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// importClasses sets the names and the type of the classes from notes and o.
func (m *Model) importClasses(notes *foreign.Notes, o ImportOptions) error {
	count := m.Ensemble.Outputs
	switch {
	case !m.Objective.classes():
		if len(o.Classes.Values) > 0 {
			return fmt.Errorf("there are %d classes for the objective %v, which has none", len(o.Classes.Values), m.Objective)
		}
		return nil
	case m.Objective == Logistic:
		count = 2
	}
	switch {
	case len(o.Classes.Values) > 0:
		m.Classes = o.Classes
		set(&m.Classes.Type, batch.TypeName(arrow.BinaryTypes.String))
	case notes != nil:
		m.Classes = Classes{Type: notes.LabelType, Values: notes.Classes}
	default:
		m.Classes.Type = batch.TypeName(arrow.PrimitiveTypes.Int64)
		for c := range count {
			m.Classes.Values = append(m.Classes.Values, strconv.Itoa(c))
		}
	}
	if len(m.Classes.Values) != count {
		return fmt.Errorf("there are %d names of classes: the model has %d", len(m.Classes.Values), count)
	}
	return nil
}

// importInputs sets the columns that the model reads, as o says.
func (m *Model) importInputs(o ImportOptions) error {
	e := m.Ensemble
	switch {
	case o.VectorCol != "" && len(o.FeatureCols) > 0:
		return errors.New("both VectorCol and FeatureCols are set: set one of them")
	case o.VectorCol == "" && len(o.FeatureCols) == 0 && m.inputs != nil:
		return nil
	case o.VectorCol == "" && len(o.FeatureCols) == 0 && named(e.Features):
		o.FeatureCols = e.Features
	case len(o.FeatureCols) == 0:
		set(&o.VectorCol, "features")
		dt, err := batch.VectorType(m.Dim)
		if err != nil {
			return err
		}
		m.inputs = []model.Input{{Column: o.VectorCol, Type: batch.TypeName(dt)}}
		return nil
	}
	if len(o.FeatureCols) != m.Dim {
		return fmt.Errorf("there are %d inputs of %d features", len(o.FeatureCols), m.Dim)
	}
	m.inputs = nil
	for j, column := range o.FeatureCols {
		dt := arrow.DataType(arrow.PrimitiveTypes.Float64)
		if j < len(e.Categories) && e.Categories[j] != nil {
			dt = arrow.BinaryTypes.String
		}
		m.inputs = append(m.inputs, model.Input{Column: column, Type: batch.TypeName(dt)})
	}
	return nil
}

// named reports whether at least one feature has a name other than the default names of XGBoost
// and LightGBM.
func named(features []string) bool {
	for j, name := range features {
		if name != featureName(j) && name != "Column_"+strconv.Itoa(j) {
			return true
		}
	}
	return false
}
