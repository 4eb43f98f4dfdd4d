package signature

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Names are the names of the columns that prediction adds; empty means "prediction" and
// "probability". A regression has no probabilities.
type Names struct{ Prediction, Probability string }

// OrDefault returns the names, with defaults for the empty ones.
func (n Names) OrDefault() Names {
	return Names{cmp.Or(n.Prediction, "prediction"), cmp.Or(n.Probability, "probability")}
}

// PredictOptions are the options of prediction for estimators that predict numbers or classes.
// The options of each such estimator can be converted to this type. VectorCol, FeatureCols and
// Skip are as in Override; PredictionCol and ProbabilityCol are as in Names. If Replace is set,
// new columns replace existing columns of the same names; otherwise such columns are an error.
type PredictOptions struct {
	VectorCol      string
	FeatureCols    []string
	PredictionCol  string
	ProbabilityCol string
	Replace        bool
	Skip           bool
}

// Override returns the options that concern features.
func (o PredictOptions) Override() Override {
	return Override{VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, Skip: o.Skip}
}

// Predict adds the operator that applies a model row by row and adds the columns of Outputs.
// made is the dataset of the model. Its LabelColumn says whether the model predicts classes; if
// the model in it does not agree, the job fails. with returns the decoded model as a Binder
// that applies the options, and the model's classes.
func Predict[M any](caller, op string, d, made *engine.Dataset, o PredictOptions, decode func(file []byte) (M, error), with func(m M) (model.Binder, Classes)) *engine.Dataset {
	if err := o.Override().Check(); err != nil {
		return model.Refuse(model.BuilderOf(caller, d), caller, err)
	}
	label, names := LabelType(made), Names{o.PredictionCol, o.ProbabilityCol}.OrDefault()
	outputs := arrowrows.Columns(Outputs(label, names.Prediction, names.Probability))
	var added []string
	for _, c := range outputs {
		added = append(added, c.Name)
	}
	return model.ApplyRows(caller, d, made, model.RowApplication{
		Op: op, Replace: o.Replace, Attrs: []engine.Attr{{Key: "columns", Value: strings.Join(added, ", ")}}, Outputs: outputs,
		Decode: func(file []byte) (model.Binder, error) {
			m, err := decode(file)
			if err != nil {
				return nil, err
			}
			bound, c := with(m)
			err = c.MatchDataset(label, fmt.Sprintf("the model is a %v", c.task()))
			return bound, err
		},
	})
}

// Scorer returns a model's prediction for a point: a number, or the index of a class. For a
// classifier it also writes the probability of each class. NaN or a negative index means that
// there is no prediction.
type Scorer func(x Point, probabilities []float64) float64

// BindScorer returns the step of a model of dim features. The model predicts the classes c, or
// numbers if c is empty.
func (in Inputs) BindScorer(l *model.Layout, o Override, dim int, n Names, c Classes, score Scorer) (model.Step, error) {
	r, err := in.Bind(l, o, dim)
	if err != nil {
		return nil, err
	}
	p, err := n.bind(l, c)
	if err != nil {
		return nil, err
	}
	return func(row []model.Cell) error {
		x, ok, err := r.Read(row)
		if !ok {
			p.SetNull(row)
			return err
		}
		var probabilities []float64
		if p.probability >= 0 {
			probabilities = p.Probabilities(row)
		}
		switch v := score(x, probabilities); {
		case v != v || p.probability >= 0 && v < 0:
			return fmt.Errorf("column %q: the features are so large that nothing can be predicted", r.Name())
		case p.probability >= 0:
			p.SetClass(row, int(v))
		default:
			p.SetNumber(row, v)
		}
		return nil
	}, nil
}

// CheckParams returns all errors in the column parameters of an estimator that learns labels.
func CheckParams(label, vector string, features []string, n Names) (errs []error) {
	if label == "" {
		errs = append(errs, errors.New("LabelCol is empty: name the column of the labels"))
	}
	if vector != "" && len(features) > 0 {
		errs = append(errs, errors.New("both VectorCol and FeatureCols are set: set one of them"))
	}
	if n = n.OrDefault(); n.Prediction == n.Probability {
		errs = append(errs, fmt.Errorf("PredictionCol and ProbabilityCol are both %q", n.Prediction))
	}
	return errs
}

// Predicted sets the cells that prediction adds to a row. Any number of goroutines may use it,
// each with its own row.
type Predicted struct {
	prediction, probability int // indices of cells; probability is −1 for a regression
	classes                 []model.Cell
}

// BindNumber adds the cell of a number's prediction to a layout.
func (n Names) BindNumber(l *model.Layout) *Predicted {
	return &Predicted{prediction: l.Add(n.OrDefault().Prediction), probability: -1}
}

// BindClasses adds the cells of a classifier's prediction and probabilities to a layout.
func (n Names) BindClasses(l *model.Layout, c Classes) (*Predicted, error) {
	classes, err := c.Cells()
	if err != nil {
		return nil, err
	}
	n = n.OrDefault()
	return &Predicted{l.Add(n.Prediction), l.Add(n.Probability), classes}, nil
}

// bind adds the cells for the prediction of a class, or the cell for the prediction of a number
// if c is empty.
func (n Names) bind(l *model.Layout, c Classes) (*Predicted, error) {
	if c.Type == "" {
		return n.BindNumber(l), nil
	}
	return n.BindClasses(l, c)
}

// SetNull sets the cells that prediction adds to null.
func (p *Predicted) SetNull(row []model.Cell) {
	row[p.prediction].SetNull()
	if p.probability >= 0 {
		row[p.probability].SetNull()
	}
}

// SetNumber sets the number that is predicted for a row.
func (p *Predicted) SetNumber(row []model.Cell, v float64) { row[p.prediction].SetFloat(v) }

// SetClass sets the class that is predicted for a row. class is its index among the classes.
func (p *Predicted) SetClass(row []model.Cell, class int) {
	SetCell(&row[p.prediction], &p.classes[class])
}

// Probabilities returns the vector in a row to which the caller must write the probability of
// each class.
func (p *Predicted) Probabilities(row []model.Cell) []float64 {
	return row[p.probability].MakeDense(len(p.classes))
}
