package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// counting adds a queue over a dataset of numbers. Its counter begins with the number of rows
// of subtask 0, grows by 1 in each superstep and is emitted at the end. The queue stops when
// stop returns true.
func counting(d *Dataset, name string, most int, stop func(step int) (bool, error)) *Dataset {
	return d.Builder().AddQueue(QueueSpec{
		Name: name, MaxSupersteps: most, HasCriterion: stop != nil, CriterionFunc: stop,
		Inputs: []Port{{From: d}},
		Stages: []StageSpec{{Kind: StageCompute, Name: "add one", Func: counting}},
		Schema: arrowrows.Schema(numberSchema),
		Loop: func(nodes []NodeID) OpenLoops {
			return openEach(func() Loop { return &countingLoop{nodes: nodes, stop: stop} })
		},
	})
}

// openEach returns an OpenLoops that calls make for every subtask.
func openEach(make func() Loop) OpenLoops {
	return func(s GangSpec) (loops []Loop, err error) {
		for range s.Here.Len() {
			loops = append(loops, make())
		}
		return loops, nil
	}
}

type countingLoop struct {
	nodes []NodeID
	stop  func(step int) (bool, error)
	c     *Context
	count int64
}

func (b *countingLoop) Open(c *Context, in Input, _ *collective.Comm) error {
	b.c = c
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		for {
			rows, err := in.Next(0, shard)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			b.count += int64(rows.Len())
			rows.Release()
		}
	}
	return nil
}

func (b *countingLoop) Stages() []Stage {
	return []Stage{{Node: b.nodes[0], Run: func() error { b.count++; return nil }}}
}

func (b *countingLoop) Begin(int) error             { return nil }
func (b *countingLoop) Shard() int                  { return -1 }
func (b *countingLoop) Stop(step int) (bool, error) { return b.stop(step) }
func (b *countingLoop) Close() error                { return nil }
func (b *countingLoop) After(step int, _, _ bool) error {
	b.c.Report("count", step, float64(b.count))
	return nil
}

func (b *countingLoop) Cut(int) (CutPart, error) { return CutPart{}, errors.New("it counts on") }
func (b *countingLoop) Save() (CutPart, error)   { return CutPart{}, errors.New("it counts on") }

func (b *countingLoop) Finish(c *Context, out Output) error {
	if c.Subtask != 0 {
		return nil
	}
	rows := numberBatch(c.Allocator, 1, func(int) int64 { return b.count })
	defer rows.Release()
	return out.Emit(0, arrowrows.Batch(rows))
}

func TestQueueRuns(t *testing.T) {
	for _, test := range []struct {
		name       string
		most       int
		stop       func(int) (bool, error)
		supersteps int
	}{
		{"maximum", 5, nil, 5},
		{"criterion", 0, func(step int) (bool, error) { return step == 3, nil }, 3},
		{"criterion first", 5, func(step int) (bool, error) { return step == 3, nil }, 3},
		{"maximum first", 2, func(step int) (bool, error) { return step == 3, nil }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var last Progress
			r, err := Run(t.Context(), Anonymous(func(b *Builder) error {
				Collect(counting(numbers(b, 100), "count", test.most, test.stop), "count")
				return nil
			}), struct{}{}, Shards(4), Parallelism(1), checkedAllocator(t), OnProgress(func(p Progress) { last = p }))
			require.NoError(t, err)
			defer r.Release()
			rows, err := Rows[number](r, "count")
			require.NoError(t, err)
			require.Equal(t, []number{{100 + int64(test.supersteps)}}, rows)

			q := r.Queue("count")
			require.Equal(t, test.supersteps, q.Supersteps)
			series := r.Series("count", "count")
			require.Len(t, series, test.supersteps)
			require.Equal(t, 101.0, series[0])
			require.Contains(t, r.Summary(), fmt.Sprintf("queue count: %d superstep", test.supersteps))

			require.True(t, last.Done)
			require.Equal(t, []QueueProgress{{
				Name: "count", Superstep: test.supersteps, Max: test.most, Ended: true,
				Values: []Value{{Name: "count", Value: series[test.supersteps-1]}},
			}}, last.Queues)
			require.Equal(t, int64(100), last.Rows)
		})
	}
}

// idle is a queue's loop that does not read its input and only counts supersteps.
type idle struct{ countingLoop }

func (*idle) Open(*Context, Input, *collective.Comm) error { return nil }
func (*idle) Stages() []Stage                              { return nil }
func (b *idle) Begin(step int) error                       { b.count = int64(step); return nil }
func (*idle) After(int, bool, bool) error                  { return nil }
func (*idle) Cut(int) (CutPart, error)                     { return CutPart{}, nil }
func (*idle) Save() (CutPart, error)                       { return CutPart{}, nil }

func TestQueueWithoutInputsOrStages(t *testing.T) {
	for _, p := range []int{1, 3} {
		for _, stop := range []func(int) (bool, error){nil, func(step int) (bool, error) { return step == 3, nil }} {
			for _, fed := range []bool{false, true} {
				r, err := Run(t.Context(), Anonymous(func(b *Builder) error {
					spec := QueueSpec{
						Name: "q", MaxSupersteps: 5, HasCriterion: stop != nil, CriterionFunc: stop, Schema: arrowrows.Schema(numberSchema),
						Loop: func(nodes []NodeID) OpenLoops {
							require.Empty(t, nodes)
							return openEach(func() Loop { return &idle{countingLoop{stop: stop}} })
						},
					}
					if fed {
						spec.Inputs = []Port{{From: numbers(b, 100)}}
					}
					Collect(b.AddQueue(spec), "steps")
					return nil
				}), struct{}{}, Shards(4), Parallelism(p), checkedAllocator(t))
				require.NoError(t, err)
				rows, err := Rows[number](r, "steps")
				require.NoError(t, err)
				want := 5
				if stop != nil {
					want = 3
				}
				require.Equal(t, []number{{int64(want)}}, rows)
				require.Equal(t, want, r.Queue("q").Supersteps)
				r.Release()
			}
		}
	}
}

func TestQueueThatFails(t *testing.T) {
	broken := errors.New("no verdict")
	_, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		Collect(counting(numbers(b, 10), "count", 5, func(int) (bool, error) { return false, broken }), "x")
		return nil
	}), struct{}{}, Shards(4), checkedAllocator(t))
	require.ErrorIs(t, err, broken)
}

func TestQueuesOfOneName(t *testing.T) {
	g, err := BuildGraph(Anonymous(func(b *Builder) error {
		d := numbers(b, 1)
		for range 3 {
			counting(d, "count", 1, nil)
		}
		return nil
	}), struct{}{})
	require.NoError(t, err)
	require.Equal(t, []plan.Queue{{Name: "count", MaxSupersteps: 1}, {Name: "count-2", MaxSupersteps: 1}, {Name: "count-3", MaxSupersteps: 1}}, g.Queues)
}

// edges returns a line for each node of a graph, with the node's inputs.
func edges(g *plan.Graph) []string {
	var out []string
	for _, n := range g.Nodes {
		line := fmt.Sprintf("%d %s", n.ID, n.Op)
		if n.Name != "" {
			line += " " + n.Name
		}
		for _, in := range n.Inputs {
			line += fmt.Sprintf(" | %v %v %d", in.Role, in.Partitioner, in.From)
		}
		out = append(out, line)
	}
	return out
}

func TestQueueInTheGraph(t *testing.T) {
	var nodes []NodeID
	stop := func(int) (bool, error) { return true, nil }
	site := ""
	g, err := BuildGraph(Anonymous(func(b *Builder) error {
		d := numbers(b, 1)
		site = here(1)
		out := b.AddQueue(QueueSpec{
			Name: "q", MaxSupersteps: 9, HasCriterion: true, CriterionFunc: stop, CloseFunc: square,
			Inputs: []Port{{From: d}, {From: d, Side: true}},
			Stages: []StageSpec{
				{Kind: StageRepeatBegin},
				{Kind: StageCompute, Name: "try", Func: square, Funcs: []any{stop}},
				{Kind: StageSend, Name: "loss"}, {Kind: StageSum, Name: "loss", Order: RankTree}, {Kind: StageRecv, Name: "loss"},
				{Kind: StageRepeatEnd},
				{Kind: StageCompute, Name: "step", Attrs: []Attr{{Key: "rate", Value: "0.1"}}},
			},
			Schema: arrowrows.Schema(numberSchema),
			Loop:   func(n []NodeID) OpenLoops { nodes = n; return openEach(nil) },
		})
		require.Equal(t, NodeID(10), out.Node())
		require.True(t, out.Schema().Equal(arrowrows.Schema(numberSchema)))
		require.NotNil(t, b.bind.Loops["q"])
		return nil
	}), struct{}{})
	require.NoError(t, err)
	require.Equal(t, []string{
		"0 Numbers",
		"1 QueueInit | data forward 0 | side broadcast 0",
		"2 RepeatBegin | control forward 1 | feedback forward 7 | feedback forward 9",
		"3 Compute try | control forward 2",
		"4 AllReduceSend loss | control forward 3",
		"5 AllReduceSum loss | control by-subtask 4",
		"6 AllReduceRecv loss | control by-subtask 5",
		"7 RepeatEnd | control forward 6",
		"8 Compute step | control forward 7",
		"9 Criterion | control forward 8",
		"10 QueueClose | control forward 9",
	}, edges(g))
	require.Equal(t, []NodeID{2, 3, 4, 5, 6, 7, 8}, nodes)
	for _, n := range g.Nodes[1:] {
		require.Equal(t, "q", n.Queue)
		require.Equal(t, site, n.Site)
	}
	require.Equal(t, plan.RankTree, g.Nodes[5].Order)
	require.Equal(t, funcIdentity(square)+", "+funcIdentity(stop), g.Nodes[3].Func)
	require.Equal(t, funcIdentity(stop), g.Nodes[9].Func)
	require.Equal(t, funcIdentity(square), g.Nodes[10].Func)
	require.Equal(t, []plan.Attr{{Key: "rate", Value: "0.1"}}, g.Nodes[8].Attrs)
}

func TestMisusesOfQueues(t *testing.T) {
	kinds := func(ks ...StageKind) []StageSpec {
		var specs []StageSpec
		for _, k := range ks {
			specs = append(specs, StageSpec{Kind: k})
		}
		return specs
	}
	for _, test := range []struct {
		want  string
		spoil func(q *QueueSpec)
	}{
		{`queue "": the queue has no name`, func(q *QueueSpec) { q.Name = "" }},
		{`the maximum of supersteps is -1: want at least 1`, func(q *QueueSpec) { q.MaxSupersteps = -1 }},
		{`nothing ends the loop: set a maximum of supersteps or a criterion`, func(q *QueueSpec) { q.MaxSupersteps = 0 }},
		{`the dataset is nil`, func(q *QueueSpec) { q.Inputs = []Port{{}} }},
		{`the queue emits no rows: say how it closes`, func(q *QueueSpec) { q.Schema = Schema{} }},
		{`the queue has no loop`, func(q *QueueSpec) { q.Loop = nil }},
		{`two columns are named "n"`, func(q *QueueSpec) {
			q.Schema = arrowrows.Schema(arrow.NewSchema([]arrow.Field{numberSchema.Field(0), numberSchema.Field(0)}, nil))
		}},
		{`stage 2 sums what no stage before it sends`, func(q *QueueSpec) { q.Stages = kinds(StageCompute, StageSum) }},
		{`stage 1 receives what no stage before it sums`, func(q *QueueSpec) { q.Stages = kinds(StageRecv) }},
		{`stage 2 interrupts an AllReduce: want send, sum and receive in a row`, func(q *QueueSpec) { q.Stages = kinds(StageSend, StageCompute) }},
		{`stage 3 interrupts an AllReduce: want send, sum and receive in a row`, func(q *QueueSpec) { q.Stages = kinds(StageSend, StageSum, StageCompute) }},
		{`the last AllReduce lacks its receiving stage`, func(q *QueueSpec) { q.Stages = kinds(StageSend, StageSum) }},
		{`stage 2 interrupts an AllReduce: want send, sum and receive in a row`, func(q *QueueSpec) { q.Stages = []StageSpec{{Kind: StageSend}, {Kind: StageCommunicate, Op: "Barrier"}} }},
		{`stage 2 communicates, but does not say by which collective`, func(q *QueueSpec) { q.Stages = kinds(StageCompute, StageCommunicate) }},
		{`stage 1 ends an inner loop that was not begun`, func(q *QueueSpec) { q.Stages = kinds(StageRepeatEnd) }},
		{`stage 2 ends an inner loop without stages`, func(q *QueueSpec) { q.Stages = kinds(StageRepeatBegin, StageRepeatEnd) }},
		{`an inner loop is not ended`, func(q *QueueSpec) { q.Stages = kinds(StageRepeatBegin, StageCompute) }},
		{`stage 1 is of a kind that the engine adds itself`, func(q *QueueSpec) { q.Stages = kinds(plan.Criterion) }},
	} {
		site := ""
		got := buildFails(t, func(b *Builder) error {
			q := QueueSpec{
				Name: "q", MaxSupersteps: 1, Inputs: []Port{{From: numbers(b, 1)}}, Stages: kinds(StageCompute),
				Schema: arrowrows.Schema(numberSchema), Loop: func([]NodeID) OpenLoops { return openEach(nil) },
			}
			test.spoil(&q)
			site = here(1)
			out := b.AddQueue(q)
			require.True(t, out.Poisoned())
			require.True(t, counting(out, "next", 1, nil).Poisoned())
			return nil
		})
		require.Contains(t, got, "job: "+site+": queue ")
		require.Contains(t, got, test.want)
	}
}

// TestUnreadQueues requires that a queue whose rows nothing reads still runs, because it reports
// values, and is logged with its line. A queue that another queue or a result reads must not be
// logged.
func TestUnreadQueues(t *testing.T) {
	var said bytes.Buffer
	calls := 0
	result, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		rows := numbers(b, 3)
		counting(rows, "alone", 2, nil)
		counting(counting(rows, "first", 2, nil), "second", 2, nil)
		transform(counting(rows, "forgotten", 2, nil), "unread", func(_ *Context, n int64) (int64, error) { calls++; return n, nil })
		Collect(counting(rows, "read", 2, nil), "read")
		return nil
	}), struct{}{}, Logger(hclog.New(&hclog.LoggerOptions{Output: &said})))
	require.NoError(t, err)
	defer result.Release()
	require.Len(t, result.Series("alone", "count"), 2)
	require.Zero(t, calls)
	warned := regexp.MustCompile(`WARN\] +\w+_test.go:\d+: nobody reads the rows of (\w+ "\w+")`).FindAllStringSubmatch(said.String(), -1)
	var names []string
	for _, m := range warned {
		names = append(names, m[1])
	}
	require.ElementsMatch(t, []string{`queue "alone"`, `queue "second"`, `queue "forgotten"`, `Transform "unread"`}, names, said.String())
	require.Equal(t, 4, strings.Count(said.String(), "WARN"), said.String())
}
