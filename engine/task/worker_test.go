package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// partSink is a JointSink that logs the calls of its methods. A call whose logged text begins
// with fail returns an error.
type partSink struct {
	mu     sync.Mutex
	events []string
	fail   string
	name   string
	log    *[]string // shared by several sinks, whose methods one goroutine calls
}

func (s *partSink) do(event string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
	if s.log != nil {
		*s.log = append(*s.log, s.name+" "+event)
	}
	if s.fail != "" && strings.HasPrefix(event, s.fail) {
		return errBoom
	}
	return nil
}

func (s *partSink) Begin() error  { return s.do("begin") }
func (s *partSink) Commit() error { return s.do("commit") }
func (s *partSink) Abort() error  { return s.do("abort") }
func (s *partSink) Join() error   { return s.do("join") }
func (s *partSink) Leave() error  { return s.do("leave") }

func (s *partSink) Written() ([]byte, error) {
	return fmt.Appendf(nil, "by %p", s), s.do("written")
}

func (s *partSink) Aside() string { return "aside" }

func (s *partSink) Complete(c Completion) error {
	event := fmt.Sprintf("complete %d parts", len(c.Written))
	if c.Resumed {
		event = "resume " + string(bytes.Join(c.Written, []byte("+")))
	}
	return s.do(event)
}

func (s *partSink) Decide() error   { return s.do("decide") }
func (s *partSink) Place() error    { return s.do("place") }
func (s *partSink) TakeBack() error { return s.do("take back") }
func (s *partSink) Finish()         { _ = s.do("finish") }
func (s *partSink) Settle() error   { return s.do("settle") }

// onlySink is a Sink that is not a JointSink.
type onlySink struct{ *partSink }

func (s onlySink) Join() {} // hides the Join that JointSink needs

// TestSinksOfParts requires that worker 0 begins and commits the sinks, and that other workers
// join them, and leave them when the run has ended. After a failure on any worker, worker 0 must
// abort the sinks.
func TestSinksOfParts(t *testing.T) {
	for _, test := range []struct {
		name             string
		worker           int // the worker whose sink fails
		fail             string
		first, one, only string // calls on worker 0, on worker 1, and of the onlySink on worker 0
		err              string
	}{
		{name: "well", first: "begin written complete 3 parts place finish settle", one: "join written", only: "begin commit"},
		{name: "begin", fail: "begin", first: "begin", one: "", only: "", err: `operator tap "c" (test.txt:3), begin: boom`},
		{name: "join", worker: 1, fail: "join", first: "begin abort", one: "join", only: "begin abort", err: `operator tap "c" (test.txt:3), begin: boom`},
		{name: "written", worker: 1, fail: "written", first: "begin", one: "join written leave", only: "begin abort", err: `operator tap "c" (test.txt:3), tell what was written: boom`},
		{name: "place", fail: "place", first: "begin written complete 3 parts place take back abort", one: "join written leave", only: "begin abort", err: `operator tap "c" (test.txt:3), commit: boom`},
		{name: "complete", fail: "complete", first: "begin written complete 3 parts take back abort", one: "join written leave", only: "begin abort", err: `operator tap "c" (test.txt:3), commit: boom`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := parseGraph(8, "a = source rows=400\nb = map a/hash\nc = tap b\nd = tap a")
			parts := []*partSink{{}, {}, {}}
			parts[test.worker].fail = test.fail
			only := []*partSink{{}, {}, {}}
			got := g.runParts(t, context.Background(), 4, 3, Env{}, func(worker int) hooks {
				return hooks{sinks: map[string]Sink{"c": parts[worker], "d": onlySink{only[worker]}}}
			})
			if test.err == "" {
				require.NoError(t, got.err)
			} else {
				require.ErrorContains(t, got.err, test.err)
			}
			first := strings.Join(parts[0].events, " ")
			if test.name == "written" { // worker 0 may or may not have finished when worker 1 fails
				require.True(t, strings.HasPrefix(first, "begin") && strings.HasSuffix(first, " abort"), first)
			} else {
				require.Equal(t, test.first, first)
			}
			one := strings.Join(parts[1].events, " ")
			if test.name == "well" {
				one = strings.TrimSuffix(one, " leave") // the sink leaves when the worker is closed
			}
			require.Equal(t, test.one, one)
			require.Equal(t, test.only, strings.Join(only[0].events, " "))
			require.Empty(t, only[1].events)
		})
	}
}

// TestWorkerRefuses requires that NewWorker refuses parts that do not match the plan and closes
// their network, and that methods called on the wrong worker or at the wrong time fail.
func TestWorkerRefuses(t *testing.T) {
	g := queueGraph(8, 3, false, plan.Compute)
	compiled, err := plan.Compile(g.Graph, 4)
	require.NoError(t, err)
	h := queueHooks(&testGang{loop: func(int) *testLoop { return &testLoop{} }})
	join := (&partsRun{}).joinLocal
	r := func(lo, hi int) sharding.Range { return sharding.Range{Lo: lo, Hi: hi} }
	for want, part := range map[string]Part{
		"worker 2 of 2":                               {Worker: 2, Slots: []sharding.Range{r(0, 2), r(2, 4)}, Join: join},
		"worker -1 of 1":                              {Worker: -1, Slots: []sharding.Range{r(0, 4)}},
		"worker 0 of 0":                               {},
		"worker 1 has the slots [2,2)":                {Slots: []sharding.Range{r(0, 2), r(2, 2), r(2, 4)}, Join: join},
		"have 2 slots together, and the plan needs 4": {Slots: []sharding.Range{r(0, 2), r(2, 2)}, Join: join},
		"worker 1 has the slots [3,4)":                {Slots: []sharding.Range{r(0, 2), r(3, 4)}, Join: join},
		"have 3 slots together, and the plan needs 4": {Slots: []sharding.Range{r(0, 3)}},
		`cannot join the others in queue "q"`:         {Slots: []sharding.Range{r(0, 2), r(2, 4)}},
	} {
		net := transport.NewMem(0)
		_, err := NewWorker(compiled, g.Graph, g.bindings(h), Env{SpillDir: t.TempDir(), Network: net}, part)
		require.ErrorContains(t, err, want)
		_, err = net.Dial(transport.Address{})
		require.ErrorIs(t, err, transport.ErrClosed)
	}
	two := Part{Worker: 1, Slots: []sharding.Range{r(0, 2), r(2, 4)}, Join: join}
	_, err = NewWorker(compiled, g.Graph, g.bindings(h), Env{}, two)
	require.ErrorContains(t, err, "worker 1 of 2 has no network")

	w, err := NewWorker(compiled, g.Graph, g.bindings(h), Env{SpillDir: t.TempDir(), Network: transport.NewMem(0)}, two)
	require.NoError(t, err)
	defer w.Close()
	require.ErrorContains(t, w.Prepare(), "worker 1 was told to begin the sinks")
	require.ErrorContains(t, w.Commit(nil), "commit with the outcomes of 0 workers, of 2")
	require.ErrorContains(t, w.commit(nil, true), "worker 1 cannot commit")
	require.NoError(t, w.Abort())
	w, err = NewWorker(compiled, g.Graph, g.bindings(h), Env{SpillDir: t.TempDir()}, Whole(compiled))
	require.NoError(t, err)
	defer w.Close()
	_, err = w.Run(context.Background())
	require.ErrorContains(t, err, "worker 0 cannot run now")
}

// lostPeer is an error of a network that has lost the connection to a worker.
type lostPeer struct{}

func (lostPeer) Error() string  { return "worker 1 closed its connection" }
func (lostPeer) PeerLost() bool { return true }

// TestNetworkFails requires that a run ends with the error of its network if the network fails
// before or after the run has begun, and whatever errors of subtasks follow.
func TestNetworkFails(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, lost := range []error{lostPeer{}, errBoom} {
			synctest.Test(t, func(t *testing.T) {
				g := parseGraph(8, pipeline)
				compiled, err := plan.Compile(g.Graph, 4)
				require.NoError(t, err)
				op := funcOperator{process: func(c *Context, _, s int, _ arrow.Record, _ Output) error {
					<-c.Done()
					if s == 0 {
						return fmt.Errorf("send: %w", transport.ErrClosed)
					}
					if s%2 == 0 {
						return fmt.Errorf("send: %w", lost)
					}
					return fmt.Errorf("send: %w", &lostPeer{})
				}}
				env := Env{SpillDir: t.TempDir(), Collector: &taps{}}
				w, err := NewWorker(compiled, g.Graph, g.bindings(with(op)), env, Whole(compiled))
				require.NoError(t, err)
				defer w.Close()
				require.NoError(t, w.Prepare())
				if late {
					go func() { synctest.Wait(); w.Fail(lost); w.Fail(errors.New("again")) }()
				} else {
					w.Fail(lost)
				}
				_, err = w.Run(context.Background())
				require.ErrorIs(t, err, lost)
				require.EqualError(t, err, lost.Error())
				require.Equal(t, lost == error(lostPeer{}), FollowsPeer(err))
			})
		}
	}
}

// TestFollowsPeer requires that FollowsPeer finds errors about peers even if they are wrapped.
func TestFollowsPeer(t *testing.T) {
	require.False(t, FollowsPeer(nil))
	require.False(t, FollowsPeer(errBoom))
	require.True(t, FollowsPeer(&TaskError{Err: fmt.Errorf("send: %w", lostPeer{})}))
	require.True(t, FollowsPeer(fmt.Errorf("x: %w", &collective.PeerError{Rank: 3})))
	require.False(t, FollowsPeer(&collective.MismatchError{}))
}

// TestOwnFailureComesFirst requires that a worker reports its own failure and not the failure
// of a peer, even if the peer failed first.
func TestOwnFailureComesFirst(t *testing.T) {
	f := failures{errs: []*TaskError{
		{Shard: -1, Err: &collective.PeerError{Rank: 3}}, {Shard: 5, Err: errBoom}, {Shard: 7, Err: errBoom},
	}}
	require.Equal(t, 5, f.choose().Shard)
	require.Equal(t, -1, (&failures{errs: f.errs[:1]}).choose().Shard)
}

// TestDamageComesFirst requires that disk damage is reported and not another failure, as it may
// be the cause of all other failures.
func TestDamageComesFirst(t *testing.T) {
	damage := &disk.DamagedError{File: "rows", Err: errBoom}
	f := failures{errs: []*TaskError{
		{Shard: -1, Err: &collective.PeerError{Rank: 3}}, {Shard: 2, Err: errBoom},
		{Shard: 7, Err: &PanicError{Value: fmt.Errorf("rows: %w", damage)}}, {Shard: 5, Err: fmt.Errorf("rows: %w", damage)}, {Shard: -1, Err: errBoom},
	}}
	require.Equal(t, 5, f.choose().Shard)
	require.Equal(t, 7, (&failures{errs: slices.Delete(f.errs, 3, 4)}).choose().Shard)
}

// outcomesOf returns a plan and the outcomes of its run on two workers.
func outcomesOf(t testing.TB) (*plan.Plan, [][]byte) {
	g := queueGraph(8, 3, false, plan.Compute)
	compiled, err := plan.Compile(g.Graph, 4)
	require.NoError(t, err)
	both := &partsRun{groups: map[string]*collective.LocalGroup{}}
	both.join = func(int) joinFunc { return both.joinLocal }
	mem := transport.NewMem(0)
	both.network = func(int) (transport.Network, error) { return mem, nil }
	_, err = both.runParts(context.Background(), compiled, g.Graph, split(compiled, 2), func(int) (Bindings, Env, error) {
		h := queueHooks(&testGang{loop: func(int) *testLoop { return &testLoop{} }})
		return g.bindings(h), Env{SpillDir: t.TempDir(), Collector: &taps{}}, nil
	})
	require.NoError(t, err)
	return compiled, [][]byte{both.parts[0].outcome, both.parts[1].outcome}
}

// TestMergeOutcomes requires that merging keeps values, even NaN, and that outcomes that do not
// match the plan are refused.
func TestMergeOutcomes(t *testing.T) {
	p, good := outcomesOf(t)
	report, err := MergeOutcomes(p, good)
	require.NoError(t, err)
	require.True(t, math.IsNaN(report.Queues[0].Series[1].Values[0]))
	require.Equal(t, 4.0, report.Queues[0].Series[1].Values[1])

	change := func(f func(o *outcome)) [][]byte {
		o, err := outcomes.Decode(good[1])
		require.NoError(t, err)
		f(&o)
		data, err := o.encode()
		require.NoError(t, err)
		return [][]byte{good[0], data}
	}
	for want, data := range map[string][][]byte{
		"subtask 2 of vertex 0 is in the outcome of none of 1 workers": good[:1],
		"subtask 0 of vertex 0 is in the outcomes of two workers":      {good[0], good[0]},
		"the outcome of worker 1: shared: decode":                      {good[0], good[1][:20]},
		"the outcome of worker 0: shared: decode":                      {nil},
		"it has vertex 99, of":                                         change(func(o *outcome) { o.Vertices[0].Vertex = 99 }),
		"it has 2 subtasks from 3 on of vertex 0, which has 4":         change(func(o *outcome) { o.Vertices[0].First = 3 }),
		"it has 2 subtasks from -1 on":                                 change(func(o *outcome) { o.Vertices[0].First = -1 }),
		`it has the queue "other"`:                                     change(func(o *outcome) { o.Queues[0].Name = "other" }),
		`it has a sum of shard 8 for "sum", of 8 shards`:               change(func(o *outcome) { o.Sums[0].Shards[0] = 8 }),
		"it has 1 sums of 2 shards":                                    change(func(o *outcome) { o.Sums[0].Shards, o.Sums[0].Values = []int{1, 2}, []float64{1} }),
	} {
		_, err := MergeOutcomes(p, data)
		require.ErrorContains(t, err, want)
	}
	_, err = MergeOutcomes(nil, good)
	require.ErrorContains(t, err, "no plan")
}

// TestCostsOfWorkersAddUp requires that the bytes held, written and moved, and the busy times, are
// summed over workers, and that the elapsed time is the longest one.
func TestCostsOfWorkersAddUp(t *testing.T) {
	p, good := outcomesOf(t)
	name := p.Queues[0].Name
	for w, costs := range []outcome{
		{Elapsed: 3, Peak: 100, Spilled: 20, Queues: []QueueReport{{Name: name, Stages: []StageReport{{Node: 3, Calls: 7, Bytes: 50, Busy: 11}, {Node: 4, Calls: 1}}}}},
		{Elapsed: 2, Peak: 200, Spilled: 10, Queues: []QueueReport{{Name: name, Stages: []StageReport{{Node: 5, Bytes: 9}, {Node: 3, Program: "ring", Calls: 5, Bytes: 40, Busy: 13}}}}},
	} {
		o, err := outcomes.Decode(good[w])
		require.NoError(t, err)
		costs.Vertices = o.Vertices
		good[w], err = costs.encode()
		require.NoError(t, err)
	}
	report, err := MergeOutcomes(p, good)
	require.NoError(t, err)
	require.Equal(t, time.Duration(3), report.Elapsed)
	require.EqualValues(t, 300, report.PeakMemory)
	require.EqualValues(t, 30, report.Spilled)
	require.Equal(t, []StageReport{{Node: 3, Program: "ring", Calls: 12, Bytes: 90, Busy: 24}, {Node: 4, Calls: 1}, {Node: 5, Bytes: 9}}, report.Queues[0].Stages)
}

// FuzzMergeOutcomes requires that no bytes from a worker make MergeOutcomes panic.
func FuzzMergeOutcomes(f *testing.F) {
	p, good := outcomesOf(f)
	f.Add(good[0], good[1])
	f.Add(good[1], []byte{0x80})
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, slices.Concat(good[0], good[1]))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		report, err := MergeOutcomes(p, [][]byte{a, b})
		if err == nil {
			require.Len(t, report.Vertices, len(p.Vertices))
		}
	})
}
