package signature

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Names are the names of the columns that prediction adds; empty means "prediction" and
// "probability". A regression has no probabilities.
type Names struct{ Prediction, Probability string }

// OrDefault returns n with each empty name replaced by its default.
func (n Names) OrDefault() Names {
	return Names{cmp.Or(n.Prediction, "prediction"), cmp.Or(n.Probability, "probability")}
}

// Predict adds the operator that applies a model row by row and adds the columns of Outputs.
// made is the dataset of the model. Its LabelColumn says whether the model predicts classes; if
// the model in the dataset contradicts this, the job fails. The function with returns a Binder
// for the decoded model, which applies the options o, and the model's classes.
func Predict[M any](caller, op string, d, made *engine.Dataset, o model.PredictOptions, decode func(file []byte) (M, error), with func(m M) (model.Binder, Classes)) *engine.Dataset {
	if err := CheckFeatures(o.VectorCol, o.FeatureCols); err != nil {
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

// PredictBatches does what Predict does, for a model that predicts rows block by block. It adds
// the columns of Outputs, and a vector column for each name in further that is not empty.
// classes returns the classes of a decoded model, and a description of the model for messages.
// open returns the function that computes the columns outputs for rows with the schema rows.
func PredictBatches[M any](caller, op string, d, made *engine.Dataset, o model.PredictOptions, further []string, decode func(file []byte) (M, error),
	classes func(m M) (c Classes, is string), open func(m M, rows engine.Schema, outputs []arrow.Field) (model.PlacedCompute, error),
) *engine.Dataset {
	if err := CheckFeatures(o.VectorCol, o.FeatureCols); err != nil {
		return model.Refuse(model.BuilderOf(caller, d), caller, err)
	}
	label, names := LabelType(made), Names{o.PredictionCol, o.ProbabilityCol}.OrDefault()
	outputs := Outputs(label, names.Prediction, names.Probability)
	for _, name := range further {
		if name != "" {
			outputs = append(outputs, arrow.Field{Name: name, Type: batch.VariableVectorType(), Nullable: true})
		}
	}
	return model.Apply(caller, d, made, model.Application{
		Op: op, Replace: o.Replace, Attrs: []engine.Attr{{Key: "prediction", Value: names.Prediction}}, Outputs: arrowrows.Columns(outputs),
		OpenPlaced: func(file []byte, rows engine.Schema) (model.PlacedCompute, error) {
			m, err := decode(file)
			if err != nil {
				return nil, err
			}
			c, is := classes(m)
			if err := c.MatchDataset(label, is); err != nil {
				return nil, err
			}
			return open(m, rows, outputs)
		},
	})
}

// Scorer returns a model's prediction for the point x: a number, or the index of a class. For a
// classifier it also writes the probability of each class to probabilities. If there is no
// prediction, it returns NaN or a negative index.
type Scorer func(x Point, probabilities []float64) float64

// BindScorer returns the Step of a model of dim features, which computes predictions by score.
// The model predicts the classes c, or numbers if c is empty.
func (in Inputs) BindScorer(l *model.Layout, o model.PredictOptions, dim int, n Names, c Classes, score Scorer) (model.Step, error) {
	r, err := in.Bind(l, o, dim)
	if err != nil {
		return nil, err
	}
	return r.Step(l, n, c, score)
}

// Step does what BindScorer does, for a model that reads its features with r.
func (r *Reader) Step(l *model.Layout, n Names, c Classes, score Scorer) (model.Step, error) {
	n = n.OrDefault()
	prediction, probability := l.Add(n.Prediction), -1
	var classes []model.Cell
	if c.Type != "" || len(c.Values) > 0 {
		var err error
		if classes, err = c.Cells(); err != nil {
			return nil, err
		}
		probability = l.Add(n.Probability)
	}
	return func(row []model.Cell) error {
		x, ok, err := r.Read(row)
		if !ok {
			row[prediction].SetNull()
			if probability >= 0 {
				row[probability].SetNull()
			}
			return err
		}
		var probabilities []float64
		if probability >= 0 {
			probabilities = row[probability].MakeDense(len(classes))
		}
		switch v := score(x, probabilities); {
		case r.coded == nil && (v != v || probability >= 0 && v < 0):
			return fmt.Errorf("column %q: the features are so large that nothing can be predicted", r.Name())
		case probability >= 0:
			SetCell(&row[prediction], &classes[int(v)])
		default:
			row[prediction].SetFloat(v)
		}
		return nil
	}, nil
}

// CheckParams returns all errors in the names of columns in the parameters of an estimator that
// learns labels.
func CheckParams(label, vector string, features []string, n Names) (errs []error) {
	if label == "" {
		errs = append(errs, errors.New("LabelCol is empty: name the column of the labels"))
	}
	if vector != "" && len(features) > 0 {
		errs = append(errs, errors.New("both VectorCol and FeatureCols are set: set one of them"))
	}
	return append(errs, n.Check())
}

// Check returns an error if the names of both columns are the same.
func (n Names) Check() error {
	if n = n.OrDefault(); n.Prediction == n.Probability {
		return fmt.Errorf("PredictionCol and ProbabilityCol are both %q", n.Prediction)
	}
	return nil
}
