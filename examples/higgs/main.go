// Command higgs separates collisions of particles that produced a Higgs boson from other
// collisions. It trains gradient-boosted trees until they no longer improve on rows to which
// they are not fitted.
package main

import (
	"embed"
	"errors"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/picture"
	"github.com/superstep-ml/superstep/operators"
)

//go:embed data/train.tsv.gz data/test.tsv.gz
var bundled embed.FS

// args are the arguments of the job. Each field is a flag.
type args struct {
	Input  string  `help:"Tab separated file without a header, the label first (default: the bundled collisions)."`
	Test   string  `help:"File of the rows to measure on (default: the bundled ones)."`
	Rounds int     `help:"Largest number of rounds." default:"500"`
	Rate   float64 `help:"Learning rate: factor of the leaves of a tree." default:"0.1"`
	Depth  int     `help:"Largest number of splits above a leaf." default:"6"`
	Stop   int     `help:"Rounds without a better area under the curve after which training ends; 0: never." default:"30"`
	Model  string  `help:"JSON file to write the model to."`
	Plot   string  `help:"PNG, SVG or PDF file to draw the learning curves in."`
}

// Validate is called before the job is built. An error is reported as wrong usage.
func (a args) Validate() error {
	switch {
	case (a.Input == "") != (a.Test == ""):
		return errors.New("--input and --test go together: the bundled rows are those of one experiment")
	case a.Rounds < 1 || a.Depth < 1 || a.Stop < 0 || !(a.Rate > 0):
		return errors.New("--rounds, --depth and --rate must be above 0, and --stop 0 or more")
	}
	return picture.Valid(a.Plot)
}

// read returns a dataset of the rows in the file at path, or in the bundled file with the name
// instead if path is "". In the bundled files, column c0 is the label, and c1 to c28 are
// features.
func read(b *engine.Builder, path, instead string) *engine.Dataset {
	csv := operators.CSVOptions{Delimiter: '\t'}
	if path == "" {
		path, csv.FS = instead, bundled
	}
	return operators.ReadCSV(b, path, csv)
}

// job defines the dataflow. The engine compiles it to a plan and runs it.
var job = engine.Define("higgs", func(b *engine.Builder, a args) error {
	seen, unseen := read(b, a.Input, "data/train.tsv.gz"), read(b, a.Test, "data/test.tsv.gz")
	p := gbdt.Params{
		FeatureCols: features(seen), LabelCol: "c0", Objective: gbdt.Logistic,
		NumTrees: a.Rounds, LearningRate: a.Rate, MaxDepth: a.Depth,
		Metrics: []string{"auc", "logloss"}, EarlyStoppingRounds: a.Stop,
	}
	trained := gbdt.Train(seen, p, gbdt.Set{Name: "test", Rows: unseen})
	engine.Collect(trained, "model")
	predicted := p.Apply(unseen, trained)
	engine.Collect(evaluate.Binary(predicted, evaluate.BinaryOptions{LabelCol: "c0", ScoreCol: "probability"}), "unseen")
	return nil
}).Describe("Finds collisions that made a Higgs boson.")

// features returns the names of all columns but the first, which is the label.
func features(rows *engine.Dataset) []string {
	var names []string
	if rows.Poisoned() {
		return nil
	}
	for _, c := range rows.Schema().Columns()[1:] {
		names = append(names, c.Name)
	}
	return names
}

func main() { engine.Main(job, engine.AfterRun(report)) }
