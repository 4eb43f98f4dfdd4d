// Command ranking learns to rank the results of queries. It trains gradient-boosted trees to put
// relevant results first, and measures the ranking on queries to which the trees are not fitted.
package main

import (
	"embed"
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

//go:embed data/train.libsvm.gz data/test.libsvm.gz
var bundled embed.FS

// dim is the number of features of a result. It is given, because the last features may not
// occur in a file in LibSVM format.
const dim = 300

// args are the arguments of the job. Each field is a flag.
type args struct {
	Input  string  `help:"LibSVM file with query ids and up to 300 features (default: the bundled results)."`
	Test   string  `help:"File of the results to measure on (default: the bundled ones)."`
	Rounds int     `help:"Largest number of rounds." default:"200"`
	Rate   float64 `help:"Learning rate: factor of the leaves of a tree." default:"0.1"`
	Leaves int     `help:"Largest number of leaves of a tree." default:"15"`
	Stop   int     `help:"Rounds without a better order after which training ends; 0: never." default:"30"`
	Model  string  `help:"JSON file to write the model to."`
}

// Validate is called before the job is built. An error is reported as wrong usage.
func (a args) Validate() error {
	switch {
	case (a.Input == "") != (a.Test == ""):
		return errors.New("--input and --test go together: the bundled results are of the same queries")
	case a.Rounds < 1 || a.Leaves < 2 || a.Stop < 0 || !(a.Rate > 0):
		return errors.New("--rounds and --rate must be above 0, --leaves at least 2, and --stop 0 or more")
	}
	return nil
}

// read returns a dataset of the results in the file at path, or in the bundled file with the
// name instead if path is "". Its columns are label, qid and features.
func read(b *engine.Builder, path, instead string) *engine.Dataset {
	o := operators.LibSVMOptions{Size: dim}
	if path == "" {
		path, o.FS = instead, bundled
	}
	return operators.ReadLibSVM(b, path, o)
}

// job defines the dataflow. The engine compiles it to a plan and runs it.
var job = engine.Define("ranking", func(b *engine.Builder, a args) error {
	seen, unseen := read(b, a.Input, "data/train.libsvm.gz"), read(b, a.Test, "data/test.libsvm.gz")
	engine.Collect(gbdt.Train(seen, gbdt.Params{
		VectorCol: "features", LabelCol: "label", GroupCol: "qid", AbsentIsZero: true, Objective: gbdt.LambdaMART,
		NumTrees: a.Rounds, LearningRate: a.Rate, GrowPolicy: gbdt.LossGuide, MaxLeaves: a.Leaves, MinSamplesLeaf: 20, MinChildWeight: 0.001,
		Metrics: []string{"ndcg@5", "ndcg@1", "ndcg@3", "map@5"}, EarlyStoppingRounds: a.Stop,
	}, gbdt.Set{Name: "test", Rows: unseen}), "model")
	return nil
}).Describe("Learns to put the results of queries in order.")

// report prints the metrics of the best round, and writes the model if --model is given.
func report(a args, r *engine.Result) error {
	m, err := gbdt.ModelOf(r, "model")
	if err != nil {
		return err
	}
	s := m.Summary
	fmt.Printf("%d rounds, the best on the test queries was round %d:\n", s.Rounds, s.BestRound)
	for k, set := range s.Sets {
		fmt.Printf("%-6s", set)
		for j, metric := range s.Metrics {
			fmt.Printf(" %s %.4f", metric, float64(s.Record[s.BestRound-1][k][j]))
		}
		fmt.Println()
	}
	if a.Model == "" {
		return nil
	}
	if err := m.Save(a.Model); err != nil {
		return err
	}
	fmt.Printf("model written to %s\n", a.Model)
	return nil
}

func main() { engine.Main(job, engine.AfterRun(report)) }
