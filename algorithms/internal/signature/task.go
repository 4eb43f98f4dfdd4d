package signature

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// Task selects what an estimator predicts: numbers or classes. It is a parameter of estimators
// that can predict both.
type Task int

// These are the tasks.
const (
	Regression Task = iota
	Classification
)

var tasks = enum.Names[Task]{Type: "Task", What: "task", Names: []string{"regression", "classification"}}

// String returns "regression" or "classification".
func (t Task) String() string { return tasks.String(t) }

// MarshalText implements encoding.TextMarshaler.
func (t Task) MarshalText() ([]byte, error) { return tasks.Text(t) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (t *Task) UnmarshalText(text []byte) error { return tasks.Parse(t, text) }

// Check returns an error if the number of classes does not match the task. A classification
// must have two classes, or at least two if the parameter more is set. A regression must have
// none.
func (t Task) Check(c Classes, more bool) error {
	n, want := len(c.Values), "2"
	if more {
		want = "2 or more"
	}
	switch {
	case t == Regression && (c.Type != "" || n > 0):
		return errors.New("a regression has no classes")
	case t == Regression:
		return nil
	case t != Classification:
		return fmt.Errorf("%v is not one of the package's constants", t)
	case n < 2 || n > 2 && !more:
		return fmt.Errorf("there are %d classes, want %s", n, want)
	}
	_, err := c.Cells()
	return err
}

// Predicts returns a description of the prediction, with the default names of columns.
func (t Task) Predicts() model.Prediction {
	p := model.Prediction{Column: Names{}.OrDefault().Prediction, Scores: Names{}.OrDefault().Probability}
	if t == Classification {
		p.Target = model.Class
	}
	return p
}
