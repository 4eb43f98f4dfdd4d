package tune

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
)

// TestEstimate requires that a round that is slow for all algorithms does not change the
// estimates, and that taking part only in fast rounds does not make an estimate better.
func TestEstimate(t *testing.T) {
	best := &trial{medians: []float64{8, 8, 64, 72, 8}}
	next := &trial{medians: []float64{16, 8, 96, 96, 12}}
	gone := &trial{medians: []float64{16, 16}, eliminated: true}
	estimate([]*trial{gone, best, next})
	// The times of the rounds are 12, 8, 80, 84 and 10: the means of the times of best and
	// next, the trials that are not eliminated.
	require.InDelta(t, 12*median([]float64{8. / 12, 1, 64. / 80, 72. / 84, 8. / 10}), best.seconds, 1e-12)
	require.InDelta(t, 12*1.2, next.seconds, 1e-12)
	require.InDelta(t, 12*(16./12+2)/2, gone.seconds, 1e-12)
	require.Equal(t, best.seconds, fastest([]*trial{gone, best, next}))
	require.Equal(t, []float64{16, 16}, gone.medians)

	one := &trial{medians: []float64{5, 7, 6}}
	estimate([]*trial{one})
	require.Equal(t, 6.0, one.seconds)
}

// meeting is a barrier for the goroutines of fake ranks, which also computes the maximum of
// values over the ranks.
type meeting struct {
	mu      sync.Mutex
	all     sync.Cond
	ranks   int
	current *reunion
}

type reunion struct {
	come int
	max  []float64
}

// join waits for all ranks and sets each element of x to its maximum over the ranks.
func (m *meeting) join(x []float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil {
		m.current = &reunion{max: slices.Clone(x)}
	}
	here := m.current
	for i, v := range x {
		here.max[i] = max(here.max[i], v)
	}
	if here.come++; here.come == m.ranks {
		m.current = nil
		m.all.Broadcast()
	}
	for here.come < m.ranks {
		m.all.Wait()
	}
	copy(x, here.max)
}

// fakeRank is a Group in memory. It implements only the methods that trials use.
type fakeRank struct {
	*meeting
	Group
	rank int
	runs map[string]int
}

func (g *fakeRank) Rank() int { return g.rank }

func (g *fakeRank) Params() algorithm.Params { return algorithm.Params{P: g.ranks} }

func (g *fakeRank) Barrier(context.Context) error { g.join(nil); return nil }

func (g *fakeRank) Max(_ context.Context, x []float64) error { g.join(x); return nil }

func (g *fakeRank) With(a *algorithm.Algorithm, call func() error) error {
	g.runs[a.Name]++
	return call()
}

// TestTrialsMeasureCompetingAlgorithms requires that algorithms that do not fold in the
// canonical tree are measured only if rank 0 sets AnyTree. It also requires that all ranks have
// the same times and eliminate the same algorithms.
func TestTrialsMeasureCompetingAlgorithms(t *testing.T) {
	for _, anyTree := range []bool{false, true} {
		const ranks = 3
		m := &meeting{ranks: ranks}
		m.all.L = &m.mu
		var wait sync.WaitGroup
		got, runs := make([][]simulate.Sample, ranks), make([]map[string]int, ranks)
		for r := range ranks {
			wait.Go(func() {
				g := &fakeRank{meeting: m, rank: r, runs: map[string]int{}}
				all, err := (&Tuner{AnyTree: anyTree && r == 0}).measureAlgorithms(t.Context(), g, []int{8, 64})
				if err != nil {
					t.Error(err)
				}
				got[r], runs[r] = all, g.runs
			})
		}
		wait.Wait()
		var want []string
		for range 2 {
			for _, a := range algorithm.For(program.AllReduce) {
				if a.Supports(algorithm.Params{P: ranks}) == nil && (anyTree || a.Canonical != nil && a.Canonical(ranks)) {
					want = append(want, a.Name)
				}
			}
		}
		for _, a := range algorithm.For(program.Barrier) {
			want = append(want, a.Name)
		}
		var names []string
		for i, s := range got[0] {
			require.Positive(t, s.Seconds)
			for r := range ranks {
				require.Equal(t, s.Seconds, got[r][i].Seconds)
			}
			names = append(names, s.Algorithm.Name)
		}
		require.Equal(t, want, names)
		require.Equal(t, anyTree, slices.Contains(names, "ring"))
		require.Equal(t, runs[0], runs[1])
		require.Equal(t, runs[0], runs[2])
	}
}

// TestChoicesRoundTrip requires that a choice is the same after encoding and decoding.
func TestChoicesRoundTrip(t *testing.T) {
	message := new([MessageBytes]byte)
	sent := Choice{Algorithm: "torus", Dims: []int{2, 3}, Segment: 1 << 20, Channels: 2}
	require.NoError(t, sent.Encode(message))
	got, a, err := DecodeChoice(message, program.AllReduce)
	require.NoError(t, err)
	require.Equal(t, sent, got)
	require.Equal(t, "torus", a.Name)
	_, _, err = DecodeChoice(message, program.Barrier)
	require.ErrorContains(t, err, "what rank 0 chose")
	_, _, err = DecodeChoice(new([MessageBytes]byte), program.AllReduce)
	require.ErrorContains(t, err, "cannot be read")
	sent.Dims = make([]int, 400)
	require.ErrorContains(t, sent.Encode(new([MessageBytes]byte)), "more than 512 bytes")
}

func TestSizeClasses(t *testing.T) {
	for bytes, want := range map[int]int{0: 0, 1: 1, 2: 1, 3: 3, 4: 3, 5: 6, 8: 6, 9: 12, 1 << 20: 3 << 18, 1<<20 + 1: 3 << 19} {
		require.Equal(t, want, ClassOf(bytes).Bytes(), bytes)
	}
}
