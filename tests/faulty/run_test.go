package faulty_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/execute"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
	"github.com/superstep-ml/superstep/internal/transport/middlebox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// elem is the size of an element in bytes. Elements are uint64, so that sums are exact in every
// order.
const elem = 8

// scenario describes a run in which p ranks execute some operations of the same program.
type scenario struct {
	plan             mesh.FaultPlan
	coll             program.Collective
	algo             string
	p, ops           int
	each             int // number of elements of each of the p chunks
	opt              execute.Options
	wire             bool           // whether the faults are injected on the wire
	box              *middlebox.Box // if not nil, all connections pass through this middlebox
	group            string         // name of the group
	limit            time.Duration  // time limit for joining and connecting; 0 means the default
	secret           []byte
	withoutChecksums bool // whether payloads have no checksums
	stall            time.Duration
}

func (s *scenario) String() string {
	return fmt.Sprintf("plan %q: %d times %s %s among %d ranks, %d elements each, %+v, on the wire: %v, without checksums: %v",
		s.plan, s.ops, s.coll, s.algo, s.p, s.each, s.opt, s.wire, s.withoutChecksums)
}

// rankEnd says how a scenario ended for a rank.
type rankEnd struct {
	done   int    // number of operations that returned no error
	err    error  // error of the next operation, or nil
	joined bool   // whether the group was formed
	wrong  string // what is wrong with a result that was returned without an error; "" if all results are right
}

// value returns element e of a rank's input to operation seq.
func value(seq, rank, e int) uint64 {
	x := uint64(seq)<<40 ^ uint64(rank)<<32 ^ uint64(e)
	x = (x ^ x>>31) * 0xbf58476d1ce4e5b9
	return x ^ x>>29
}

// sums is an operator that adds uint64s.
type sums struct{}

func (sums) Fold(dst, left, right []byte) {
	le := binary.LittleEndian
	for i := 0; i < len(dst); i += elem {
		le.PutUint64(dst[i:], le.Uint64(left[i:])+le.Uint64(right[i:]))
	}
}

// sharedState is the state that all ranks of a run share.
type sharedState struct {
	*scenario
	progs   []*program.Program
	layout  program.Layout
	what    mesh.Operation
	entered []atomic.Int32 // index of an operation -> number of ranks that have begun it
	ends    []rankEnd
}

func (s *scenario) newState(t testing.TB) *sharedState {
	a, err := algorithm.Find(s.coll, s.algo)
	require.NoError(t, err)
	w := &sharedState{scenario: s, entered: make([]atomic.Int32, s.ops+1), ends: make([]rankEnd, s.p)}
	for r := range s.p {
		w.progs = append(w.progs, a.Generate(algorithm.Params{P: s.p}, r))
	}
	n := s.p * s.each
	if s.coll == program.Barrier {
		n = 0
	}
	w.layout = program.Even(n, w.progs[0].Chunks)
	w.what = mesh.Operation{Hash: w.progs[0].GroupHash(), Text: fmt.Sprintf("%s (%d uint64, sum)", s.coll, n)}
	return w
}

// owner returns the rank whose input is element e of the result of an AllGather or Broadcast.
func (w *sharedState) owner(e int) int {
	if w.coll == program.Broadcast {
		return w.progs[0].Root
	}
	for c := range w.progs[0].Chunks {
		if e < w.layout.In[c+1] {
			for r, p := range w.progs {
				if p.In.Contains(c) {
					return r
				}
			}
		}
	}
	return -1
}

// want returns element e of the expected result of operation seq.
func (w *sharedState) want(seq, e int) (x uint64) {
	if !w.coll.Reduces() {
		return value(seq, w.owner(e), e)
	}
	for r := range w.p {
		x += value(seq, r, e)
	}
	return x
}

// rank executes all operations on one node, until the first error.
func (w *sharedState) rank(node mesh.Node) {
	r := node.Rank()
	end := &w.ends[r]
	runner, err := execute.New(context.Background(), w.progs[r], node, w.opt)
	if err != nil {
		end.err = err
		return
	}
	defer runner.Close()
	prog := w.progs[r]
	in := make([]byte, elem*w.layout.Size(program.In, prog.In))
	out := make([]byte, elem*w.layout.Size(program.Out, prog.Out))
	for seq := 1; seq <= w.ops; seq++ {
		for i := 0; i < len(in); i += elem {
			binary.LittleEndian.PutUint64(in[i:], value(seq, r, w.layout.In[prog.In.Lo]+i/elem))
		}
		clear(out)
		w.entered[seq].Add(1)
		_, end.err = runner.Run(&execute.Operation{Seq: uint64(seq), What: &w.what, Elem: elem, Layout: w.layout,
			In: [][]byte{in}, Out: out, Reducer: sums{}})
		if end.err != nil {
			return
		}
		end.done++
		if end.wrong = w.check(seq, prog, out); end.wrong != "" {
			return
		}
	}
}

// check returns what is wrong with the result of an operation that returned no error, or "" if
// the result is right.
func (w *sharedState) check(seq int, prog *program.Program, out []byte) string {
	if w.coll == program.Barrier {
		if n := w.entered[seq].Load(); int(n) != w.p {
			return fmt.Sprintf("rank %d: barrier %d let through when %d ranks had come", prog.Rank, seq, n)
		}
		return ""
	}
	for i := 0; i < len(out); i += elem {
		e := w.layout.Out[prog.Out.Lo] + i/elem
		if got, want := binary.LittleEndian.Uint64(out[i:]), w.want(seq, e); got != want {
			return fmt.Sprintf("rank %d, operation %d: element %d is %#x, not %#x", prog.Rank, seq, e, got, want)
		}
	}
	return ""
}

// inMemory runs the scenario with ranks that are goroutines of one process, with a separate
// membership service. It is meant for synctest bubbles with virtual time.
func (s *scenario) inMemory(t testing.TB, plan mesh.FaultPlan) []rankEnd {
	w := s.newState(t)
	local := mesh.NewLocal(s.p)
	ranks := make([]int, s.p)
	for r := range ranks {
		ranks[r] = r
	}
	home, err := membership.Join(context.Background(), membership.Config{
		Processes: 1, Ranks: ranks, Size: s.p, Group: "faulty", StallTimeout: s.stall, State: local.States})
	require.NoError(t, err)
	ended := make(chan struct{})
	var all, watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-home.Failed():
			_ = local.Node(0).Fail(home.Err())
		case <-ended:
		}
	})
	for r := range s.p {
		all.Go(func() {
			w.rank(mesh.NewFaulty(local.Node(r), plan))
			local.Leave(r)
		})
	}
	all.Wait()
	close(ended)
	watch.Wait()
	home.Close()
	return w.ends
}

// overTCP runs the scenario over TCP, with a separate part of the mesh for each rank, as if
// each rank were a process.
func (s *scenario) overTCP(t testing.TB, plan mesh.FaultPlan) []rankEnd {
	w, store := s.newState(t), membership.FileStore(t.TempDir())
	var all sync.WaitGroup
	for r := range s.p {
		all.Go(func() {
			var home *membership.Membership
			joined := store
			if s.box != nil {
				joined = boxedStore{store, s.box}
			}
			port, err := peerlink.Listen(peerlink.Config{Secret: s.secret})
			if err != nil {
				w.ends[r].err = err
				return
			}
			defer port.Close()
			cfg := mesh.TCPConfig{Port: port, Size: s.p, Ranks: []int{r}, Group: s.group, NoChecksum: s.withoutChecksums, ConnectTimeout: s.limit,
				Join: func(ctx context.Context, address string, states func() []membership.State) (mesh.Group, []membership.Peer, error) {
					if s.box != nil {
						var err error
						if address, err = s.box.Before(address); err != nil {
							return nil, nil, err
						}
					}
					m, err := membership.Join(ctx, membership.Config{Process: r, Processes: s.p, Ranks: []int{r}, Size: s.p, Port: port,
						Store: joined, DataAddress: address, Group: s.group, JoinTimeout: s.limit, StallTimeout: s.stall, State: states})
					if err != nil {
						return nil, nil, err
					}
					home = m
					return m, m.Table(), nil
				}}
			if s.wire {
				if w.ends[r].err = plan.OnWire(&cfg); w.ends[r].err != nil {
					return
				}
			}
			m, err := mesh.JoinTCP(context.Background(), cfg)
			if err != nil {
				w.ends[r].err = err
				return
			}
			w.ends[r].joined = true
			node := m.Node(r)
			if !s.wire {
				node = mesh.NewFaulty(node, plan)
			}
			w.rank(node)
			ctx, cancel := context.WithTimeout(context.Background(), bound)
			defer cancel()
			_ = home.Leave(ctx) // if the group has failed, its error was reported before
			_ = m.Close()
			home.Close()
		})
	}
	all.Wait()
	return w.ends
}

// bound is the time within which every run must end, even on a slow machine under load.
const bound = 4 * time.Minute

// run runs the scenario by calling how, and checks the requirements on all runs: the run ends,
// no result is wrong, and all errors are the same and of a documented type. It returns the
// error.
func (s *scenario) run(t testing.TB, how func(*scenario, testing.TB, mesh.FaultPlan) []rankEnd) (err error) {
	began := time.Now()
	endings := how(s, t, s.plan)
	require.Less(t, time.Since(began), bound, s)
	for _, e := range endings {
		require.Empty(t, e.wrong, s)
		switch {
		case e.err == nil:
			require.Equal(t, s.ops, e.done, s)
		case err == nil:
			err = e.err
		default:
			require.EqualError(t, e.err, err.Error(), s)
		}
	}
	if err != nil {
		requireKnown(t, err, s)
	}
	return err
}

// requireKnown requires that an error is of a documented type.
func requireKnown(t testing.TB, err error, s *scenario) {
	var peer *membership.PeerError
	var mismatch *membership.MismatchError
	require.True(t, errors.As(err, &peer) || errors.As(err, &mismatch) || errors.Is(err, membership.ErrTimeout),
		"%v: %v", s, err)
}
