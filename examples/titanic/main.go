// Command titanic predicts which passengers of the Titanic survived. A pipeline fills in missing
// values, encodes text as numbers, and trains a logistic regression. The model is evaluated on
// passengers that are not used in training.
package main

import (
	"embed"
	"errors"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/picture"
	"github.com/superstep-ml/superstep/operators"
)

//go:embed data/titanic.csv
var bundled embed.FS

// args are the arguments of the job. Each field is a flag.
type args struct {
	Input string  `help:"CSV file with the columns of the bundled passengers (default: those)."`
	L2    float64 `name:"l2" help:"Strength of the ridge penalty." default:"0.01"`
	Every int     `help:"One passenger in so many is kept for the evaluation." default:"4"`
	Model string  `help:"JSON file to write the pipeline's model to."`
	Plot  string  `help:"PNG, SVG or PDF file to draw the ROC curve in."`
}

// Validate is called before the job is built. An error is reported as wrong usage.
func (a args) Validate() error {
	switch {
	case a.Every < 2:
		return errors.New("--every must be at least 2")
	case a.L2 < 0:
		return errors.New("--l2 must be 0 or more")
	}
	return picture.Valid(a.Plot)
}

// passengers is the pipeline. Every stage is trained on the output of the stages before it.
func passengers(l2 float64) pipeline.Pipeline {
	numbers := []string{"age", "fare", "sibsp", "parch"}
	words := []string{"sex", "class", "embarked"}
	encoded := []string{"sex is", "class is", "embarked is"}
	return pipeline.Pipeline{Stages: []model.Stage{
		prepare.Imputer{Columns: numbers, Strategy: prepare.Median},
		prepare.Imputer{Columns: words, Strategy: prepare.Mode},
		prepare.OneHotEncoder{Columns: words, Outputs: encoded, DropLast: true, Unknown: prepare.Shares},
		prepare.VectorAssembler{Columns: append(numbers, encoded...), Form: prepare.Dense},
		logistic.Params{LabelCol: "survived", VectorCol: "features", L2: l2},
	}}
}

// numbered has the column by which passengers are chosen for training or for the evaluation.
type numbered struct{ Passenger int64 }

// job defines the dataflow. The engine compiles it to a plan and runs it.
var job = engine.Define("titanic", func(b *engine.Builder, a args) error {
	path, csv := a.Input, operators.CSVOptions{Header: true}
	if path == "" {
		path, csv.FS = "data/titanic.csv", bundled
	}
	all := operators.ZipWithIndex(operators.ReadCSV(b, path, csv), "passenger")
	every := int64(a.Every)
	seen := operators.Filter(all, func(n numbered) bool { return n.Passenger%every != 0 })
	unseen := operators.Filter(all, func(n numbered) bool { return n.Passenger%every == 0 })

	p := passengers(a.L2)
	trained := p.Fit(seen)
	engine.Collect(trained, "model")
	engine.Collect(quality(p.Apply(seen, trained)), "seen")
	engine.Collect(quality(p.Apply(unseen, trained)), "unseen")
	return nil
}).Describe("Predicts who survived the Titanic.")

// quality returns the metrics of the predicted probabilities of survival. In each row, column
// probability has a vector with the probabilities of death and of survival.
func quality(predicted *engine.Dataset) *engine.Dataset {
	return evaluate.Binary(predicted, evaluate.BinaryOptions{LabelCol: "survived", ScoreCol: "probability"})
}

func main() { engine.Main(job, engine.AfterRun(report)) }
