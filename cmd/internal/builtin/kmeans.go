package builtin

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// KMeansArgs are the arguments of the k-means job.
type KMeansArgs struct {
	Input   string  `required:"" placeholder:"PATH" help:"File, directory or glob to cluster: CSV with a header, or LibSVM where the name ends in .libsvm or .svm."`
	Columns list    `placeholder:"COLUMN,..." help:"Columns of numbers to cluster by (default: all columns of numbers)."`
	K       int     `required:"" placeholder:"N" help:"Number of clusters."`
	Init    string  `help:"First centres: random, k-means++ or 'k-means||' (the default)." enum:"random,k-means++,k-means||" default:"k-means||"`
	MaxIter int     `placeholder:"N" help:"Largest number of updates of the centres (default: 100)."`
	Tol     float64 `placeholder:"DISTANCE" help:"Training ends when no centre moved farther than this (default: 0.0001)."`
	Seed    uint64  `placeholder:"SEED" help:"Seed of the random draws."`
	Output  string  `placeholder:"PATH" help:"CSV file to write the rows to, with cluster and distance to its centre."`
	Model   string  `placeholder:"FILE" help:"JSON file, on this machine, to write the trained model to."`
}

// Validate returns an error if values are out of range or flags cannot be combined.
func (a KMeansArgs) Validate() error {
	switch {
	case a.K < 1:
		return fmt.Errorf("--k is %d: want at least 1", a.K)
	case a.MaxIter < 0:
		return fmt.Errorf("--max-iter is %d: want at least 1", a.MaxIter)
	case a.libsvm() && len(a.Columns) > 0:
		return errors.New("--columns does not go with LibSVM files, whose features have no names")
	}
	return nil
}

func (a KMeansArgs) libsvm() bool {
	switch strings.ToLower(filepath.Ext(a.Input)) {
	case ".libsvm", ".svm":
		return true
	}
	return false
}

var inits = map[string]kmeans.Init{"random": kmeans.Random, "k-means++": kmeans.KMeansPlusPlus, "k-means||": kmeans.KMeansParallel}

// KMeans is the job that clusters the rows of files.
var KMeans = engine.Define("kmeans", func(b *engine.Builder, a KMeansArgs) error {
	rows, column, err := a.points(b)
	if err != nil {
		return err
	}
	model := kmeans.Train(rows, kmeans.Params{
		VectorCol: column, K: a.K, Init: inits[a.Init], MaxIter: a.MaxIter, Tol: a.Tol, Seed: a.Seed,
	})
	engine.Collect(model, "model")
	if a.Output != "" {
		clustered := kmeans.Predict(rows, model, kmeans.PredictOptions{VectorCol: column})
		var kept []string
		for _, f := range arrowrows.Arrow(clustered.Schema()).Fields() {
			if f.Name != column {
				kept = append(kept, f.Name)
			}
		}
		operators.WriteCSV(operators.Select(clustered, kept...), a.Output, operators.CSVWriteOptions{})
	}
	return nil
}).Describe("Clusters the rows of files around k centres, and prints the centres.")

// points returns the rows of the input, and the name of their column of vectors.
func (a KMeansArgs) points(b *engine.Builder) (*engine.Dataset, string, error) {
	if a.libsvm() {
		return operators.ReadLibSVM(b, a.Input, operators.LibSVMOptions{}), "features", nil
	}
	types := map[string]string{}
	for _, c := range a.Columns {
		types[c] = "float64"
	}
	rows := operators.ReadCSV(b, a.Input, operators.CSVOptions{Header: true, TrimSpace: true, Types: types})
	columns := a.Columns
	if len(columns) == 0 {
		for _, f := range arrowrows.Arrow(rows.Schema()).Fields() {
			if t := f.Type.String(); t == "float64" || t == "int64" {
				columns = append(columns, f.Name)
			}
		}
		if len(columns) == 0 && len(arrowrows.Arrow(rows.Schema()).Fields()) > 0 {
			return nil, "", fmt.Errorf("%s has no columns of numbers to cluster by", a.Input)
		}
	}
	return operators.Vectorize(rows, "superstep features", columns...), "superstep features", nil
}
