package runtime

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// partitionByKey is the partition function of the benchmarks, for the keys that someRows makes.
func partitionByKey(in engine.Batch, _ int, _ int64, shards int, dst []int32) error {
	rows := arrowrows.Record(in)
	for i, key := range rows.Column(0).(*array.Int64).Int64Values() {
		dst[i] = int32(key % int64(shards))
	}
	return nil
}

// cuts is a partition function that assigns ranges of keys to partitions, as a partitioning by
// sampled quantiles would.
func cuts(in engine.Batch, _ int, _ int64, shards int, dst []int32) error {
	rows := arrowrows.Record(in)
	const largest = 7919 * batchRows
	for i, key := range rows.Column(0).(*array.Int64).Int64Values() {
		dst[i] = int32(key * int64(shards) / largest)
	}
	return nil
}

// exchanges are the ways in which rows reach the next operator. moves is true if rows move to
// other shards and are therefore copied.
var exchanges = []struct {
	name  string
	moves bool
	add   func(d *engine.Dataset) *engine.Dataset
}{
	// Operators with a second input are not chained.
	{"forward", false, func(d *engine.Dataset) *engine.Dataset {
		none := d.Builder().Add(engine.Spec{Op: "NoRows", Schema: d.Schema(), Source: func() engine.Source { return noRows{} }})
		return through(d, false, engine.Port{From: d}, engine.Port{From: none})
	}},
	{"gather", false, func(d *engine.Dataset) *engine.Dataset { return through(d, true, engine.Port{From: d}) }},
	{"rebalance", true, func(d *engine.Dataset) *engine.Dataset {
		return through(d, false, engine.Port{From: d, Partitioner: engine.Rebalance})
	}},
	{"hash", true, func(d *engine.Dataset) *engine.Dataset {
		return through(d, false, engine.Port{From: d, Partitioner: engine.Hash, Keys: []string{"key"}})
	}},
	{"range", true, func(d *engine.Dataset) *engine.Dataset {
		return through(d, false, engine.Port{From: d, Partitioner: engine.Range, Keys: []string{"key"}, Partition: cuts})
	}},
	{"custom", true, func(d *engine.Dataset) *engine.Dataset {
		return through(d, false, engine.Port{From: d, Partitioner: engine.Custom, Partition: partitionByKey})
	}},
}

// through adds an operator that emits the rows that its inputs receive.
func through(d *engine.Dataset, single bool, ports ...engine.Port) *engine.Dataset {
	return d.Builder().Add(engine.Spec{Op: "Pass", Schema: d.Schema(), Inputs: ports, Single: single,
		Operator: func() engine.Operator { return pass{} }})
}

// BenchmarkExchange moves rows through each exchange, from sources that cost almost nothing.
// For exchanges that move rows to other shards, the yardstick is one goroutine that appends the
// same rows, as structs, to one slice for each destination, and then reads the slices. For
// other exchanges there is no yardstick, as they pass batches by reference.
func BenchmarkExchange(b *testing.B) {
	rec, rows := someRows()
	for _, x := range exchanges {
		batches := 160
		if x.moves {
			batches = 16
		}
		total := int64(shardCount * batches * batchRows)
		for _, parallelism := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/p=%d", x.name, parallelism), func(b *testing.B) {
				var p pairs
				for b.Loop() {
					took := measureRun(b, total, func(eb *engine.Builder) {
						drop(x.add(ready(eb, rec, batches, 0)))
					}, engine.Parallelism(parallelism))
					if x.moves {
						p.add(took, since(func() { appendByHand(rows, shardCount*batches) }))
					} else {
						p.took = append(p.took, took)
					}
				}
				p.report(b, total, "by-hand")
			})
		}
	}
}

// appendByHand partitions the rows the given number of times, and sums the values that it reads
// from the slices.
func appendByHand(rows []row, times int) {
	var parts [shardCount][]row
	for range times {
		for _, r := range rows {
			s := r.Key % shardCount
			parts[s] = append(parts[s], r)
		}
	}
	var sum int64
	for _, part := range parts {
		for _, r := range part {
			sum += r.Key
		}
	}
	sink.Store(uint64(sum))
}

// reader is an operator that reads its whole side input before its main input.
type reader struct{ pass }

func (reader) Open(c *engine.Context) error {
	for _, rows := range c.Side(1) {
		c.Count(droppedRows, int64(rows.Len()))
	}
	return nil
}

// BenchmarkBroadcast passes all rows to an operator as a broadcast variable. Every subtask
// reads every row, and all subtasks share one copy.
func BenchmarkBroadcast(b *testing.B) {
	rec, _ := someRows()
	const batches = 16
	const total = int64(shardCount * batches * batchRows)
	for _, parallelism := range []int{1, 2} {
		b.Run(fmt.Sprintf("p=%d", parallelism), func(b *testing.B) {
			var p pairs
			for b.Loop() {
				took := measureRun(b, total*int64(parallelism), func(eb *engine.Builder) {
					none := eb.Add(engine.Spec{Op: "NoRows", Schema: arrowrows.Schema(rowSchema), Source: func() engine.Source { return noRows{} }})
					drop(eb.Add(engine.Spec{Op: "Reader", Schema: arrowrows.Schema(rowSchema), Operator: func() engine.Operator { return reader{} },
						Inputs: []engine.Port{{From: none}, {From: ready(eb, rec, batches, 0), Side: true}}}))
				}, engine.Parallelism(parallelism))
				p.took = append(p.took, took)
			}
			p.report(b, total, "")
		})
	}
}

// BenchmarkScaling measures the speedup from parallelism 1 to 2 of a hash exchange after
// sources that take about 200 ns for each row. It also measures the speedup of the machine: the
// time of arithmetic on one goroutine, divided by the time of the same arithmetic on two
// goroutines. If the speedup of the job is below 1.6 although the speedup of the machine is 2,
// the exchange slows down its sources.
func BenchmarkScaling(b *testing.B) {
	rec, _ := someRows()
	const batches, work = 8, 160
	const total = int64(shardCount * batches * batchRows)
	run := func(b *testing.B, parallelism int) time.Duration {
		return measureRun(b, total, func(eb *engine.Builder) {
			d := ready(eb, rec, batches, work)
			drop(through(d, false, engine.Port{From: d, Partitioner: engine.Hash, Keys: []string{"key"}}))
		}, engine.Parallelism(parallelism))
	}
	b.Run("hash", func(b *testing.B) {
		var one, two []time.Duration
		var speedups, machine []float64
		for b.Loop() {
			t1, t2 := run(b, 1), run(b, 2)
			one, two = append(one, t1), append(two, t2)
			speedups = append(speedups, float64(t1)/float64(t2))
			machine = append(machine, float64(burnCPUOn(1, int(total)*work))/float64(burnCPUOn(2, int(total)*work)))
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(total)/median(one).Seconds()/1e6, "Mrows/s-p1")
		b.ReportMetric(float64(total)/median(two).Seconds()/1e6, "Mrows/s-p2")
		b.ReportMetric(median(speedups), "speedup")
		b.ReportMetric(median(machine), "speedup-machine")
	})
}

// burnCPUOn divides the given number of steps of burnCPU among goroutines, and returns the time
// that they take.
func burnCPUOn(goroutines, steps int) time.Duration {
	return since(func() {
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() { burnCPU(steps / goroutines) })
		}
		all.Wait()
	})
}
