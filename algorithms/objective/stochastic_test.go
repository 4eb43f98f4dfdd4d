package objective_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// higgs returns a sample of 7,000 rows of HIGGS, see testdata/README.md.
func higgs(t testing.TB) trial.Table {
	t.Helper()
	file, err := os.Open("testdata/higgs.tsv.gz")
	require.NoError(t, err)
	defer file.Close()
	text, err := gzip.NewReader(file)
	require.NoError(t, err)
	table := trial.Table{D: 28}
	for lines := bufio.NewScanner(text); lines.Scan(); table.N++ {
		for i, text := range strings.Split(lines.Text(), "\t") {
			v, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			if i == 0 {
				table.Label = append(table.Label, v)
			} else {
				table.X = append(table.X, v)
			}
		}
	}
	return table
}

// TestSGDOnHIGGS requires that SGD comes within 1e-3 of the optimum in 50 epochs with the
// default rate, with every schedule and every update rule.
func TestSGDOnHIGGS(t *testing.T) {
	table := higgs(t)
	record := table.Record()
	const l2 = 1e-4
	best := fit(t, table, objective.Linear{Loss: objective.Logistic{}}, optim.Settings{L2: l2, Tol: 1e-9}).Loss
	require.InDelta(t, 0.63823443, best, 1e-6)
	for schedule := optim.InverseScaling; schedule <= optim.Optimal; schedule++ {
		for update := optim.Plain; update <= optim.AdaGrad; update++ {
			if !testsize.Soak && (update != optim.Plain || schedule != optim.InverseScaling) {
				continue
			}
			s := optim.Stochastic{Schedule: schedule, Update: update}
			f, _ := fitRecord(t, record, optim.Settings{Method: optim.SGD, L2: l2, Tol: -1, MaxIter: 50, Stochastic: s})
			require.InDelta(t, best, f.Loss, 1e-3*best, "SGD must come within 1e-3 of the optimum: %+v", s)
		}
	}
}

// TestSGDOnHIGGSByShorterSteps requires the same accuracy if each step reads fewer rows. The
// default rate is then lower, but an epoch has more steps.
func TestSGDOnHIGGSByShorterSteps(t *testing.T) {
	record := higgs(t).Record()
	all := []optim.Stochastic{
		{Batch: 32},
		{Batch: 32, Schedule: optim.Constant},
		{Batch: 32, Schedule: optim.Exponential, Momentum: 0.9},
		{Batch: 32, Schedule: optim.Exponential, Update: optim.AdaGrad},
		{Batch: 32, Schedule: optim.Exponential, Update: optim.Adam},
	}
	if !testsize.Soak {
		all = all[:1]
	}
	for _, s := range all {
		f, _ := fitRecord(t, record, optim.Settings{Method: optim.SGD, L2: 1e-4, Tol: -1, MaxIter: 50, Stochastic: s})
		require.InDelta(t, 0.63823443, f.Loss, 1e-3*0.63823443, "SGD must come within 1e-3 of the optimum: %+v", s)
	}
}

// TestRowsOfManyShardsTogetherGiveTheSameBits requires that sampled rows of many shards that
// are evaluated together give the same bits as rows that are evaluated shard by shard.
func TestRowsOfManyShardsTogetherGiveTheSameBits(t *testing.T) {
	for _, k := range []kind{kinds()[0], kinds()[1], kinds()[13]} {
		for _, d := range []design{{weighted: true}, {noIntercept: true}, {sparse: true}} {
			table := tableFor(k, d)
			for _, batch := range []int{0, 3, 50} {
				var want []byte
				for _, together := range []bool{false, true} {
					for _, parallelism := range []int{1, 3} {
						if !testsize.Soak && (parallelism == 3 && !together || batch == 50 && d.weighted || batch != 50 && !d.weighted) {
							continue
						}
						r := trial.Run(t, func(b *engine.Builder) {
							checked, err := rows.Check("test", table.Dataset(b), columnsOf(table), k.loss.Label())
							require.NoError(t, err)
							l := objective.Linear{Table: checked, Loss: k.loss, NoIntercept: d.noIntercept}
							o := altered{l, func(e *optim.Evaluator) {
								if !together {
									e.Minibatch.Fold = nil
								}
							}}
							engine.Collect(optim.Minimize(b, optim.Problem{
								Name: "fit", Init: checked.Init, Objective: o,
								Settings: optim.Settings{Method: optim.SGD, MaxIter: 3, Tol: -1, Stochastic: optim.Stochastic{Batch: batch, Rate: 0.01}},
								Closer: comqueue.Output(func(ctx *comqueue.ComContext) ([][]byte, error) {
									text, err := json.Marshal(optim.ResultOf(ctx))
									return [][]byte{text}, err
								}),
							}), "fit")
						}, engine.Parallelism(parallelism), engine.Shards(16))
						got, err := engine.Rows[[]byte](r, "fit")
						require.NoError(t, err)
						if want == nil {
							want = got[0]
						}
						require.Equal(t, string(want), string(got[0]), "%v %+v, batch %d, together %v, parallelism %d", k.loss, d, batch, together, parallelism)
					}
				}
			}
		}
	}
}

// fitRecord minimises the logistic loss over the rows of a record.
func fitRecord(t testing.TB, record arrow.Record, s optim.Settings) (fitted, *engine.Result) {
	t.Helper()
	return fitOf(t, func(b *engine.Builder) *engine.Dataset { return arrowbridge.FromRecords(b, []arrow.Record{record}) },
		rows.Columns{Vector: "features", Label: "label"}, objective.Linear{Loss: objective.Logistic{}}, s,
		engine.CheckBroadcasts(false), engine.Parallelism(1), engine.Shards(128))
}

// BenchmarkSGD runs 50 epochs over the 7,000 rows of HIGGS on one thread. It reports the
// milliseconds that the queue takes in the fastest run.
func BenchmarkSGD(b *testing.B) {
	record := higgs(b).Record()
	for _, batch := range []int{0, 32} {
		b.Run(fmt.Sprintf("batch %d", batch), func(b *testing.B) {
			best := math.Inf(1)
			for b.Loop() {
				_, r := fitRecord(b, record, optim.Settings{Method: optim.SGD, L2: 1e-4, Tol: -1, MaxIter: 50, Stochastic: optim.Stochastic{Batch: batch}})
				best = min(best, 1000*r.Queue("fit").Elapsed.Seconds())
			}
			b.ReportMetric(best, "ms-fit")
		})
	}
}
