package tests

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

func TestExplain(t *testing.T) {
	path := programs.Build(t, "./examples/kmeans")
	explain := func(form string) string {
		got := programs.Execute(t, nil, path, "--explain="+form, "--parallelism", "3", "--seed", "4")
		require.Zero(t, got.Code, got.Stderr)
		require.Equal(t, got.Stdout, programs.Execute(t, nil, path, "--explain="+form, "--parallelism", "3", "--seed", "4").Stdout)
		return got.Stdout
	}
	text := explain("text")
	for _, stage := range []string{"preallocate", "assign cluster", "AllReduceSend(centroidAllReduce)", "AllReduceSum(centroidAllReduce)", "AllReduceRecv(centroidAllReduce)", "update centroids"} {
		require.Contains(t, text, stage)
	}
	require.Regexp(t, regexp.MustCompile(`(?m)← v\d+ AllReduceSend\(centroidAllReduce\) +by-subtask`), text)
	require.Regexp(t, regexp.MustCompile(`(?m)← v\d+ AllReduceSum\(centroidAllReduce\) +by-subtask`), text)
	require.NotContains(t, text, "depends on parallelism")

	var decoded plan.Plan
	require.NoError(t, json.Unmarshal([]byte(explain("json")), &decoded))
	require.Equal(t, strings.TrimSpace(text), strings.TrimSpace(decoded.Text()), "the plan in JSON must be the plan in text")

	dot := explain("dot")
	require.True(t, strings.HasPrefix(dot, "digraph"), dot)
	require.Equal(t, strings.Count(dot, "{"), strings.Count(dot, "}"))
}

// TestWhatRanIsWhatThePlanShows compares the report of a run with its plan. It requires that
// both have the same vertices, subtasks, shards and operators, that as many rows leave an edge
// as enter it, and that every subtask has called each stage of each queue in every superstep.
func TestWhatRanIsWhatThePlanShows(t *testing.T) {
	const p, rows = 3, 150
	output := filepath.Join(t.TempDir(), "out.csv")
	job := engine.Define("shown", func(b *engine.Builder, _ struct{}) error {
		read := operators.ReadCSV(b, "../examples/kmeans/data/iris.csv", operators.CSVOptions{Header: true, TrimSpace: true})
		points := operators.Vectorize(operators.Rebalance(read), "features", "Sepal length", "Petal width")
		model := kmeans.Train(points, kmeans.Params{VectorCol: "features", K: 3, Init: kmeans.Random})
		predicted := kmeans.Predict(points, model, kmeans.PredictOptions{})
		engine.Collect(model, "model")
		engine.Collect(operators.GroupBy(predicted, "cluster").Aggregate(operators.CountRows()), "counts")
		operators.WriteCSV(operators.Select(predicted, "cluster"), output, operators.CSVWriteOptions{})
		return nil
	})
	shown, err := engine.Compile(job, struct{}{}, engine.Parallelism(p))
	require.NoError(t, err)
	result, err := engine.Run(t.Context(), job, struct{}{}, engine.Parallelism(p))
	require.NoError(t, err)
	defer result.Release()
	require.Equal(t, shown.Text(), result.Plan.Text())

	in, out := map[plan.NodeID]int64{}, map[plan.NodeID]int64{}
	require.Len(t, result.Report.Vertices, len(result.Plan.Vertices))
	for i, v := range result.Plan.Vertices {
		ran := result.Report.Vertices[i]
		require.Equal(t, v.Name, ran.Name)
		require.Len(t, ran.Subtasks, v.Parallelism, v.Name)
		for s, sub := range ran.Subtasks {
			require.Equal(t, v.Ranges[s].Len(), sub.Shards, v.Name)
			require.Len(t, sub.Operators, len(v.Chain), v.Name)
			for k, o := range sub.Operators {
				require.Equal(t, v.Chain[k].Node, o.Node, v.Name)
				in[o.Node] += o.RowsIn
				out[o.Node] += o.RowsOut
			}
		}
	}
	for _, n := range result.Plan.Nodes {
		want := int64(0)
		for _, input := range n.Inputs {
			if input.Role == plan.Data {
				want += out[input.From]
			}
		}
		if n.Stage == plan.NoStage && len(n.Inputs) > 0 {
			require.Equal(t, want, in[n.ID], "as many rows must leave the edges to %s %q as entered them", n.Op, n.Name)
		}
		switch n.Op {
		case "ReadCSV", "Rebalance", "Vectorize", "KMeansPredict":
			require.Equal(t, int64(rows), out[n.ID], n.Op)
		}
	}

	require.Len(t, result.Report.Queues, len(result.Plan.Queues))
	for i, q := range result.Plan.Queues {
		ran := result.Report.Queues[i]
		require.Equal(t, q.Name, ran.Name)
		var stages []string
		for _, n := range result.Plan.Nodes {
			switch n.Stage {
			case plan.Compute, plan.Send, plan.Sum, plan.Recv:
				if n.Queue == q.Name {
					stages = append(stages, fmt.Sprint(n.ID))
				}
			}
		}
		var called []string
		programs := map[string]bool{}
		for _, s := range ran.Stages {
			called = append(called, fmt.Sprint(s.Node))
			require.Equal(t, int64(p*ran.Supersteps), s.Calls, "every subtask must have called stage %s of queue %s in every superstep", s.Name, q.Name)
			if strings.HasPrefix(s.Name, "AllReduce") {
				program, _, _ := strings.Cut(s.Program, ", by ") // the part after ", by " depends on the length of the data
				program, _, _ = strings.Cut(program, ", in parts")
				programs[program] = true
			}
		}
		require.Equal(t, stages, called, q.Name)
		require.Equal(t, map[string]bool{"direct over shared memory, 3 ranks": true}, programs, q.Name)
	}
}
