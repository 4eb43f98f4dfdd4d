package comqueue_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// TestFailures requires that misuses of a queue, when it is built or when it runs, are reported
// with names and lines, and that no subtask hangs.
func TestFailures(t *testing.T) {
	buffer := shared.Scratch[[]float64]("buffer")
	missing := shared.Scratch[[]float64]("missing")
	noop := func(*comqueue.ComContext) error { return nil }
	broken := errors.New("broken")
	queue := func(b *engine.Builder) *comqueue.IterativeComQueue {
		return comqueue.New(b, "q").InitWithPartitionedData(data, dataset(b, 64, func(int) float64 { return 1 }))
	}
	closed := func(q *comqueue.IterativeComQueue) *engine.Dataset {
		return q.CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(3).Exec()
	}
	for name, c := range map[string]struct {
		build func(b *engine.Builder) *engine.Dataset
		want  []string
	}{
		"no end": {
			func(b *engine.Builder) *engine.Dataset {
				return queue(b).Do(noop).CloseOnNode0(comqueue.Output(nothing)).Exec()
			},
			[]string{`queue "q"`, "neither SetCompareCriterionOfNode0 nor SetMaxIter", "failures_test.go"},
		},
		"no result": {
			func(b *engine.Builder) *engine.Dataset { return queue(b).Do(noop).SetMaxIter(1).Exec() },
			[]string{"neither CloseOnNode0 nor CloseWith"},
		},
		"nil stage": {
			func(b *engine.Builder) *engine.Dataset { return closed(queue(b).Add(nil)) },
			[]string{"a stage is nil"},
		},
		"nil function": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do((func(*comqueue.ComContext) error)(nil)))
			},
			[]string{"compute function is nil"},
		},
		"two datasets": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).InitWithPartitionedData(data, dataset(b, 1, nil)).Do(noop))
			},
			[]string{`"data" is given two datasets`},
		},
		"forest without reduce": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Add(comqueue.ForEachShard(buffer, func(*comqueue.ComContext, int, []float64) error { return nil })))
			},
			[]string{`ForEachShard("buffer") is followed by no AllReduce`},
		},
		"forest twice": {
			func(b *engine.Builder) *engine.Dataset {
				each := comqueue.ForEachShard(buffer, func(*comqueue.ComContext, int, []float64) error { return nil })
				return closed(queue(b).Add(each).Add(each).Add(comqueue.AllReduce(buffer)))
			},
			[]string{`ForEachShard("buffer") comes twice`},
		},
		"operator of another type": {
			func(b *engine.Builder) *engine.Dataset {
				op := comqueue.Operator("mine", int64(0), func(dst, src []int64) {})
				return closed(queue(b).Add(comqueue.AllReduce(buffer, op)))
			},
			[]string{`operator "mine" is not one for float64`},
		},
		"repeat without rounds": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Add(comqueue.Repeat(0, nil, comqueue.Do(noop))))
			},
			[]string{"Repeat: the maximum is 0"},
		},
		"key never put": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(put(buffer, func(*comqueue.ComContext) []float64 { return nil })).
					Do(func(ctx *comqueue.ComContext) error { missing.Get(ctx)[0] = 1; return nil }))
			},
			[]string{`"missing"`, "never", "subtask"},
		},
		"unequal lengths": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(put(buffer, func(ctx *comqueue.ComContext) []float64 {
					return make([]float64, 4-ctx.TaskID()/2)
				})).Add(comqueue.AllReduce(buffer)))
			},
			[]string{`ranks disagree: rank `, `AllReduce "buffer" #1 (3 float64`, `AllReduce "buffer" #1 (4 float64`},
		},
		"error in a shard": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(put(buffer, func(*comqueue.ComContext) []float64 { return make([]float64, 1) })).
					Add(comqueue.ForEachShard(buffer, func(_ *comqueue.ComContext, shard int, _ []float64) error {
						if shard == 5 {
							return broken
						}
						return nil
					})).Add(comqueue.AllReduce(buffer)))
			},
			[]string{"shard 5", "broken"},
		},
		"panic": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(func(ctx *comqueue.ComContext) error {
					if ctx.TaskID() == 3 {
						panic("oh no")
					}
					buffer.Put(ctx, nil)
					return nil
				}).Add(comqueue.AllReduce(buffer)))
			},
			[]string{"oh no", "subtask 3", "failures_test.go"},
		},
		"column that does not exist": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(func(ctx *comqueue.ComContext) error {
					data.Get(ctx, ctx.Shards().Lo).Floats("valu")
					return nil
				}))
			},
			[]string{`column "valu" does not exist`, `"value"`},
		},
		"criterion fails": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(noop).SetCompareCriterionOfNode0(func(*comqueue.ComContext) (bool, error) { return false, broken }))
			},
			[]string{"broken"},
		},
		"close fails": {
			func(b *engine.Builder) *engine.Dataset {
				return queue(b).Do(noop).SetMaxIter(1).CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]row, error) { return nil, broken })).Exec()
			},
			[]string{"broken"},
		},
		"forest in another loop": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Add(comqueue.ForEachShard(buffer, func(*comqueue.ComContext, int, []float64) error { return nil })).
					Add(comqueue.Repeat(3, nil, comqueue.AllReduce(buffer))))
			},
			[]string{`ForEachShard("buffer") and its AllReduce are not in the same loop`},
		},
		"key of two types": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Add(comqueue.ForEachShard(buffer, func(*comqueue.ComContext, int, []float64) error { return nil })).
					Add(comqueue.AllReduce(shared.Scratch[[]int64]("buffer"))))
			},
			[]string{`the key "buffer" is used with two types: ForEachShard has []float64, AllReduce []int64`, "failures_test.go"},
		},
		"nil operator": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Add(comqueue.AllReduce(buffer, comqueue.Operator[float64]("mine", 0, nil))))
			},
			[]string{`the function of operator "mine" is nil`},
		},
		"nil option": {
			func(b *engine.Builder) *engine.Dataset { return closed(queue(b).Add(comqueue.AllReduce(buffer, nil))) },
			[]string{`AllReduce("buffer"): an option is nil`},
		},
		"buffer replaced behind its forest": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(func(ctx *comqueue.ComContext) error { buffer.Put(ctx, make([]float64, 2)); return nil }).
					Add(comqueue.ForEachShard(buffer, func(*comqueue.ComContext, int, []float64) error { return nil })).
					Do(func(ctx *comqueue.ComContext) error { buffer.Put(ctx, make([]float64, 3)); return nil }).
					Add(comqueue.AllReduce(buffer)))
			},
			[]string{`buffer "buffer" has 3 elements, and had 2 when ForEachShard filled its parts`},
		},
		"object of another subtask's shard": {
			func(b *engine.Builder) *engine.Dataset {
				state := shared.PerShard("state", shared.Float64())
				return closed(queue(b).Do(func(ctx *comqueue.ComContext) error { state.Put(ctx, 0, 1); return nil }))
			},
			[]string{`"state"`, "the subtask owns shards "},
		},
		"nil batch": {
			func(b *engine.Builder) *engine.Dataset {
				return queue(b).Do(noop).SetMaxIter(1).CloseOnNode0(comqueue.OutputBatches(arrowrows.Schema(schema),
					func(_ *comqueue.ComContext, emit func(engine.Batch) error) error { return emit(engine.Batch{}) })).Exec()
			},
			[]string{"gives a zero Batch"},
		},
		"report of another subtask's shard": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(func(ctx *comqueue.ComContext) error { ctx.ReportSum("r", 5, 1); return nil }))
			},
			[]string{`report "r" of shard 5`, " owns shards "},
		},
		"report with two folds": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(func(ctx *comqueue.ComContext) error {
					if lo := ctx.Shards().Lo; lo < 8 {
						ctx.ReportSum("r", lo, 1)
					} else {
						ctx.ReportMax("r", lo, 1)
					}
					return nil
				}))
			},
			[]string{`report "r": both ReportSum and ReportMax`},
		},
		"report of the subtask and of shards": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Add(comqueue.Named("both", comqueue.Do(func(ctx *comqueue.ComContext) error {
					ctx.Report("r", 1)
					ctx.ReportSum("r", ctx.Shards().Lo, 1)
					return nil
				}))))
			},
			[]string{`"both"`, `report "r": both Report and ReportSum are used under this name in superstep 1`},
		},
		"report of shards and of the subtask": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Add(comqueue.Named("both", comqueue.Do(func(ctx *comqueue.ComContext) error {
					ctx.ReportMax("r", ctx.Shards().Lo, 1)
					ctx.Report("r", 1)
					return nil
				}))))
			},
			[]string{`"both"`, `report "r": both Report and ReportMax are used under this name in superstep 1`},
		},
		"report of the subtask, and of shards on others": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(func(ctx *comqueue.ComContext) error {
					if ctx.Shards().Lo > 0 && ctx.StepNo() == 1 {
						ctx.ReportSum("r", ctx.Shards().Lo, 1)
					}
					if ctx.StepNo() == 1 {
						ctx.Report("r", 1)
					}
					return nil
				}))
			},
			[]string{`report "r": both Report and ReportSum are used under this name in superstep 1`},
		},
		"report of shards, and of the subtask when closing": {
			func(b *engine.Builder) *engine.Dataset {
				return queue(b).Do(func(ctx *comqueue.ComContext) error { ctx.ReportSum("r", ctx.Shards().Lo, 1); return nil }).
					SetMaxIter(3).CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { ctx.Report("r", 1); return nil, nil })).Exec()
			},
			[]string{`report "r": both Report and ReportSum are used under this name in superstep 3`},
		},
		"report when closing": {
			func(b *engine.Builder) *engine.Dataset {
				return queue(b).Do(noop).SetMaxIter(1).CloseWith(comqueue.ShardOutput(
					func(ctx *comqueue.ComContext, shard int) ([]row, error) {
						ctx.ReportSum("r", shard, 1)
						return nil, nil
					})).Exec()
			},
			[]string{`report "r": values of shards are reported from the stages`},
		},
		"report twice": {
			func(b *engine.Builder) *engine.Dataset {
				return closed(queue(b).Do(func(ctx *comqueue.ComContext) error {
					ctx.ReportSum("r", ctx.Shards().Lo, 1)
					ctx.ReportSum("r", ctx.Shards().Lo, 1)
					return nil
				}))
			},
			[]string{`report "r"`, "at most once"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, c.build, engine.Parallelism(4), engine.Shards(16))
			require.Error(t, err)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// TestDatasetsOfAnotherBuild requires that a queue refuses inputs that the job's function kept
// from an earlier build, and that a queue kept from an earlier build is refused.
func TestDatasetsOfAnotherBuild(t *testing.T) {
	finish := func(q *comqueue.IterativeComQueue) *engine.Dataset {
		return q.Do(func(*comqueue.ComContext) error { return nil }).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}
	for name, c := range map[string]struct {
		build func(b *engine.Builder, kept *engine.Dataset) *engine.Dataset
		want  string
	}{
		"partitioned": {func(b *engine.Builder, kept *engine.Dataset) *engine.Dataset {
			return finish(comqueue.New(b, "q").InitWithPartitionedData(data, kept))
		}, `failures_test\.go:\d+: queue "q": the dataset for "data" belongs to another job or to an earlier build of this one; a job function must not keep datasets between calls`},
		"broadcast": {func(b *engine.Builder, kept *engine.Dataset) *engine.Dataset {
			return finish(comqueue.New(b, "q").InitWithPartitionedData(data, dataset(b, 3, nil)).InitWithBroadcastData(comqueue.BroadcastRows("side"), kept))
		}, `failures_test\.go:\d+: queue "q": the dataset for "side" belongs to another job`},
		"builder": {func(_ *engine.Builder, kept *engine.Dataset) *engine.Dataset {
			return finish(comqueue.New(kept.Builder(), "q"))
		}, `failures_test\.go:\d+: queue "q": the builder belongs to another job or to an earlier build of this one`},
		"queue": {func(_ *engine.Builder, kept *engine.Dataset) *engine.Dataset {
			return finish(keptQueue)
		}, `failures_test\.go:\d+: queue "q": the builder belongs to another job or to an earlier build of this one`},
	} {
		t.Run(name, func(t *testing.T) {
			var kept *engine.Dataset
			_, err := engine.BuildGraph(engine.Anonymous(func(b *engine.Builder) error {
				own := dataset(b, 3, nil)
				if kept == nil {
					kept, keptQueue = own, comqueue.New(b, "q")
				} else {
					c.build(b, kept)
				}
				engine.Collect(own, "out")
				return nil
			}), struct{}{})
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
		})
	}
}

// keptQueue is the queue that a job's function kept from an earlier build.
var keptQueue *comqueue.IterativeComQueue

// rowSchema returns the schema of a dataset of rows.
func rowSchema(b *engine.Builder) engine.Schema { return operators.FromSlice(b, []row{{1}}).Schema() }

// emitted ends a queue. give emits the rows of a shard, in every subtask or, if once is true, for
// all shards on subtask 0.
func emitted(b *engine.Builder, q *comqueue.IterativeComQueue, once bool, give func(ctx *comqueue.ComContext, shard int, emit func(engine.Batch) error) error) *engine.Dataset {
	if !once {
		return q.CloseWith(comqueue.ShardOutputBatches(rowSchema(b), give)).Exec()
	}
	return q.CloseOnNode0(comqueue.OutputBatches(rowSchema(b), func(ctx *comqueue.ComContext, emit func(engine.Batch) error) error {
		return ctx.ForShards(func(shard int) error { return give(ctx, shard, emit) })
	})).Exec()
}

// TestFirstFailureOfACloseStays requires that the failure of a later shard, which comes after
// the run has ended, does not replace the first failure. Functions of further shards must not
// be called.
func TestFirstFailureOfACloseStays(t *testing.T) {
	for _, budget := range []int64{0, 64 << 10} {
		var late atomic.Int32
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			q := comqueue.New(b, "first").InitWithPartitionedData(data, dataset(b, 1<<17, func(i int) float64 { return 1 })).Do(idle).SetMaxIter(1)
			return q.CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
				switch shard {
				case 0:
					return nil, errors.New("the first failure")
				case 2:
					<-ctx.Context().Done()
					return nil, nil
				}
				late.Add(1)
				return nil, fmt.Errorf("a later failure in shard %d", shard)
			})).Exec()
		}, engine.Parallelism(2), engine.Shards(4), engine.MemoryBudget(budget))
		require.ErrorContains(t, err, "shard 0: the first failure")
		require.Zero(t, late.Load())
	}
}

// TestPanicAfterLostRows requires that the first error of emit is reported if the close function
// ignores it and then panics.
func TestPanicAfterLostRows(t *testing.T) {
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		q := comqueue.New(b, "first").InitWithPartitionedData(data, dataset(b, 16, func(i int) float64 { return 1 })).Do(idle).SetMaxIter(1)
		return emitted(b, q, true, func(_ *comqueue.ComContext, _ int, emit func(engine.Batch) error) error {
			_ = emit(engine.Batch{})
			panic("later")
		})
	}, engine.Parallelism(1), engine.Shards(4))
	require.ErrorContains(t, err, "the queue gives a zero Batch")
	require.NotContains(t, err.Error(), "later")
}

// TestLostRowsFailTheJob requires that the job fails with the first error of emit, whatever the
// close function returns, and however much of the rows is in files.
func TestLostRowsFailTheJob(t *testing.T) {
	boom := errors.New("boom")
	for _, budget := range []int64{0, 64 << 10} {
		for _, once := range []bool{false, true} {
			for _, returned := range []error{nil, boom} {
				_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
					q := comqueue.New(b, "first").InitWithPartitionedData(data, dataset(b, 1<<17, func(i int) float64 { return 1 })).Do(idle).SetMaxIter(1)
					return emitted(b, q, once, func(ctx *comqueue.ComContext, shard int, emit func(engine.Batch) error) error {
						first := emit(engine.Batch{})
						assert.ErrorContains(t, first, "the queue gives a zero Batch")
						assert.Equal(t, first, emit(data.Get(ctx, shard).Batch()))
						return returned
					})
				}, engine.Parallelism(1), engine.Shards(4), engine.BatchRows(64), engine.MemoryBudget(budget))
				require.ErrorContains(t, err, "the queue gives a zero Batch")
				if returned != nil {
					require.ErrorContains(t, err, "; the function failed with: boom")
				}
			}
		}
	}
}
