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

// ImportOptions say what the file of another library does not. For files that this package
// has made the zero value is enough.
type ImportOptions struct {
	// VectorCol names a vector column to read. FeatureCols name a column for each feature,
	// numbers or, where the model knows the names of categories, text. With neither it is the
	// columns that the model was trained on here; else those that the features are named
	// after; else, of features without names, the vector column "features".
	VectorCol   string
	FeatureCols []string
	// AbsentIsZero takes what sparse rows leave out for 0, in place of missing.
	AbsentIsZero bool
	// Classes are what the labels 0, 1 and so on stand for; empty means those that the model
	// was trained with here, else these integers. An empty type means text.
	Classes Classes
	// BestRound takes the trees up to the round that early stopping found best, which the
	// file of XGBoost must tell; otherwise all count, as in XGBoost's predict.
	BestRound bool
}

// meant is what the objective of another library is here.
type meant struct {
	objective  Objective
	name       string // of a custom one
	link       Link
	parameters map[string]float64
}

// meaningOf returns what an objective is here: what notes say, if that is of the same name in
// the library, else the one of the name, else a custom one with the link that is given.
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
	return meant{}, fmt.Errorf("the objective %q has no like here", name)
}

// FromXGBoost returns the model of one that XGBoost made, which predicts the same. What is
// like no objective here in its predictions, such as binary:hinge, is an error.
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
	if x.Ensemble == nil {
		return nil, errors.New("there is no ensemble")
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

// FromLightGBM returns the model of one that LightGBM made, a forest too, which predicts the
// same. What is like no objective here in its predictions, such as multiclassova and roots
// (reg_sqrt), is an error.
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
	if x.Ensemble == nil {
		return nil, errors.New("there is no ensemble")
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
		return nil, fmt.Errorf("the objective %q predicts roots, which has no like here", x.Objective)
	}
	if s, err := strconv.ParseFloat(x.Parameters["sigmoid"], 64); err == nil && s != 1 && is.objective == Logistic {
		e = foreign.Scaled(e, s) // the log odds are s times the margin there
	}
	if o.BestRound {
		return nil, errors.New("the file does not tell the best round, which was asked for: LightGBM writes the rounds up to it")
	}
	return imported(e, is, notes, o)
}

// imported makes a model of an ensemble.
func imported(e *tree.Ensemble, is meant, notes *foreign.Notes, o ImportOptions) (*Model, error) {
	if !is.objective.classes() && notes == nil && e.Outputs > 1 {
		return nil, fmt.Errorf("it has %d outputs, such as targets of a regression, and one number is what is predicted here", e.Outputs)
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
		if m.Ensemble, err = notes.Restore(e, m.ofVector()); err != nil {
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

// importClasses says what classes stand for.
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

// importInputs says which columns are read.
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

// named tells whether features have names of their own, other than those that XGBoost and
// LightGBM give.
func named(features []string) bool {
	for j, name := range features {
		if name != featureName(j) && name != "Column_"+strconv.Itoa(j) {
			return true
		}
	}
	return false
}
