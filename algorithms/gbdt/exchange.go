package gbdt

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/algorithms/xgboost"
	"github.com/superstep-ml/superstep/internal/batch"
)

// names are what other libraries call an objective.
type names struct{ xgboost, lightgbm string }

var foreign = map[Objective]names{
	Squared:    {"reg:squarederror", "regression"},
	Absolute:   {"reg:absoluteerror", "regression_l1"},
	Huber:      {"reg:pseudohubererror", "huber"},
	Quantile:   {"reg:quantileerror", "quantile"},
	Logistic:   {"binary:logistic", "binary"},
	Softmax:    {"multi:softprob", "multiclass"},
	Poisson:    {"count:poisson", "poisson"},
	Gamma:      {"reg:gamma", "gamma"},
	Tweedie:    {"reg:tweedie", "tweedie"},
	AFT:        {"survival:aft", "poisson"}, // LightGBM has none; of the same link
	LambdaMART: {"rank:ndcg", "lambdarank"},
}

// foreignOf returns what other libraries call the objective of a model, of one of the user's
// an objective of the same link.
func (m *Model) foreignOf() (names, error) {
	if m.Objective != Custom {
		return foreign[m.Objective], nil
	}
	if m.Ensemble.Outputs > 1 {
		return names{}, fmt.Errorf("the custom objective %q has %d outputs, which no objective of other libraries means", m.CustomName, m.Ensemble.Outputs)
	}
	switch m.Link {
	case Exponential:
		return names{"count:poisson", "poisson"}, nil
	case Sigmoid:
		return names{"reg:logistic", "cross_entropy"}, nil
	}
	return foreign[Squared], nil
}

// XGBoost returns the model as one of XGBoost, which predicts the same margins in float32:
// sparse rows are to have what is missing left out, and what is 0 too unless AbsentIsZero. Of
// a custom objective it is an objective with the same link.
func (m *Model) XGBoost() (*xgboost.Model, error) {
	e, err := m.whole()
	if err != nil {
		return nil, err
	}
	n, err := m.foreignOf()
	if err != nil {
		return nil, err
	}
	x, err := xgboost.New(e, n.xgboost, len(m.Classes.Values))
	if err != nil {
		return nil, err
	}
	number := func(name string) string { return strconv.FormatFloat(m.Parameters[name], 'g', -1, 64) }
	switch m.Objective {
	case Huber:
		x.Parameters = map[string]string{"huber_slope": number("HuberDelta")}
	case Quantile:
		x.Parameters = map[string]string{"quantile_alpha": number("QuantileAt")}
	case Tweedie:
		x.Parameters = map[string]string{"tweedie_variance_power": number("TweediePower")}
	case Poisson:
		x.Parameters = map[string]string{"max_delta_step": number("MaxDeltaStep")}
	case AFT:
		x.Parameters = map[string]string{
			"aft_loss_distribution": Distribution(m.Parameters["Time"]).String(), "aft_loss_distribution_scale": number("TimeScale"),
		}
	}
	return x, nil
}

// LightGBM returns the model as one of LightGBM, which predicts the same margins. Of a custom
// objective, and of AFT, it is an objective with the same link.
func (m *Model) LightGBM() (*lightgbm.Model, error) {
	e, err := m.whole()
	if err != nil {
		return nil, err
	}
	n, err := m.foreignOf()
	if err != nil {
		return nil, err
	}
	return lightgbm.New(e, n.lightgbm, len(m.Classes.Values))
}

// maxWhole bounds the number of features that other libraries are given.
const maxWhole = 1 << 22

// whole returns the ensemble over all features of a row.
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
		e.Features[j] = featureName(j)
	}
	renumber(e.Trees, func(j int32) int32 { return m.Columns[j] })
	return &e, nil
}

// ImportOptions name the columns that an imported model reads.
type ImportOptions struct {
	// VectorCol names a vector column; empty, and without FeatureCols, it is "features".
	// FeatureCols name a column for each feature, numbers or, where the model knows the names
	// of categories, text.
	VectorCol   string
	FeatureCols []string
	// AbsentIsZero takes what sparse rows leave out for 0, in place of missing.
	AbsentIsZero bool
}

// meant is what the objective of another library is here.
type meant struct {
	objective Objective
	link      Link
}

// meaningOf returns what an objective is here, that of the same name or a custom one with the
// link that is given.
func meaningOf(name string, links map[string]Link, of func(n names) string) (meant, error) {
	for o := Squared; o < Custom; o++ {
		if of(foreign[o]) == name {
			return meant{o, linkOf(&Params{Objective: o})}, nil
		}
	}
	if l, ok := links[name]; ok {
		return meant{Custom, l}, nil
	}
	return meant{}, fmt.Errorf("the objective %q has no like here", name)
}

// FromXGBoost returns the model of one that XGBoost made, which predicts the same from the
// columns of the options. Classes are the integers from 0.
func FromXGBoost(x *xgboost.Model, o ImportOptions) (*Model, error) {
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
	is, err := meaningOf(name, links, func(n names) string { return n.xgboost })
	if err == nil && x.ParallelTrees > 1 && x.Ensemble.Outputs > 1 {
		err = fmt.Errorf("a round has %d trees for each of %d outputs, and one is what boosting makes here", x.ParallelTrees, x.Ensemble.Outputs)
	}
	if err != nil {
		return nil, fmt.Errorf("xgboost model: %w", err)
	}
	m, err := imported(x.Ensemble, x.Objective, is, o)
	if err != nil {
		return nil, fmt.Errorf("xgboost model: %w", err)
	}
	return m, nil
}

// FromLightGBM returns the model of one that LightGBM made, which predicts the same from the
// columns of the options. Classes are the integers from 0.
func FromLightGBM(x *lightgbm.Model, o ImportOptions) (*Model, error) {
	links := map[string]Link{
		"fair": Identity, "mape": Identity, "custom": Identity, "": Identity, "rank_xendcg": Identity, "cross_entropy": Sigmoid,
	}
	is, err := meaningOf(x.Objective, links, func(n names) string { return n.lightgbm })
	if _, root := x.Parameters["sqrt"]; err == nil && root {
		err = fmt.Errorf("the objective %q predicts roots", x.Objective)
	}
	if s, err2 := strconv.ParseFloat(x.Parameters["sigmoid"], 64); err == nil && err2 == nil && s != 1 && is.objective == Logistic {
		err = fmt.Errorf("the margins of the objective %q are scaled by %v", x.Objective, s)
	}
	if err != nil {
		return nil, fmt.Errorf("lightgbm model: %w", err)
	}
	m, err := imported(x.Ensemble, x.Objective, is, o)
	if err != nil {
		return nil, fmt.Errorf("lightgbm model: %w", err)
	}
	return m, nil
}

// imported makes a model of an ensemble.
func imported(e *tree.Ensemble, name string, is meant, o ImportOptions) (*Model, error) {
	m := &Model{Objective: is.objective, Link: is.link, CustomName: name, Ensemble: e, Dim: len(e.Features), AbsentIsZero: o.AbsentIsZero}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	m.Summary.Rounds = m.Rounds()
	m.Summary.BestRound = m.Summary.Rounds
	classes := 0
	switch is.objective {
	case Logistic:
		classes = 2
	case Softmax:
		classes = e.Outputs
	}
	if classes > 0 {
		m.Classes.Type = batch.TypeName(arrow.PrimitiveTypes.Int64)
	}
	for c := range classes {
		m.Classes.Values = append(m.Classes.Values, strconv.Itoa(c))
	}
	switch {
	case o.VectorCol != "" && len(o.FeatureCols) > 0:
		return nil, errors.New("both VectorCol and FeatureCols are set: set one of them")
	case len(o.FeatureCols) == 0:
		set(&o.VectorCol, "features")
		dt, err := batch.VectorType(m.Dim)
		if err != nil {
			return nil, err
		}
		m.inputs = []model.Input{{Column: o.VectorCol, Type: batch.TypeName(dt)}}
	}
	for j, column := range o.FeatureCols {
		dt := arrow.DataType(arrow.PrimitiveTypes.Float64)
		if j < len(e.Categories) && e.Categories[j] != nil {
			dt = arrow.BinaryTypes.String
		}
		m.inputs = append(m.inputs, model.Input{Column: column, Type: batch.TypeName(dt)})
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}
