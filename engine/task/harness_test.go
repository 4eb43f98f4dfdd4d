package task

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/shared/sharding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testGraph is a graph that parseGraph has read from text, which has one node per line:
//
//	name = op input... attr=value...
//
// An input is the name of an earlier node, followed by a partitioner: a, a/hash, a/rebalance,
// a/custom, a/range, or a/side for a side input. The rows of every operator have two columns, k
// (int64) and t (utf8).
type testGraph struct {
	*plan.Graph
	names map[string]plan.NodeID
}

func (g *testGraph) attr(n *plan.Node, key string, otherwise int) int {
	for _, a := range n.Attrs {
		if a.Key == key {
			v, err := strconv.Atoi(a.Value)
			if err != nil {
				panic(err)
			}
			return v
		}
	}
	return otherwise
}

func parseGraph(shards int, text string) *testGraph {
	g := &testGraph{
		Graph: &plan.Graph{Job: "test", Shards: shards, Seed: 7},
		names: make(map[string]plan.NodeID),
	}
	columns := []plan.Column{{Name: "k", Type: "int64"}, {Name: "t", Type: "utf8"}}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.Fields(line)
		n := plan.Node{ID: plan.NodeID(len(g.Nodes)), Name: fields[0], Op: fields[2], Site: fmt.Sprintf("test.txt:%d", i+1), Schema: columns}
		for _, word := range fields[3:] {
			if key, value, ok := strings.Cut(word, "="); ok {
				n.Attrs = append(n.Attrs, plan.Attr{Key: key, Value: value})
				continue
			}
			from, how, _ := strings.Cut(word, "/")
			id, known := g.names[from]
			if !known {
				panic(fmt.Sprintf("line %d: no node %q", i+1, from))
			}
			in := plan.Input{From: id}
			switch how {
			case "", "forward":
			case "side":
				in.Partitioner, in.Role = plan.Broadcast, plan.Side
			case "hash":
				in.Partitioner, in.Keys = plan.Hash, []string{"k"}
			case "range":
				in.Partitioner, in.Keys = plan.Range, []string{"k"}
			case "custom":
				in.Partitioner, in.Func = plan.Custom, "main.sevenfold main.go:12"
			case "rebalance":
				in.Partitioner = plan.Rebalance
			default:
				panic(how)
			}
			n.Inputs = append(n.Inputs, in)
		}
		n.Single = g.attr(&n, "single", 0) == 1
		if n.Op == "tap" {
			n.Sink, n.Schema = true, nil
		}
		g.names[fields[0]] = n.ID
		g.Nodes = append(g.Nodes, n)
	}
	return g
}

// row is a row of the tests.
type row struct {
	k int64
	t string
}

var rowSchema = arrow.NewSchema([]arrow.Field{
	{Name: "k", Type: arrow.PrimitiveTypes.Int64},
	{Name: "t", Type: arrow.BinaryTypes.String},
}, nil)

func makeRows(mem memory.Allocator, rows []row) arrow.Record {
	b := array.NewRecordBuilder(mem, rowSchema)
	defer b.Release()
	for _, r := range rows {
		b.Field(0).(*array.Int64Builder).Append(r.k)
		b.Field(1).(*array.StringBuilder).Append(r.t)
	}
	return b.NewRecord()
}

func readRows(rec arrow.Record) []row {
	rows := make([]row, rec.NumRows())
	k, t := rec.Column(0).(*array.Int64), rec.Column(1).(*array.String)
	for i := range rows {
		rows[i] = row{k.Value(i), strings.Clone(t.Value(i))}
	}
	return rows
}

// emitRows emits rows in batches of c.BatchRows rows.
func emitRows(c *Context, out Output, shard int, rows []row) error {
	for part := range slices.Chunk(rows, max(c.BatchRows, 1)) {
		rec := makeRows(c.Allocator, part)
		err := out.Emit(shard, arrowrows.Batch(rec))
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// sourceRows returns the rows of one shard of a testSource with about n rows. Shards have
// different lengths, and some are empty.
func sourceRows(n, shards, shard int) []row {
	if shard%5 == 3 {
		return nil
	}
	r := sharding.Split(n, shards, shard)
	rows := make([]row, 0, r.Len())
	for i := r.Lo; i < r.Hi; i++ {
		k := int64(i*7919%1009 - 300)
		rows = append(rows, row{k, strings.Repeat("x", i%4) + strconv.Itoa(i)})
	}
	return rows
}

// hooks holds operators and functions with which a test replaces those of a graph.
type hooks struct {
	operators map[string]func() Operator // by the node's op
	sources   map[string]func() Source
	partition Partition
	sinks     map[string]Sink // by the node's name
	loops     map[string]OpenLoops
}

// bindings returns the bindings of a graph: the bindings in h where it has some, and otherwise
// testSource and testOperator.
func (g *testGraph) bindings(h hooks) Bindings {
	b := Bindings{
		Sources: map[plan.NodeID]func() Source{}, Operators: map[plan.NodeID]func() Operator{},
		Partitions: map[Port]Partition{}, Sinks: map[plan.NodeID]Sink{}, Loops: h.loops,
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for port, in := range n.Inputs {
			place := sevenfold
			if in.Partitioner == plan.Range {
				place = byRange
			}
			if h.partition != nil {
				place = h.partition
			}
			if in.Partitioner == plan.Range || in.Partitioner == plan.Custom {
				b.Partitions[Port{n.ID, port}] = place
			}
		}
		if s := h.sinks[n.Name]; s != nil {
			b.Sinks[n.ID] = s
		}
		switch {
		case n.Queue != "":
		case h.sources[n.Op] != nil:
			b.Sources[n.ID] = h.sources[n.Op]
		case h.operators[n.Op] != nil:
			b.Operators[n.ID] = h.operators[n.Op]
		case n.Op == "source":
			rows := g.attr(n, "rows", 100)
			b.Sources[n.ID] = func() Source { return &testSource{rows: rows} }
		default:
			op := n.Op
			b.Operators[n.ID] = func() Operator { return &testOperator{op: op} }
		}
	}
	return b
}

func sevenfold(in columnar.Batch, _ int, _ int64, shards int, dst []int32) error {
	for i, k := range arrowrows.Record(in).Column(0).(*array.Int64).Int64Values() {
		dst[i] = int32(((k*7)%int64(shards) + int64(shards)) % int64(shards))
	}
	return nil
}

func byRange(in columnar.Batch, _ int, _ int64, shards int, dst []int32) error {
	for i, k := range arrowrows.Record(in).Column(0).(*array.Int64).Int64Values() {
		dst[i] = int32(min(max((k+300)/17, 0), int64(shards-1)))
	}
	return nil
}

type testSource struct{ rows int }

func (s *testSource) Open(*Context) error { return nil }
func (s *testSource) Close() error        { return nil }
func (s *testSource) ReadShard(c *Context, shard int, out Output) error {
	return emitRows(c, out, shard, sourceRows(s.rows, c.Shards, shard))
}

// testOperator implements the operators of testGraph except the source.
type testOperator struct {
	op     string
	side   int64
	last   []row
	count  int
	number int64
}

// sideDigest returns a number that depends on the order of a side input's rows.
func sideDigest(rows []row) int64 {
	d := int64(len(rows))
	for _, r := range rows {
		d = d*31 + r.k + int64(len(r.t))
	}
	return d % 1000
}

func (o *testOperator) Open(c *Context) error {
	for port, in := range c.Node.Inputs {
		if in.Role == plan.Side {
			var rows []row
			for _, rec := range c.Side(port) {
				rows = append(rows, readRows(arrowrows.Record(rec))...)
			}
			o.side += sideDigest(rows)
		}
	}
	return nil
}

func (o *testOperator) Process(c *Context, port, shard int, in columnar.Batch, out Output) error {
	rows := arrowrows.Record(in)
	c.Count("seen", rows.NumRows())
	var next []row
	for _, r := range readRows(rows) {
		o.number++
		switch o.op {
		case "map":
			next = append(next, row{r.k*3 + 1, r.t})
		case "filter":
			if r.k%3 != 0 {
				next = append(next, r)
			}
		case "twice":
			next = append(next, r, row{r.k + 1, r.t + "'"})
		case "union":
			next = append(next, row{r.k, r.t + strconv.Itoa(port)})
		case "addside":
			next = append(next, row{r.k + o.side, r.t})
		case "number": // number of the row in the shard
			next = append(next, row{o.number, r.t})
		case "last":
			o.last = append(o.last[:0], r)
			o.count++
		case "tap":
			next = append(next, r)
			c.Accumulate("sum", shard, float64(r.k)*1.1)
		default:
			return fmt.Errorf("unknown operator %s", o.op)
		}
	}
	if o.op == "tap" {
		rec := makeRows(c.Allocator, next)
		defer rec.Release()
		return c.Collect(shard, arrowrows.Batch(rec))
	}
	if len(next) == 0 {
		return nil
	}
	rec := makeRows(c.Allocator, next)
	defer rec.Release()
	return out.Emit(shard, arrowrows.Batch(rec))
}

func (o *testOperator) EndShard(c *Context, shard int, out Output) error {
	o.number = 0
	if o.op != "last" {
		return nil
	}
	rows := append(o.last, row{int64(o.count), "rows of " + strconv.Itoa(shard)})
	o.last, o.count = nil, 0
	return emitRows(c, out, shard, rows)
}

func (o *testOperator) Finish(*Context, Output) error { return nil }
func (o *testOperator) Close() error                  { return nil }

// taps collects rows per node and shard.
type taps struct {
	mu   sync.Mutex
	rows map[plan.NodeID]map[int][]row
}

func (t *taps) Collect(node plan.NodeID, shard int, in columnar.Batch) error {
	rec := arrowrows.Record(in)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = make(map[plan.NodeID]map[int][]row)
	}
	if t.rows[node] == nil {
		t.rows[node] = make(map[int][]row)
	}
	t.rows[node][shard] = append(t.rows[node][shard], readRows(rec)...)
	return nil
}

// result is the result of a run of a test graph.
type result struct {
	taps   map[plan.NodeID]map[int][]row
	report *Report
	err    error
}

// run runs a graph with a checked allocator and an empty spill directory. It verifies that
// neither memory nor files are left.
func (g *testGraph) run(t testing.TB, ctx context.Context, p int, env Env, h hooks) result {
	t.Helper()
	compiled, err := plan.Compile(g.Graph, p)
	require.NoError(t, err)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	taps := &taps{}
	env.Allocator, env.Collector = mem, taps
	if env.SpillDir == "" {
		env.SpillDir = t.TempDir()
	}
	var r result
	defer overdue.Watch("a run to end")()
	r.report, r.err = Run(ctx, compiled, g.Graph, g.bindings(h), env)
	r.taps = taps.rows
	left, err := os.ReadDir(env.SpillDir)
	require.NoError(t, err)
	require.Empty(t, left, "the spill directory must be empty after a run")
	return r
}

// reference computes the expected result of a graph without the engine. For each node, in order,
// it computes all rows of all shards.
func (g *testGraph) reference() map[plan.NodeID]map[int][]row {
	data := make([][][]row, len(g.Nodes)) // node, shard
	tapped := make(map[plan.NodeID]map[int][]row)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		data[i] = make([][]row, g.Shards)
		var inputs [][][]row
		side := int64(0)
		for _, in := range n.Inputs {
			if in.Role == plan.Side {
				side += sideDigest(slices.Concat(data[in.From]...))
				inputs = append(inputs, nil)
				continue
			}
			inputs = append(inputs, exchange(in.Partitioner, data[in.From]))
		}
		for shard := range g.Shards {
			if n.Op == "source" {
				data[i][shard] = sourceRows(g.attr(n, "rows", 100), g.Shards, shard)
			}
			var seen []row
			for port, in := range inputs {
				if in == nil {
					continue
				}
				for _, r := range in[shard] {
					if n.Op == "union" {
						r.t += strconv.Itoa(port)
					}
					seen = append(seen, r)
				}
			}
			data[i][shard] = append(data[i][shard], applyReference(n.Op, seen, side, shard)...)
			if n.Op == "tap" && len(seen) > 0 {
				if tapped[n.ID] == nil {
					tapped[n.ID] = make(map[int][]row)
				}
				tapped[n.ID][shard] = seen
			}
		}
	}
	return tapped
}

func applyReference(op string, rows []row, side int64, shard int) (out []row) {
	for i, r := range rows {
		switch op {
		case "map":
			out = append(out, row{r.k*3 + 1, r.t})
		case "filter":
			if r.k%3 != 0 {
				out = append(out, r)
			}
		case "twice":
			out = append(out, r, row{r.k + 1, r.t + "'"})
		case "union":
			out = append(out, r)
		case "addside":
			out = append(out, row{r.k + side, r.t})
		case "number":
			out = append(out, row{int64(i + 1), r.t})
		}
	}
	if op == "last" {
		if len(rows) > 0 {
			out = append(out, rows[len(rows)-1])
		}
		out = append(out, row{int64(len(rows)), "rows of " + strconv.Itoa(shard)})
	}
	return out
}

// exchange returns the rows that an exchange of the reference delivers, by destination shard.
func exchange(how plan.Partitioner, from [][]row) [][]row {
	if how == plan.Forward {
		return from
	}
	to := make([][]row, len(from))
	for s, rows := range from {
		for j, r := range rows {
			d := 0
			switch how {
			case plan.Rebalance:
				d = (s + j) % len(from)
			case plan.Hash:
				d = int(referenceHash(r.k) % uint64(len(from)))
			case plan.Custom:
				d = int(((r.k*7)%int64(len(from)) + int64(len(from))) % int64(len(from)))
			case plan.Range:
				d = int(min(max((r.k+300)/17, 0), int64(len(from)-1)))
			}
			to[d] = append(to[d], r)
		}
	}
	return to
}
