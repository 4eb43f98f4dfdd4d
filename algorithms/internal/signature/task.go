package signature

import (
	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// Task is what a model predicts of an estimator that predicts either numbers or classes.
type Task int

// The tasks.
const (
	Regression Task = iota
	Classification
)

var tasks = enum.Names[Task]{Type: "Task", What: "task", Names: []string{"regression", "classification"}}

// String returns "regression" or "classification".
func (t Task) String() string { return tasks.String(t) }

// MarshalText implements encoding.TextMarshaler.
func (t Task) MarshalText() ([]byte, error) { return tasks.Text(t) }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (t *Task) UnmarshalText(text []byte) error { return tasks.Parse(t, text) }

// Predicts returns what is predicted, by the usual names.
func (t Task) Predicts() model.Prediction {
	p := model.Prediction{Column: Names{}.OrDefault().Prediction, Scores: Names{}.OrDefault().Probability}
	if t == Classification {
		p.Target = model.Class
	}
	return p
}
