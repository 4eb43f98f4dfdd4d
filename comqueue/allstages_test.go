package comqueue_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// These are the keys of a queue that uses all communicate functions.
var (
	centre    = shared.Replicated("centre", shared.Float64s())
	gradient  = shared.Scratch[[]float64]("gradient")
	histogram = shared.Scratch[[]float64]("histogram")
	block     = shared.Scratch[[]float64]("block")
	blocks    = shared.Replicated("blocks", shared.Float64s())
	onNode0   = shared.Scratch[[]float64]("on node 0")
	sketches  = shared.PerShard("sketches", shared.Msgpack[[]float64]())
	sketch    = shared.Replicated("sketch", shared.Msgpack[[]float64]())
	rowCounts = shared.Replicated("row counts", shared.Msgpack[map[string]int]())
	updates   = shared.PerShard("updates", shared.Msgpack[comqueue.SparseVector[float64]]())
	update    = shared.Replicated("update", shared.Msgpack[comqueue.SparseVector[float64]]())
	label     = shared.Replicated("label", shared.String())
)

const bins = 21

// smallest returns the 5 smallest values of both slices, in order. It overwrites left.
func smallest(left, right []float64) []float64 {
	left = append(left, right...)
	slices.Sort(left)
	return left[:min(5, len(left))]
}

// local puts the values that the shards and the subtask contribute.
func local(ctx *comqueue.ComContext) error {
	if ctx.StepNo() == 1 {
		gradient.Put(ctx, make([]float64, 4))
		histogram.Put(ctx, make([]float64, bins))
	}
	rows := map[string]int{}
	for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
		values := data.Get(ctx, shard).Floats("value")
		sketches.Put(ctx, shard, smallest(nil, values))
		v := comqueue.SparseVector[float64]{Length: 1000, Index: []int32{}}
		for i, x := range values {
			rows[fmt.Sprint(int(x)%3)]++
			v.Index, v.Value = append(v.Index, int32(100*i+shard)), append(v.Value, x*centre.Get(ctx)[0])
		}
		updates.Put(ctx, shard, v)
	}
	rowCounts.Put(ctx, rows)
	return nil
}

// everything adds a queue with all communicate functions. The functions are called at the
// beginning of the superstep, in an inner loop, and at the end.
func everything(b *engine.Builder) *engine.Dataset {
	value := func(i int) float64 { return float64(i%37-18) * pow2(i*29%70-35) }
	return comqueue.New(b, "everything").
		InitWithPartitionedData(data, dataset(b, 90, value)).
		Add(comqueue.Barrier()).
		Add(comqueue.Named("start", do(func(ctx *comqueue.ComContext) {
			if ctx.TaskID() == 0 {
				centre.Put(ctx, []float64{1 / float64(ctx.StepNo()), 2})
				label.Put(ctx, fmt.Sprint("step ", ctx.StepNo()))
			}
		}))).
		Add(comqueue.Broadcast(centre)).
		Add(comqueue.BroadcastObject(label, comqueue.Algorithm("binomial"))).
		Add(comqueue.Named("local", comqueue.Do(local))).
		Add(comqueue.Repeat(3, nil,
			comqueue.Named("descend", comqueue.ForEachShard(gradient, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				for i, v := range data.Get(ctx, shard).Floats("value") {
					out[i%4] += (v - centre.Get(ctx)[0]) / 3
				}
				return nil
			})),
			comqueue.AllReduce(gradient, comqueue.Algorithm("linear")),
			comqueue.Named("move", do(func(ctx *comqueue.ComContext) { centre.Get(ctx)[0] = gradient.Get(ctx)[1] / 90 })),
		)).
		Add(comqueue.Named("count", comqueue.ForEachShard(histogram, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			for i, v := range data.Get(ctx, shard).Floats("value") {
				out[(i*7+shard)%bins] += v * centre.Get(ctx)[0]
			}
			return nil
		}))).
		Add(comqueue.ReduceScatter(histogram, block)).
		Add(comqueue.AllGather(block, blocks, comqueue.Algorithm("ring"))).
		Add(comqueue.Gather(block, onNode0)).
		Add(comqueue.AllReduceShardObjects(sketches, sketch, smallest)).
		Add(comqueue.AllReduceObject(rowCounts, counts)).
		Add(comqueue.AllReduceShardSparse(updates, update)).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) (rows []row, err error) {
			out := slices.Concat(centre.Get(ctx), gradient.Get(ctx), blocks.Get(ctx), onNode0.Get(ctx), sketch.Get(ctx), expand(update.Get(ctx)))
			for _, word := range []string{"0", "1", "2", "-1", "-2"} {
				out = append(out, float64(rowCounts.Get(ctx)[word]))
			}
			out = append(out, float64(len(label.Get(ctx))))
			for _, v := range out {
				rows = append(rows, row{v})
			}
			return rows, nil
		})).
		SetMaxIter(4).
		Exec()
}

// TestQueueOfAllStagesHasTheSameBits runs a queue of all communicate functions at several
// parallelisms and requires the same bits. Counts and ones are added exactly, and all other
// values up the tree over shards.
func TestQueueOfAllStagesHasTheSameBits(t *testing.T) {
	var want []uint64
	for _, p := range append(parallelisms, 32) {
		for _, batch := range []int{1, 1024} {
			rows, result, err := run(t, everything, engine.Parallelism(p), engine.Shards(32), engine.BatchRows(batch), engine.CheckBroadcasts(true))
			require.NoError(t, err, "parallelism %d", p)
			var got []uint64
			for _, r := range rows {
				got = append(got, bits([]float64{r.Value})...)
			}
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, "parallelism %d, batches of %d", p, batch)
			require.Equal(t, 1, strings.Count(result.Plan.Text(), "depends on parallelism"), "only the result of whole objects is marked")
		}
	}
}

// hash matches the fingerprint of the graph, which depends on the source lines of functions.
var hash = regexp.MustCompile(`graph [0-9a-f]+…`)

func TestPlanOfAllStages(t *testing.T) {
	_, result, err := run(t, everything, engine.Parallelism(2), engine.Shards(32))
	require.NoError(t, err)
	got := hash.ReplaceAllString(result.Plan.Text(), "graph …")
	path := filepath.Join("testdata", "plan.txt")
	if os.Getenv("REWRITE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "the plan differs from testdata/plan.txt; REWRITE=1 writes the file again")
	// Every stage of the plan must have run, as many times as the plan says.
	shown := map[string]int64{}
	for _, n := range result.Graph.Nodes {
		if n.Stage.String() == "communicate" || strings.HasPrefix(n.Op, "AllReduce") {
			shown[fmt.Sprintf("%s %q", n.Op, n.Name)] += 4 * 2
			if n.Name == "gradient" {
				shown[fmt.Sprintf("%s %q", n.Op, n.Name)] += 4 * 2 * 2 // in the inner loop
			}
		}
	}
	require.Len(t, shown, 12)
	ran := map[string]int64{}
	for _, s := range result.Report.Queues[0].Stages {
		if s.Program != "" {
			name := s.Name
			if name == "Barrier" {
				name += ` ""`
			}
			ran[name] += s.Calls
		}
	}
	require.Equal(t, shown, ran)
}

func TestStagesCountWhatTheyMove(t *testing.T) {
	const p = 4
	part, all, node0 := shared.Scratch[[]float64]("part"), shared.Scratch[[]float64]("all"), shared.Scratch[[]float64]("node 0")
	model, sum := shared.Scratch[[]float32]("model"), shared.Scratch[[]float32]("sum")
	result, err := supersteps(t, p, 10,
		do(func(ctx *comqueue.ComContext) {
			part.Put(ctx, make([]float64, 10*ctx.TaskID()))
			model.Put(ctx, make([]float32, 100))
		}),
		comqueue.AllGather(part, all), comqueue.Gather(part, node0), comqueue.Broadcast(model), comqueue.ReduceScatter(model, sum), comqueue.Barrier())
	require.NoError(t, err)
	want := map[string]int64{ // per superstep, over all subtasks
		`AllGather "part"`:      8 * ((p-1)*(0+10+20+30) + (p-1)*p), // with the lengths of the blocks
		`Gather "part"`:         8 * (10 + 20 + 30 + (p-1)*p),
		`Broadcast "model"`:     (p - 1) * (4*100 + 8),
		`ReduceScatter "model"`: p * 4 * (100 - 25),
		"Barrier":               0,
	}
	for _, s := range result.Report.Queues[0].Stages {
		if n, ok := want[s.Name]; ok {
			require.Equal(t, 10*n, s.Bytes, s.Name)
			require.Equal(t, int64(10*p), s.Calls, s.Name)
			delete(want, s.Name)
		}
	}
	require.Empty(t, want)
}
