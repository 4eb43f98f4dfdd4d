package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/internal/transport/middlebox"
	"github.com/superstep-ml/superstep/internal/transport/remote"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// keepingLoop is a loop that keeps the rows of its shards for the next run.
type keepingLoop struct {
	*testLoop
	spec    GangSpec
	opened  func(shard int) error // called when a shard was read; nil if nothing is to be done
	records map[int]arrow.Record
}

// keeping returns an OpenLoops of keepingLoops that fail in a superstep, or never if step is 0.
func keeping(shards, step int, opened func(shard int) error) OpenLoops {
	return func(s GangSpec) (loops []Loop, err error) {
		gang := &testGang{}
		for t := s.Here.Lo; t < s.Here.Hi; t++ {
			b := &testLoop{gang: gang, last: t == s.Subtasks-1}
			b.stages = func(b *testLoop) []Stage {
				return []Stage{{Node: 3, Run: func() error {
					if err := b.comm.Barrier(b.context); err != nil || b.context.Subtask != 0 || b.steps != step {
						return err
					}
					return errEndsHere
				}}}
			}
			own := &keepingLoop{testLoop: b, spec: s, opened: opened, records: make(map[int]arrow.Record)}
			for shard := range shards {
				if s.Kept == nil || sharding.Owner(shards, s.Subtasks, shard) != t {
					continue
				}
				if rows, there := s.Kept(0, shard); there {
					own.records[shard] = arrowrows.Record(rows.Rows)
				}
			}
			loops = append(loops, own)
		}
		return loops, nil
	}
}

var errEndsHere = errors.New("it ends here")

func (b *keepingLoop) Open(c *Context, in Input, comm *collective.Comm) error {
	b.context, b.comm, b.rows = c, comm, make(map[int][]row)
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		if err := b.read(in, shard); err != nil {
			return err
		}
		b.rows[shard] = readRows(b.records[shard])
		if b.opened != nil {
			if err := b.opened(shard); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the rows of a shard, unless the process has kept them.
func (b *keepingLoop) read(in Input, shard int) (err error) {
	pieces := []arrow.Record{makeRows(b.context.Allocator, nil)}
	defer func() {
		for _, rows := range pieces {
			rows.Release()
		}
	}()
	if b.records[shard] != nil {
		return nil
	}
	for {
		rows, err := in.Next(0, shard)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		pieces = append(pieces, arrowrows.Record(rows))
	}
	b.records[shard], err = batch.Concat(b.context.Allocator, pieces)
	return err
}

func (b *keepingLoop) Close() error {
	for shard, rows := range b.records {
		if b.spec.Retain != nil {
			b.spec.Retain(0, shard, KeptRows{Rows: arrowrows.Batch(rows)})
		}
		rows.Release()
	}
	return nil
}

var _ Loop = (*keepingLoop)(nil)

// countedSource is a testSource that notes which shards it makes.
type countedSource struct {
	testSource
	made func(shard int)
}

func (s *countedSource) ReadShard(c *Context, shard int, out Output) error {
	if c.Node.ID != 0 {
		return emitRows(c, out, shard, sourceRows(10, c.Shards, shard))
	}
	s.made(shard)
	c.Count("shards", 1)
	c.Accumulate("made", shard, 1/float64(shard+3))
	return emitRows(c, out, shard, sourceRows(s.rows, c.Shards, shard))
}

// keptRuns are runs of a graph with a queue in the same processes.
type keptRuns struct {
	t    *testing.T
	g    *testGraph
	mem  *memory.CheckedAllocator
	kept []*Retained

	givers int // number of workers of the next run that only give what they have kept

	mu   sync.Mutex
	made []int // shards that the source has made in the last run
}

func newKeptRuns(t *testing.T, shards, processes int) *keptRuns {
	k := &keptRuns{t: t, g: queueGraph(shards, 3, false, plan.Compute), mem: memory.NewCheckedAllocator(memory.NewGoAllocator())}
	for range processes {
		k.kept = append(k.kept, NewRetained())
	}
	t.Cleanup(func() {
		for i := range k.kept {
			k.lose(i)
		}
		k.mem.AssertSize(t, 0)
	})
	return k
}

// lose replaces a process.
func (k *keptRuns) lose(i int) {
	require.NoError(k.t, k.kept[i].Close())
	k.kept[i] = NewRetained()
}

// run runs the graph with p subtasks on workers, in the first processes, and givers in the next ones. net
// connects them.
func (k *keptRuns) run(net *partsRun, p, workers int, loops OpenLoops) result {
	k.t.Helper()
	k.made = nil
	compiled, err := plan.Compile(k.g.Graph, p)
	require.NoError(k.t, err)
	taps, dir := &taps{}, k.t.TempDir()
	h := hooks{loops: map[string]OpenLoops{"q": loops}, sources: map[string]func() Source{"source": func() Source {
		return &countedSource{testSource{200}, func(shard int) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.made = append(k.made, shard)
		}}
	}}}
	defer overdue.Watch("a run of several workers to end")()
	slots := split(compiled, workers)
	for range k.givers {
		slots = append(slots, sharding.Range{Lo: compiled.Slots, Hi: compiled.Slots})
	}
	report, err := net.runParts(k.t.Context(), compiled, k.g.Graph, slots, func(worker int) (Bindings, Env, error) {
		return k.g.bindings(h), Env{SpillDir: dir, Collector: taps, Allocator: k.mem, Retained: k.kept[worker], BatchRows: 3}, nil
	})
	slices.Sort(k.made)
	return result{taps: taps.rows, report: report, err: err}
}

// inMemory returns a partsRun whose workers are connected by memory.
func inMemory() *partsRun {
	t := &partsRun{groups: make(map[string]*collective.LocalGroup)}
	mem := transport.NewMem(0)
	t.join = func(int) joinFunc { return t.joinLocal }
	t.network = func(int) (transport.Network, error) { return mem, nil }
	return t
}

// throughBox returns a partsRun whose workers send rows through a middlebox, over TCP. Their queues are
// connected by memory, so that the box has no other bytes.
func throughBox(t *testing.T, box *middlebox.Box, workers int) *partsRun {
	all, addresses := make([]*remote.Network, workers), make([]string, workers)
	parts := inMemory()
	for w := range all {
		port, err := peerlink.Listen(peerlink.Config{Job: "test", Secret: []byte("0123456789abcdef")})
		require.NoError(t, err)
		t.Cleanup(func() { port.Close() })
		fail := func(err error) {
			if parts.parts != nil && parts.parts[w] != nil {
				parts.parts[w].Fail(err)
			}
		}
		all[w], err = remote.New(remote.Config{Worker: w, Workers: workers, Attempt: 1, Port: port, Fail: fail, Detection: time.Second})
		require.NoError(t, err)
		addresses[w], err = box.Before(all[w].Address())
		require.NoError(t, err)
	}
	for _, n := range all {
		require.NoError(t, n.Connect(addresses))
	}
	parts.network = func(worker int) (transport.Network, error) { return all[worker], nil }
	return parts
}

// requireWhole requires that a run has the rows, counts and accumulators of a run that nothing disturbed.
func (k *keptRuns) requireWhole(got result, p int) {
	k.t.Helper()
	require.NoError(k.t, got.err)
	want := (&keptRuns{t: k.t, g: k.g, mem: k.mem, kept: []*Retained{nil}}).run(inMemory(), p, 1, keeping(k.g.Shards, 0, nil))
	require.NoError(k.t, want.err)
	require.Equal(k.t, want.taps, got.taps)
	require.Equal(k.t, want.report.Accumulators, got.report.Accumulators)
	require.Equal(k.t, countsOf(want.report), countsOf(got.report))
}

// countsOf returns the counts of all operators, summed over subtasks.
func countsOf(r *Report) map[string]int64 {
	counts := make(map[string]int64)
	for _, v := range r.Vertices {
		for _, s := range v.Subtasks {
			counts[fmt.Sprintf("vertex %d in", v.ID)] += s.RowsIn
			counts[fmt.Sprintf("vertex %d out", v.ID)] += s.RowsOut
			for _, o := range s.Operators {
				counts[fmt.Sprintf("node %d out", o.Node)] += o.RowsOut
				for _, c := range o.Counters {
					counts[fmt.Sprintf("node %d %s", o.Node, c.Name)] += c.Value
				}
			}
		}
	}
	return counts
}

// TestRowsMove requires that rows which a process has kept are not made again if another process owns
// their shards in the next run: if there are more processes or subtasks, or fewer subtasks, if processes
// only give rows, if all shards change their owners, if shards have no rows, if each subtask has one shard,
// and again and again.
func TestRowsMove(t *testing.T) {
	type shape struct{ p, workers, givers int }
	for _, over := range []string{"memory", "TCP"} {
		for _, c := range []struct {
			shards int
			runs   []shape
			swap   bool
		}{
			{16, []shape{{2, 2, 0}, {4, 4, 0}, {8, 4, 0}, {4, 4, 0}}, false},
			{16, []shape{{6, 3, 0}, {3, 3, 0}, {5, 3, 0}, {5, 5, 0}}, false},
			{16, []shape{{1, 1, 0}, {5, 5, 0}}, false},
			{16, []shape{{4, 4, 0}, {4, 4, 0}}, true},
			{2, []shape{{2, 2, 0}, {2, 2, 0}}, true},
			{16, []shape{{4, 4, 0}, {2, 2, 2}, {4, 4, 0}, {1, 1, 3}}, false},
			{16, []shape{{5, 5, 0}, {3, 1, 4}}, true},
			{1, []shape{{1, 1, 0}, {1, 1, 1}}, true},
		} {
			t.Run(fmt.Sprint(over, c), func(t *testing.T) {
				k := newKeptRuns(t, c.shards, 5)
				for i, s := range c.runs {
					net, loops := inMemory(), keeping(c.shards, 2, nil)
					if over == "TCP" {
						net = overTCP(t, s.workers+s.givers)
					}
					if i == len(c.runs)-1 {
						loops = keeping(c.shards, 0, nil)
					}
					k.givers = s.givers
					got := k.run(net, s.p, s.workers, loops)
					if i == 0 {
						require.Len(t, k.made, c.shards)
					} else {
						require.Empty(t, k.made, "run %d: all rows are there", i)
					}
					if i == len(c.runs)-1 {
						k.requireWhole(got, s.p)
					} else {
						require.ErrorIs(t, got.err, errEndsHere)
					}
					if c.swap {
						slices.Reverse(k.kept[:max(2, s.workers)])
					}
				}
			})
		}
	}
}

// TestRunsThatFailWhileRowsMove requires that a run which fails while rows move leaves all of them in one
// process or another, and that only the rows of a process that is lost are made again.
func TestRunsThatFailWhileRowsMove(t *testing.T) {
	const shards = 16
	last := func(p, shard int) bool {
		return sharding.Split(shards, p, sharding.Owner(shards, p, shard)).Hi == shard+1
	}
	for _, fails := range []int{4, 5, 7, 8, 11, 15} {
		for lost := -1; lost < 4; lost++ {
			t.Run(fmt.Sprint("at shard ", fails, ", worker lost ", lost), func(t *testing.T) {
				k := newKeptRuns(t, shards, 4)
				require.ErrorIs(t, k.run(inMemory(), 2, 2, keeping(16, 2, nil)).err, errEndsHere)
				got := k.run(inMemory(), 4, 4, keeping(16, 0, func(shard int) error {
					if shard == fails {
						return errEndsHere
					}
					return nil
				}))
				require.ErrorIs(t, got.err, errEndsHere)
				require.Empty(t, k.made)
				if lost >= 0 {
					k.lose(lost)
				}
				got = k.run(inMemory(), 4, 4, keeping(16, 0, nil))
				k.requireWhole(got, 4)
				for _, shard := range k.made {
					had := sharding.Owner(shards, 2, shard) == lost || sharding.Owner(shards, 4, shard) == lost
					require.True(t, had || lost >= 0 && last(4, shard), "shard %d was not lost", shard)
				}
			})
		}
	}
}

// TestDamageWhileRowsMove requires that a run in which rows are damaged on their way, or in which a
// connection ends, has the right rows or fails, and that the rows are then still in the processes. If the
// process that sent them is lost, they are made again.
func TestDamageWhileRowsMove(t *testing.T) {
	struck := 0
	for seed := range testsize.Of(60, 2000) {
		fault := middlebox.Draw(uint64(seed), 3, 9000)
		t.Run(fmt.Sprint(seed, " ", fault), func(t *testing.T) {
			k := newKeptRuns(t, 16, 4)
			require.ErrorIs(t, k.run(inMemory(), 2, 2, keeping(16, 2, nil)).err, errEndsHere)
			box := middlebox.New(fault)
			got := k.run(throughBox(t, box, 4), 4, 4, keeping(16, 2, nil))
			box.Close()
			require.Error(t, got.err)
			require.Empty(t, k.made)
			if box.Struck() && !errors.Is(got.err, errEndsHere) {
				struck++
			}
			if seed%2 == 0 {
				k.lose(0)
			}
			got = k.run(inMemory(), 4, 4, keeping(16, 0, nil))
			k.requireWhole(got, 4)
			if seed%2 != 0 {
				require.Empty(t, k.made, "%v", got.err)
			}
		})
	}
	require.Greater(t, struck, 5, "some faults end runs")
}

// TestWhoSendsRows compares the decision which worker sends the rows of a shard with its definition.
func TestWhoSendsRows(t *testing.T) {
	for seed := range testsize.Of(300, 20_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		shards := 1 << r.IntN(6)
		p := 1 + r.IntN(min(shards, 6))
		compiled, err := plan.Compile(queueGraph(shards, 3, false, plan.Compute).Graph, p)
		require.NoError(t, err)
		workers := 1 + r.IntN(p)
		hosts := (&Part{Slots: split(compiled, workers)}).hosts()
		held, has := make([]holding, workers), make([]map[int]bool, workers)
		for w := range held {
			has[w] = make(map[int]bool)
			for range r.IntN(2 * shards) {
				has[w][r.IntN(shards)] = true
			}
			if len(has[w]) > 0 {
				held[w].Rows = []heldRows{{Queue: "q", Shards: rangesOf(has[w])}}
			}
		}
		from, kept := movedRows(compiled, hosts, held)
		for shard := range shards {
			owner := hosts[sharding.Owner(shards, p, shard)]
			want := -1
			for w := range slices.Backward(has) {
				if has[w][shard] {
					want = w
				}
			}
			require.Equal(t, want >= 0, kept["q"][shard])
			if has[owner][shard] {
				want = -1
			}
			require.Equal(t, want, from["q"][shard], "seed %d, shard %d", seed, shard)
		}
	}
}

// TestWhoReportsShards requires that each shard that an operator has made before is reported by one worker:
// its owner if it is known what was counted for it.
func TestWhoReportsShards(t *testing.T) {
	compiled, err := plan.Compile(queueGraph(8, 3, false, plan.Compute).Graph, 2)
	require.NoError(t, err)
	counts := func(n int) []madeShard { return make([]madeShard, n) }
	b := newMadeBefore(compiled, []holding{
		{Made: []heldNode{{Node: 0, Shards: []sharding.Range{{Lo: 0, Hi: 2}, {Lo: 5, Hi: 6}}, Counts: []madeShard{{RowsIn: 1}, {RowsIn: 2}, {RowsIn: 3}}}}},
		{Made: []heldNode{{Node: 0, Shards: []sharding.Range{{Lo: 0, Hi: 5}}}, {Node: 1, Shards: []sharding.Range{{Lo: 1, Hi: 2}}, Counts: counts(1)}}},
		{},
	}, 2)
	for shard, want := range []int{7, 7, 1, 1, 1, 7, -1, -1} {
		require.Equal(t, want, b.reporter(0, shard, 7), "shard %d", shard)
		require.Equal(t, want >= 0, b.has(0, shard))
	}
	made, ok := b.counts(0, 5)
	require.True(t, ok)
	require.Equal(t, madeShard{RowsIn: 3}, made)
	_, ok = b.counts(0, 3)
	require.False(t, ok)
	require.False(t, b.has(2, 0))
}

// TestWordOfRowsIsChecked requires that word of rows that were not sent fails the run.
func TestWordOfRowsIsChecked(t *testing.T) {
	k := newKeptRuns(t, 16, 2)
	require.ErrorIs(t, k.run(inMemory(), 1, 1, keeping(16, 2, nil)).err, errEndsHere)
	net := inMemory()
	network, err := net.network(0)
	require.NoError(t, err)
	got := k.run(net, 2, 2, func(s GangSpec) ([]Loop, error) {
		if s.Here.Lo == 0 {
			edges, _ := queueInputs(net.parts[0].run.plan, "q")
			sender, err := network.Dial(transport.Address{Edge: edges[0], Inbox: transport.Taken})
			require.NoError(t, err)
			require.NoError(t, sender.Send(context.Background(), transport.Message{Shard: 0, To: -1, Last: true}))
		}
		return keeping(16, 0, nil)(s)
	})
	require.ErrorContains(t, got.err, "received word that it has the rows that worker 0 has kept, which was not due")
}
