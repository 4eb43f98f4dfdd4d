package optim_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// splitFrom does what build does, but splits the parameters among subtasks if there are at
// least `from` of them.
func splitFrom(from int, table trial.Table, o optim.Objective, s optim.Settings) func(b *engine.Builder) {
	return func(b *engine.Builder) {
		rows := table.Dataset(b)
		engine.Collect(optim.MinimizeSplit(b, optim.Problem{
			Name: "minimize", Objective: o, Settings: s, Closer: asText,
			Init: func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
				return q.InitWithPartitionedData(points, rows)
			},
		}, from), "result")
	}
}

// TestSplitParametersHaveTheSameBits requires the same bits with split parameters as with whole
// parameters. It covers every method, with and without cached margins, diverging trainings
// whose path is examined, rounds, and subtasks that have no parameter.
func TestSplitParametersHaveTheSameBits(t *testing.T) {
	const n = 200
	table := trial.Gaussian(3, 24, n)
	for i := range table.N {
		table.Label = append(table.Label, float64(i%2))
	}
	margins := objective{table: table, loss: logistic}
	points := objective{table: table, loss: logistic, can: nothing}
	kinks := trial.Gaussian(2, apart, 1)
	for i, x := range kinks.X {
		kinks.Label = append(kinks.Label, 3+2*x+0.1*float64(i%3))
	}
	// A plane separates all rows except some rows in the plane. The columns used are far apart.
	apartSome := trial.Table{N: 80, D: n, X: make([]float64, 80*n)}
	for i, x := range trial.Gaussian(5, 80*3, 1).X {
		row, y := apartSome.Row(i/3), float64(i/3%2)
		row[[]int{0, 90, n - 1}[i%3]] = x
		switch {
		case i%3 < 2:
		case i < 60 && y == 1:
			copy(row, apartSome.Row(i/3-1))
		case i < 60:
			row[0] = 0
		default:
			row[0] = (2*y - 1) * (0.5 + math.Abs(row[0]))
		}
		if i%3 == 2 {
			apartSome.Label = append(apartSome.Label, y)
		}
	}
	for _, c := range []struct {
		name  string
		table trial.Table
		o     optim.Objective
		s     optim.Settings
		bits  bool // whether to try everything that trial.SameBits varies
	}{
		{"LBFGS", table, margins, optim.Settings{Method: optim.LBFGS, L2: 1e-3, History: 4, MaxIter: 8}, true},
		{"OWLQN", table, margins, optim.Settings{Method: optim.OWLQN, L1: 1e-3, MaxIter: 8, History: 4}, true},
		{"LBFGS at points", table, points, optim.Settings{Method: optim.LBFGS, L2: 1e-3, MaxIter: 6}, false},
		{"OWLQN at points", table, points, optim.Settings{Method: optim.OWLQN, L1: 1e-2, L2: 1e-3, MaxIter: 6}, false},
		{"GD", table, margins, optim.Settings{Method: optim.GD, L2: 1e-3, MaxIter: 6, Trials: 3}, false},
		{"diverging", table, margins, optim.Settings{Method: optim.LBFGS, MaxIter: 60}, false},
		{"looked back at", apartSome, objective{table: apartSome, loss: logistic}, optim.Settings{Method: optim.OWLQN, MaxIter: 500}, false},
		{"looked back at from points", apartSome, objective{table: apartSome, loss: logistic, can: nothing}, optim.Settings{MaxIter: 500}, false},
		{"one parameter", kinks, distance{}, optim.Settings{Method: optim.LBFGS, L2: 0.1, GapTol: 1e-8}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := atShards(t, 8, splitFrom(n+100, c.table, c.o, c.s))
			require.Equal(t, whole, atShards(t, 8, splitFrom(1, c.table, c.o, c.s)))
			if c.s.L1 == 0 && c.s.L2 == 0 {
				require.Contains(t, whole, string(optim.Diverging))
			}
			if c.bits && (c.s.L1 == 0 || testsize.Soak) {
				atShards(t, 128, splitFrom(1, c.table, c.o, c.s))
			}
			if c.bits {
				trial.SameBits(t, splitFrom(1, c.table, c.o, c.s), "minimize")
			}
		})
	}
}

// TestSplitParametersAreChecked requires that engine.Check finds no difference. engine.Check
// compares kept objects between parallelisms. Parameters that may be split are kept in blocks
// at any parallelism, even if one subtask has all blocks.
func TestSplitParametersAreChecked(t *testing.T) {
	table := trial.Gaussian(3, 24, 100)
	for i := range table.N {
		table.Label = append(table.Label, float64(i%2))
	}
	o := objective{table: table, loss: logistic}
	job := engine.Define("checked", func(b *engine.Builder, _ struct{}) error {
		splitFrom(1, table, o, optim.Settings{Method: optim.LBFGS, MaxIter: 4})(b)
		return nil
	})
	require.NoError(t, engine.Check(t.Context(), job, struct{}{}, engine.Shards(8)))
}

// TestSplitParametersThatAreNotFinite requires that the error names the derivative that is not
// finite, whichever subtask has it, or the loss if that is not finite.
func TestSplitParametersThatAreNotFinite(t *testing.T) {
	table := trial.Gaussian(3, 24, 200)
	for i := range table.N {
		table.Label = append(table.Label, float64(i%2))
		table.Row(i)[150] = 1.7e308 * float64(i%2)
		table.Row(i)[170] = table.Row(i)[150]
	}
	for _, can := range []ability{everything, nothing} {
		trial.Fails(t, splitFrom(1, table, objective{table: table, loss: logistic, can: can}, optim.Settings{Method: optim.LBFGS, L2: 1}),
			"its derivative by parameter 150 is -Inf: check features")
	}
	table.Row(3)[20] = math.NaN()
	trial.Fails(t, splitFrom(1, table, objective{table: table, loss: logistic}, optim.Settings{Method: optim.LBFGS, L2: 1}), "the loss is NaN at the start")
}

// TestBytesOfSplitParameters counts the bytes that are sent with split parameters. A read of
// the rows sends each subtask only its block of the results, and a new direction is sent to all
// subtasks once. The numbers must equal the formulas in split.go.
func TestBytesOfSplitParameters(t *testing.T) {
	const n, p, shards = 4000, 4, 8
	table := trial.Gaussian(3, 24, n-1)
	for i := range table.N {
		table.Label = append(table.Label, float64(i%2))
	}
	o := objective{table: table, loss: logistic}
	r := trial.Run(t, splitFrom(1, table, o, optim.Settings{Method: optim.LBFGS, L2: 1e-3, MaxIter: 5, Tol: -1}),
		engine.Shards(shards), engine.Parallelism(p))
	result := decode(t, r)
	sent := map[string]int64{}
	for _, s := range r.Queue("minimize").Stages {
		sent[s.Name] += s.Bytes
	}
	var gradients, vectors, ends int64
	for name, bytes := range sent {
		switch {
		case strings.Contains(name, `"optim gradient"`):
			require.True(t, strings.HasPrefix(name, "ReduceScatter") || bytes == 0, name)
			gradients += bytes
		case strings.HasPrefix(name, `Gather "optim own direction"`):
			ends += bytes
		case strings.Contains(name, `"optim own direction"`):
			vectors += bytes
		}
	}
	// The two shards of each subtask are one node of the tree, and each subtask keeps a quarter
	// of n.
	reads, moves := int64(result.Reads), int64(result.Iterations)
	require.Equal(t, reads*8*((p-1)*(n+1)), gradients, "%v", sent)
	lengths := int64(8 * p * (p - 1)) // what an AllGather sends to announce lengths
	require.Equal(t, moves*(8*n*(p-1)+lengths), vectors, "%v", sent)
	require.Equal(t, lengths+8*(n-n/p), ends, "%v", sent)
	require.Equal(t, 0, n%shards)
	require.Equal(t, n/p, sharding.Split(n, p, 0).Len())
}

// watched is an objective that reports how many numbers its subtasks store when rows are read.
type watched struct {
	objective
	look func(subtask, blocks, wholes int)
}

func (o watched) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	e, err := o.objective.Open(ctx)
	direction := e.Margins.Direction
	e.Margins.Direction = func(shard int, p []float64, step float64, out []float64) error {
		blocks, wholes := optim.Kept(ctx)
		o.look(ctx.TaskID(), blocks, wholes)
		return direction(shard, p, step, out)
	}
	return e, err
}

// TestSplitParametersAreKeptOnce requires that each subtask stores its share of every split
// vector, and only the two vectors for reading rows whole, as the formula in split.go says.
func TestSplitParametersAreKeptOnce(t *testing.T) {
	const n, p, shards, pairs = 4000, 4, 8, 4
	table := trial.Gaussian(3, 24, n-1)
	for i := range table.N {
		table.Label = append(table.Label, float64(i%2))
	}
	for _, c := range []struct {
		s       optim.Settings
		vectors int
	}{
		{optim.Settings{Method: optim.LBFGS, L2: 1e-3}, 5 + 2*(pairs+1)},
		{optim.Settings{Method: optim.OWLQN, L1: 1e-3}, 5 + 2*(pairs+1) + 1},
		{optim.Settings{Method: optim.LBFGS}, 5 + 2*(pairs+1) + 4},
		{optim.Settings{Method: optim.GD, L2: 1e-3}, 5},
	} {
		c.s.History, c.s.MaxIter, c.s.Tol = pairs, 12, -1
		var most [p][2]int
		var mu sync.Mutex
		o := watched{objective{table: table, loss: logistic, can: linearOnly}, func(subtask, blocks, wholes int) {
			mu.Lock()
			defer mu.Unlock()
			most[subtask] = [2]int{max(most[subtask][0], blocks), max(most[subtask][1], wholes)}
		}}
		trial.Run(t, splitFrom(1, table, o, c.s), engine.Shards(shards), engine.Parallelism(p))
		for subtask, kept := range most {
			require.Equal(t, [2]int{c.vectors * n / p, n + n + 1}, kept, "%v on subtask %d", c.s.Method, subtask)
		}
	}
}
