package signature

import (
	"cmp"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Names are the names of the columns that prediction adds; empty means "prediction" and
// "probability". A regression has no probabilities.
type Names struct{ Prediction, Probability string }

// OrDefault returns the names without an empty one.
func (n Names) OrDefault() Names {
	return Names{cmp.Or(n.Prediction, "prediction"), cmp.Or(n.Probability, "probability")}
}

// Prediction is how an estimator of numbers or classes is applied in a job, row by row.
type Prediction struct {
	// Op names the operator in plans.
	Op string
	// Features are checked, and Decode has the model read them.
	Features Override
	Names    Names
	Replace  bool
	// Decode reads the model's file, once for each subtask. It returns the classes too, which
	// are empty for a regression, and what the model is, such as "the model is a regression".
	Decode func(file []byte) (m model.Binder, c Classes, is string, err error)
}

// Predict adds the operator, which adds the columns of Outputs to rows. The dataset of the
// model says whether these are of classes; a model that is of the other kind fails the job.
func Predict(caller string, d, made *engine.Dataset, p Prediction) *engine.Dataset {
	b := model.BuilderOf(caller, d)
	if err := p.Features.Check(); err != nil {
		b.Errorf("%s: %w", caller, err)
		return b.Poisoned(caller)
	}
	label, names := LabelType(made), p.Names.OrDefault()
	return model.ApplyRows(caller, d, made, model.RowApplication{
		Op: p.Op, Replace: p.Replace,
		Attrs:   []engine.Attr{{Key: "prediction", Value: names.Prediction}},
		Outputs: arrowrows.Columns(Outputs(label, names.Prediction, names.Probability)),
		Decode: func(file []byte) (model.Binder, error) {
			m, c, is, err := p.Decode(file)
			if err == nil {
				err = c.MatchDataset(label, is)
			}
			return m, err
		},
	})
}

// Predicted is the cells that prediction adds to a row. Any number of goroutines may use
// one, each with a row of its own.
type Predicted struct {
	prediction, probability int // probability is −1 for numbers
	classes                 []model.Cell
}

// BindNumber adds the cell of a regression's prediction to a layout.
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

// SetNull says that a row has no prediction.
func (p *Predicted) SetNull(row []model.Cell) {
	row[p.prediction].SetNull()
	if p.probability >= 0 {
		row[p.probability].SetNull()
	}
}

// SetNumber sets the number that is predicted for a row.
func (p *Predicted) SetNumber(row []model.Cell, v float64) { row[p.prediction].SetFloat(v) }

// SetClass sets the class that is predicted for a row, by its number among the classes.
func (p *Predicted) SetClass(row []model.Cell, class int) {
	SetCell(&row[p.prediction], &p.classes[class])
}

// Probabilities returns the room of a row for the probability of each class, to be written.
func (p *Predicted) Probabilities(row []model.Cell) []float64 {
	return row[p.probability].MakeDense(len(p.classes))
}
