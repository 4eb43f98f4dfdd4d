// Command kmeans clusters the rows of a CSV file around k centres. The default input is the
// bundled iris data set: measurements of flowers of three species.
package main

import (
	"embed"
	"errors"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/picture"
	"github.com/superstep-ml/superstep/operators"
)

//go:embed data/iris.csv
var bundled embed.FS

// args are the arguments of the job. Each field is a flag.
type args struct {
	Input       string   `help:"CSV file, directory or glob to cluster (default: the bundled iris flowers)."`
	Columns     []string `help:"Columns of numbers to cluster by (default: the four measurements of iris)."`
	Label       string   `help:"Column of known classes to compare the clusters with (default: the species of iris)."`
	K           int      `help:"Number of clusters." default:"3"`
	Init        string   `help:"First centres: random, k-means++ or 'k-means||' (the default)." enum:"random,k-means++,k-means||" default:"k-means||"`
	Seed        uint64   `help:"Seed of the random draws."`
	Output      string   `help:"CSV file to write the rows to, with cluster and distance to its centre."`
	Model       string   `help:"JSON file to write the trained model to."`
	Plot        string   `help:"PNG, SVG or PDF file to draw the clusters in."`
	PlotColumns []string `help:"The two columns to draw (default: the last two clustered by)."`
}

var inits = map[string]kmeans.Init{"random": kmeans.Random, "k-means++": kmeans.KMeansPlusPlus, "k-means||": kmeans.KMeansParallel}

// withDefaults returns a, with the default columns in place of columns that no flag names.
func (a args) withDefaults() args {
	if a.Input == "" && len(a.Columns) == 0 {
		a.Columns = []string{"Sepal length", "Sepal width", "Petal length", "Petal width"}
	}
	if a.Input == "" && a.Label == "" {
		a.Label = "Species"
	}
	if len(a.PlotColumns) == 0 {
		a.PlotColumns = a.Columns[max(0, len(a.Columns)-2):]
	}
	return a
}

// Validate is called before the job is built. An error is reported as wrong usage.
func (a args) Validate() error {
	switch a = a.withDefaults(); {
	case len(a.Columns) == 0:
		return errors.New("--input needs --columns too: the columns to cluster by")
	case a.Plot != "" && len(a.PlotColumns) != 2:
		return errors.New("--plot needs two --plot-columns")
	}
	return errors.Join(picture.Valid(a.Plot), distinct(a.Output, a.Model, a.Plot))
}

// job defines the dataflow. The engine compiles it to a plan and runs it.
var job = engine.Define("kmeans", func(b *engine.Builder, a args) error {
	a = a.withDefaults()
	csv := operators.CSVOptions{Header: true, TrimSpace: true, Types: map[string]string{}}
	for _, column := range a.Columns {
		csv.Types[column] = "float64" // types of the other columns are inferred
	}
	path := a.Input
	if path == "" {
		path, csv.FS = "data/iris.csv", bundled
	}
	rows := operators.ReadCSV(b, path, csv)
	if err := noneAdded(path, rows); err != nil {
		return err
	}
	features := unused(rows, "features")
	points := operators.Vectorize(rows, features, a.Columns...)
	model := kmeans.Train(points, kmeans.Params{VectorCol: features, K: a.K, Init: inits[a.Init], Seed: a.Seed})
	clustered := kmeans.Predict(points, model, kmeans.PredictOptions{VectorCol: features})

	engine.Collect(model, "model")
	if a.Label != "" {
		rows := unused(clustered, "rows")
		counts := operators.GroupBy(clustered, "cluster", a.Label).Aggregate(operators.CountRows().As(rows))
		engine.Collect(operators.GroupBy(counts, "cluster").
			Aggregate(operators.MaxOf(rows).As("most"), operators.SumOf(rows).As("all")), "majorities")
	}
	if a.Output != "" {
		var kept []string
		for _, column := range rows.Schema().Columns() {
			kept = append(kept, column.Name)
		}
		operators.WriteCSV(operators.Select(clustered, append(kept, "cluster", "distance")...), a.Output, operators.CSVWriteOptions{})
	}
	if a.Plot != "" {
		engine.Collect(plottedRows(clustered, a.PlotColumns), "plot")
	}
	return errors.Join(mayWrite(b, a.Model), mayWrite(b, a.Plot)) // the files that report will write
})

func main() { engine.Main(job, engine.AfterRun(report)) }
