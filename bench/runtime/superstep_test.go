package runtime

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared"
)

// noRows is a source of empty shards.
type noRows struct{}

func (noRows) Open(*engine.Context) error                          { return nil }
func (noRows) ReadShard(*engine.Context, int, engine.Output) error { return nil }
func (noRows) Close() error                                        { return nil }

var valueSchema = arrow.NewSchema([]arrow.Field{{Name: "value", Type: arrow.PrimitiveTypes.Float64}}, nil)

// queueRun is the cost of one run of a queue.
type queueRun struct {
	perStep time.Duration
	allocs  float64 // allocations per superstep, summed over all subtasks
}

// measureQueue runs a queue with the given stages for steps supersteps. It returns the mean
// time of a superstep in subtask 0, and the number of allocations per superstep. It computes
// the allocations from the heap statistics at the tenth and at the last superstep.
func measureQueue(b *testing.B, subtasks, steps int, stages func(q *comqueue.IterativeComQueue)) queueRun {
	b.Helper()
	var before, after runtime.MemStats
	job := engine.Anonymous(func(eb *engine.Builder) error {
		empty := eb.Add(engine.Spec{Op: "NoRows", Schema: arrowrows.Schema(valueSchema), Source: func() engine.Source { return noRows{} }})
		q := comqueue.New(eb, "bench").InitWithPartitionedData(comqueue.PartitionedRows("data"), empty)
		stages(q)
		q.SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) {
			switch ctx.StepNo() {
			case 10:
				runtime.ReadMemStats(&before)
			case steps:
				runtime.ReadMemStats(&after)
			}
			return false, nil
		})
		type none struct{ Value float64 }
		q.CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]none, error) { return nil, nil })).SetMaxIter(steps)
		engine.Collect(q.Exec(), "result")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(subtasks))
	if err != nil {
		b.Fatal(err)
	}
	defer result.Release()
	queue := result.Report.Queues[0]
	return queueRun{queue.Elapsed / time.Duration(queue.Supersteps), float64(after.Mallocs-before.Mallocs) / float64(max(steps-10, 1))}
}

// condBarrier is the simplest barrier: a mutex and a condition variable.
type condBarrier struct {
	mu      sync.Mutex
	cond    *sync.Cond
	waiting int
	phase   int
}

func (c *condBarrier) wait(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	phase := c.phase
	if c.waiting++; c.waiting == n {
		c.waiting = 0
		c.phase++
		c.cond.Broadcast()
		return
	}
	for phase == c.phase {
		c.cond.Wait()
	}
}

// measureBarrier returns the time of one round of a bare barrier of n goroutines.
func measureBarrier(n, rounds int) time.Duration {
	c := &condBarrier{}
	c.cond = sync.NewCond(&c.mu)
	var all sync.WaitGroup
	began := time.Now()
	for range n {
		all.Go(func() {
			for range rounds {
				c.wait(n)
			}
		})
	}
	all.Wait()
	return time.Since(began) / time.Duration(rounds)
}

// median returns the median of an odd number of values.
func median[T int64 | float64 | time.Duration](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkSuperstep compares the time of a superstep with the time of a bare barrier of the
// same number of goroutines. The superstep is empty, or has an AllReduce of the given number of
// values.
func BenchmarkSuperstep(b *testing.B) {
	buffer := shared.Scratch[[]float64]("buffer")
	for _, subtasks := range []int{1, 2, 4, 8} {
		for _, size := range []int{0, 8, 4096, 1_000_000} {
			name := fmt.Sprintf("subtasks=%d/allreduce=%d", subtasks, size)
			b.Run(name, func(b *testing.B) {
				stages := func(q *comqueue.IterativeComQueue) {
					q.Init(func(ctx *comqueue.ComContext) error {
						if size > 0 {
							buffer.Put(ctx, make([]float64, size))
						}
						return nil
					}).Do(func(*comqueue.ComContext) error { return nil })
					if size > 0 {
						q.Add(comqueue.AllReduce(buffer))
					}
				}
				var steps, barriers []time.Duration
				var ratios []float64
				allocs := 0.0
				for b.Loop() {
					n := max(20, min(20_000, 20_000_000/max(size, 1)))
					run, barrier := measureQueue(b, subtasks, n, stages), measureBarrier(subtasks, 20_000)
					steps, barriers = append(steps, run.perStep), append(barriers, barrier)
					ratios = append(ratios, float64(run.perStep)/float64(barrier))
					allocs = run.allocs
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(median(steps)), "ns/superstep")
				b.ReportMetric(float64(median(barriers)), "ns/barrier")
				b.ReportMetric(median(ratios), "ratio")
				b.ReportMetric(allocs, "allocs/superstep")
			})
		}
	}
}
