package foreign

import (
	"encoding/json"
	"fmt"
	"net/url"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// key is the name under which files have the notes.
const key = "superstep"

// Notes has the facts about a model except its trees and the summary of its training.
type Notes struct {
	// Kind is the kind of the model.
	Kind string `json:"kind"`
	// LabelType and Classes are the type and the texts of the model's classes. Both are empty
	// for a regression.
	LabelType string   `json:"label_type,omitempty"`
	Classes   []string `json:"classes,omitempty"`
	// Inputs has the columns that the model reads. AbsentIsZero is true if values absent from
	// sparse rows are 0, and false if they are missing.
	Inputs       []model.Input `json:"inputs"`
	AbsentIsZero bool          `json:"absent_is_zero,omitempty"`
	// Categories has the names of the categories of each feature that has names.
	Categories []Names `json:"categories,omitempty"`
	// Objective, Parameters and CustomName are the fields of gbdt.Model with these names.
	Objective  string             `json:"objective,omitempty"`
	Parameters map[string]float64 `json:"parameters,omitempty"`
	CustomName string             `json:"custom_name,omitempty"`
	// PredictionCol and ProbabilityCol name the columns of predictions.
	PredictionCol  string `json:"prediction_column,omitempty"`
	ProbabilityCol string `json:"probability_column,omitempty"`
}

// Names has the names of the categories of a feature, in the order of their codes.
type Names struct {
	Feature int      `json:"feature"`
	Names   []string `json:"names"`
}

// SetCategories sets Categories to the names of categories in an ensemble.
func (n *Notes) SetCategories(e *tree.Ensemble) {
	for j, names := range e.Categories {
		if names != nil {
			n.Categories = append(n.Categories, Names{j, names})
		}
	}
}

// XGBoost stores the notes in a model of XGBoost.
func (n Notes) XGBoost(x *xgboost.Model) (*xgboost.Model, error) {
	text, err := n.text()
	if err != nil {
		return nil, fmt.Errorf("xgboost: %w", err)
	}
	if x.Attributes == nil {
		x.Attributes = map[string]string{}
	}
	x.Attributes[key] = text
	return x, nil
}

// LightGBM stores the notes in a model of LightGBM, which must have an objective.
func (n Notes) LightGBM(x *lightgbm.Model) (*lightgbm.Model, error) {
	text, err := n.text()
	if err != nil {
		return nil, fmt.Errorf("lightgbm: %w", err)
	}
	if x.Parameters == nil {
		x.Parameters = map[string]string{}
	}
	x.Parameters[key] = url.QueryEscape(text) // escaped, because blanks, colons and = end a parameter
	return x, nil
}

// text returns the notes as JSON. All texts in them must be UTF-8.
func (n Notes) text() (string, error) {
	texts := append([]string{n.CustomName, n.PredictionCol, n.ProbabilityCol}, n.Classes...)
	for _, c := range n.Inputs {
		texts = append(texts, c.Column)
	}
	for _, c := range n.Categories {
		texts = append(texts, c.Names...)
	}
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return "", fmt.Errorf("the name %q is not UTF-8, which the file would have to be", t)
		}
	}
	text, err := json.Marshal(n)
	return string(text), err
}

// OfXGBoost returns the notes in x about a model of the given kind. It returns nil if x has no
// notes, or notes about another kind of model.
func OfXGBoost(x *xgboost.Model, kind string) (*Notes, error) {
	text, ok := x.Attributes[key]
	if !ok {
		return nil, nil
	}
	return parse(text, kind)
}

// OfLightGBM returns the notes in x about a model of the given kind. It returns nil if x has no
// notes, or notes about another kind of model.
func OfLightGBM(x *lightgbm.Model, kind string) (*Notes, error) {
	text, ok := x.Parameters[key]
	if !ok {
		return nil, nil
	}
	text, err := url.QueryUnescape(text)
	if err != nil {
		return nil, fmt.Errorf("the notes %q: %w", key, err)
	}
	return parse(text, kind)
}

func parse(text, kind string) (*Notes, error) {
	var about struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal([]byte(text), &about); err != nil {
		return nil, fmt.Errorf("the notes %q: %w", key, err)
	}
	if about.Kind != kind {
		return nil, nil
	}
	n := new(Notes)
	if err := model.Unmarshal(json.RawMessage(text), n); err != nil {
		return nil, fmt.Errorf("the notes %q: %w", key, err)
	}
	return n, nil
}

// Restore returns the ensemble e with the names of features and categories from the notes. If
// vector is true, the only input is a vector, and the features, its components, have no names.
func (n *Notes) Restore(e *tree.Ensemble, vector bool) (*tree.Ensemble, error) {
	made := *e
	if !vector {
		if len(n.Inputs) != len(e.Features) {
			return nil, fmt.Errorf("the notes %q have %d columns: there are %d features", key, len(n.Inputs), len(e.Features))
		}
		made.Features = make([]string, len(n.Inputs))
		for j, c := range n.Inputs {
			made.Features[j] = c.Column
		}
	}
	made.Categories = nil
	for _, c := range n.Categories {
		if c.Feature < 0 || c.Feature >= len(e.Features) {
			return nil, fmt.Errorf("the notes %q name feature %d: there are %d", key, c.Feature, len(e.Features))
		}
		if made.Categories == nil {
			made.Categories = make([][]string, len(e.Features))
		}
		made.Categories[c.Feature] = c.Names
	}
	return &made, nil
}
