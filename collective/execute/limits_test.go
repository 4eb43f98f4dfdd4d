package execute

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// TestLargeCounts requires an error if the number of bytes overflows an integer, and that
// offsets beyond 32 bits are not truncated.
func TestLargeCounts(t *testing.T) {
	progs := progsOf(t, program.AllReduce, "direct", 2)
	m := newTeam(t, inMemory(t, 2), progs, Options{})
	defer m.close()
	r := m.runners[0]
	for _, n := range []int{math.MaxInt/8 + 1, math.MaxInt - 1} {
		op := &Operation{Seq: 1, What: what, Elem: 8, Layout: program.Even(n, 2), In: [][]byte{{}}, Out: []byte{}, Reducer: sum{}}
		_, err := r.Run(op) // 8·2⁶¹ bytes would overflow to 0
		require.ErrorContains(t, err, fmt.Sprintf("%d elements of 8 bytes", n))
	}

	// This only computes lengths for 8·10⁹ elements. Nothing accesses their memory.
	const n = 8_000_000_000
	r.op = &Operation{Elem: 8, Layout: program.Even(n, 2)}
	r.segment = DefaultSegment
	second := ref{lo: 1, hi: 2}
	require.Equal(t, n/2*8, r.size(second))
	require.Equal(t, (n/2*8+DefaultSegment-1)/DefaultSegment, r.segments(r.size(second)))
	require.False(t, r.isSerial())
	r.op = nil
}

// TestSegmentsThatHeadersCannotSay requires an error if the number or the length of segments
// does not fit into the fields of a header.
func TestSegmentsThatHeadersCannotSay(t *testing.T) {
	nodes, progs := inMemory(t, 1), progsOf(t, program.AllReduce, "direct", 1)
	for segment, n := range map[int]int{1: 1 << 31, 1 << 33: 1 << 33} {
		r, err := New(t.Context(), progs[0], nodes[0], Options{Segment: segment})
		require.NoError(t, err)
		err = r.cut(&Operation{Elem: 1, Layout: program.Even(n, progs[0].Chunks)})
		require.ErrorContains(t, err, fmt.Sprintf("%d bytes in segments of %d", n, segment))
		require.NoError(t, r.cut(&Operation{Elem: 1, Layout: program.Even(min(n-1, math.MaxUint32), progs[0].Chunks)}))
		r.Close()
	}
}

func TestClose(t *testing.T) {
	progs := progsOf(t, program.AllReduce, "direct", 2)
	m := newTeam(t, inMemory(t, 2), progs, Options{SerialLimit: -1})
	errs := everyone(2, func(r int) error {
		_, err := m.runners[r].Run(sumOf(progs[r], 1, what, 1000))
		return err
	})
	require.Equal(t, []error{nil, nil}, errs)
	r := m.runners[0]
	require.NotZero(t, r.arena.Len())
	m.close()
	m.close()
	require.Zero(t, r.arena.Len())
	_, err := r.Run(sumOf(progs[0], 2, what, 1000))
	require.ErrorContains(t, err, "the runner is closed")
}

// TestRunsAfterAFailure requires that the first failure is the error of all later runs.
func TestRunsAfterAFailure(t *testing.T) {
	for _, mode := range modes {
		nodes := inMemory(t, 2)
		progs := progsOf(t, program.AllReduce, "ring", 2)
		m := newTeam(t, nodes, progs, mode.opt)
		for seq := uint64(1); seq <= 3; seq++ {
			for _, err := range everyone(2, func(r int) error {
				op := sumOf(progs[r], seq, what, 100)
				if seq == 1 {
					op.Reducer = misbehaved{func() { panic("once") }}
				}
				_, err := m.runners[r].Run(op)
				return err
			}) {
				require.ErrorContains(t, err, "panic: once", "%s run %d", mode.name, seq)
			}
		}
		m.close()
	}
}

// TestRanksInDifferentModes requires correct results if a run is serial on some ranks and
// parallel on others. The messages are the same.
func TestRanksInDifferentModes(t *testing.T) {
	const p = 5
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) {
			if a.Supports(algorithm.Params{P: p}) != nil {
				continue
			}
			progs := generate(a, algorithm.Params{P: p})
			for _, net := range []network{inMemory, overTCP} {
				m := newTeam(t, net(t, p), progs, Options{Segment: 192, Channels: 2, SerialLimit: -1})
				for _, serial := range []int{0b00001, 0b10110, 0b01111} {
					for r, runner := range m.runners {
						runner.opt.SerialLimit = -1
						if serial>>r&1 == 1 {
							runner.opt.SerialLimit = 192
						}
					}
					for _, n := range []int{0, 1, p + 1, 24} {
						if c == program.Barrier && n > 0 {
							continue
						}
						for _, ls := range layoutsFor(a, progs[0].Chunks, p, n) {
							requireTask(t, m, &task{progs: progs, kind: integers, layouts: ls}, fmt.Sprint(c, " ", a.Name, " ", n))
						}
					}
				}
				m.close()
			}
		}
	}
}
