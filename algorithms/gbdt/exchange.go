package gbdt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/interchange/foreign"
	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/batch"
)

// libraryNames has the names of an objective in XGBoost and LightGBM.
type libraryNames struct{ xgboost, lightgbm string }

var foreignNames = map[Objective]libraryNames{
	Squared:    {"reg:squarederror", "regression"},
	Absolute:   {"reg:absoluteerror", "regression_l1"},
	Huber:      {"reg:pseudohubererror", "huber"},
	Quantile:   {"reg:quantileerror", "quantile"},
	Logistic:   {"binary:logistic", "binary"},
	Softmax:    {"multi:softprob", "multiclass"},
	Poisson:    {"count:poisson", "poisson"},
	Gamma:      {"reg:gamma", "gamma"},
	Tweedie:    {"reg:tweedie", "tweedie"},
	AFT:        {"survival:aft", "poisson"}, // LightGBM lacks AFT; its poisson has the same link
	LambdaMART: {"rank:ndcg", "lambdarank"},
}

// parameter has the names of a parameter of an objective: in Params, in XGBoost and in
// LightGBM.
type parameter struct{ name, xgboost, lightgbm string }

var foreignParameters = map[Objective][]parameter{
	Huber:      {{"HuberDelta", "huber_slope", "alpha"}},
	Quantile:   {{"QuantileAt", "quantile_alpha", "alpha"}},
	Tweedie:    {{"TweediePower", "tweedie_variance_power", "tweedie_variance_power"}},
	Poisson:    {{"MaxDeltaStep", "max_delta_step", "poisson_max_delta_step"}},
	AFT:        {{"TimeScale", "aft_loss_distribution_scale", ""}},
	LambdaMART: {{"RankTruncation", "", "lambdarank_truncation_level"}},
}

// foreignOf returns the names of the model's objective in other libraries. A custom objective
// gets the names of an objective with the same link. With several outputs there is such an
// objective only for the identity link.
func (m *Model) foreignOf() (libraryNames, error) {
	switch {
	case m.Objective != Custom:
		return foreignNames[m.Objective], nil
	case m.Ensemble.Outputs > 1 && m.Link == Identity:
		return libraryNames{"reg:squarederror", "custom"}, nil
	case m.Ensemble.Outputs > 1:
		return libraryNames{}, fmt.Errorf("the custom objective %q has %d outputs of the link %v: no objective of other libraries has that", m.CustomName, m.Ensemble.Outputs, m.Link)
	case m.Link == Exponential:
		return libraryNames{"count:poisson", "poisson"}, nil
	case m.Link == Sigmoid:
		return libraryNames{"reg:logistic", "cross_entropy"}, nil
	}
	return foreignNames[Squared], nil
}

// XGBoost returns an XGBoost model that predicts the same margins in float32. It takes the same
// rows as Predict: numbers, in which the code that Code returns stands for a text, and NaN
// stands for a text for which Code returns NaN. XGBoost treats absent values of sparse rows as
// missing, so a model with AbsentIsZero must be given rows with explicit zeros.
//
// The XGBoost model has the trees up to the best round. After early stopping the attribute
// best_iteration has the number of this round, counted from 0. A custom objective is replaced
// by an objective of XGBoost with the same link. The attribute superstep has the facts that the
// format cannot represent, such as the names of classes and categories. FromXGBoost reads it to
// restore the same model.
func (m *Model) XGBoost() (*xgboost.Model, error) {
	e, n, err := m.exported()
	if err != nil {
		return nil, err
	}
	x, err := xgboost.New(e, n.xgboost, len(m.Classes.Values))
	if err != nil {
		return nil, err
	}
	x.Types, x.Parameters = m.foreignTypes(e), map[string]string{}
	for _, p := range foreignParameters[m.Objective] {
		if v, ok := m.Parameters[p.name]; ok && p.xgboost != "" {
			x.Parameters[p.xgboost] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	switch m.Objective {
	case Quantile: // XGBoost takes a list of quantiles
		if v, ok := x.Parameters["quantile_alpha"]; ok {
			x.Parameters["quantile_alpha"] = "[" + v + "]"
		}
	case AFT:
		x.Parameters["aft_loss_distribution"] = Distribution(m.Parameters["Time"]).String()
	}
	if s := m.Summary; s.BestRound < s.Rounds && m.Rounds() > 0 {
		x.Attributes = map[string]string{"best_iteration": strconv.Itoa(m.Rounds() - 1)}
	}
	return m.notes(e).XGBoost(x)
}

// LightGBM returns a LightGBM model that predicts the same margins. It takes the rows that the
// doc comment of XGBoost describes. A custom objective, and AFT, are replaced by an objective
// of LightGBM with the same link. The parameter superstep, after the objective, has the facts
// that the format cannot represent, such as the names of classes and categories. FromLightGBM
// reads it to restore the same model. LightGBM accepts files with this parameter, but does not
// write it to its own files.
func (m *Model) LightGBM() (*lightgbm.Model, error) {
	e, n, err := m.exported()
	if err != nil {
		return nil, err
	}
	x, err := lightgbm.New(e, n.lightgbm, len(m.Classes.Values))
	if err != nil {
		return nil, err
	}
	for _, p := range foreignParameters[m.Objective] {
		if v, ok := m.Parameters[p.name]; ok && v != 0 && p.lightgbm != "" {
			x.Settings = append(x.Settings, "["+p.lightgbm+": "+strconv.FormatFloat(v, 'g', -1, 64)+"]")
		}
	}
	return m.notes(e).LightGBM(x)
}

// exported returns the trees, numbered by the features of a whole row, and the names of the
// objective in other libraries.
func (m *Model) exported() (*tree.Ensemble, libraryNames, error) {
	e, err := m.whole()
	if err != nil {
		return nil, libraryNames{}, err
	}
	n, err := m.foreignOf()
	return e, n, err
}

// notes returns the facts that the file formats of other libraries cannot represent.
func (m *Model) notes(e *tree.Ensemble) foreign.Notes {
	n := foreign.Notes{Kind: Kind, LabelType: m.Classes.Type, Classes: m.Classes.Values, Inputs: m.inputs, AbsentIsZero: m.AbsentIsZero,
		Objective: m.Objective.String(), Parameters: m.Parameters, CustomName: m.CustomName, PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol}
	n.SetCategories(e)
	return n
}

// maxWhole bounds the number of features of a model that is converted for other libraries.
const maxWhole = 1 << 22

// whole returns the ensemble with all features of a row, not only those that the trees use.
func (m *Model) whole() (*tree.Ensemble, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if m.Columns == nil {
		return m.Ensemble, nil
	}
	if m.Dim > maxWhole {
		return nil, fmt.Errorf("the model has %d features, at most %d can be written for other libraries", m.Dim, maxWhole)
	}
	e := *m.Ensemble
	e.Features, e.Trees = make([]string, m.Dim), slices.Clone(e.Trees)
	for j := range e.Features {
		if e.Features[j] = featureName(j); !m.inputs.IsVector() {
			e.Features[j] = m.inputs[j].Column
		}
	}
	e.Categories = m.categories()
	e.Seen = nil // other libraries do not keep seen codes
	renumber(e.Trees, func(j int32) int32 { return m.Columns[j] })
	return &e, nil
}

// foreignTypes returns the types of the features by the letters that XGBoost uses for them. It
// returns nil for a vector, for which the types follow from the splits.
func (m *Model) foreignTypes(e *tree.Ensemble) []string {
	if m.inputs.IsVector() {
		return nil
	}
	types := make([]string, len(m.inputs))
	for j, c := range m.inputs {
		types[j] = "float"
		switch dt, err := batch.ParseType(c.Type); {
		case err != nil: // cannot happen: check has validated the inputs
		case e.Categories != nil && e.Categories[j] != nil:
			types[j] = "c"
		case dt.ID() == arrow.BOOL:
			types[j] = "i"
		case arrow.IsInteger(dt.ID()):
			types[j] = "int"
		}
	}
	for i := range e.Trees {
		for _, n := range e.Trees[i].Nodes {
			if !n.Leaf() && n.Flags&tree.Categorical != 0 {
				types[n.Feature] = "c"
			}
		}
	}
	return types
}

// fromXGBoost returns the values of the parameters of objective o that the XGBoost model x has.
func fromXGBoost(o Objective, x *xgboost.Model) map[string]float64 {
	made := parametersOf(o, func(p parameter) string { return strings.Trim(x.Parameters[p.xgboost], "[]") })
	if o != AFT {
		return made
	}
	var time Distribution
	if time.UnmarshalText([]byte(x.Parameters["aft_loss_distribution"])) == nil {
		if made == nil {
			made = map[string]float64{}
		}
		made["Time"] = float64(time)
	}
	return made
}

// fromLightGBM returns the values of the parameters of objective o that the settings of the
// LightGBM model x have.
func fromLightGBM(o Objective, x *lightgbm.Model) map[string]float64 {
	return parametersOf(o, func(p parameter) string {
		for _, line := range x.Settings {
			if v, ok := strings.CutPrefix(line, "["+p.lightgbm+": "); ok {
				return strings.TrimSuffix(v, "]")
			}
		}
		return ""
	})
}

// parametersOf returns the parameters of objective o whose text, as returned by find, is a
// number.
func parametersOf(o Objective, find func(p parameter) string) map[string]float64 {
	var made map[string]float64
	for _, p := range foreignParameters[o] {
		v, err := strconv.ParseFloat(find(p), 64)
		if err != nil || v-v != 0 {
			continue
		}
		if made == nil {
			made = map[string]float64{}
		}
		made[p.name] = v
	}
	return made
}
