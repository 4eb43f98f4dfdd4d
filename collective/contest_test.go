package collective

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
	"github.com/superstep-ml/superstep/collective/tune"
)

// TestContestsAreAmongWhatIsChosen has three ranks in two processes: reductions go among
// the two, and only what takes the forests of three ranks takes part.
func TestContestsAreAmongWhatIsChosen(t *testing.T) {
	groups := tcpGroups(t, 3, [][]int{{0, 1}, {2}})
	defer closeAll(t, groups)
	sizes := []int{8, 4 << 10}
	var mu sync.Mutex
	all := map[int][]simulate.Sample{}
	for _, err := range outcomesOf(groups, 3, func(c *Comm) error {
		samples, err := c.contests(t.Context(), sizes)
		mu.Lock()
		defer mu.Unlock()
		all[c.Rank()] = samples
		return err
	}) {
		require.NoError(t, err)
	}
	seen := map[int][]string{}
	for i, s := range all[0] {
		require.Equal(t, 2, s.Params.P)
		require.Positive(t, s.Seconds)
		for rank := range 3 {
			require.Equal(t, s.Seconds, all[rank][i].Seconds, "all ranks must agree about who is out")
		}
		seen[s.Bytes] = append(seen[s.Bytes], s.Algorithm.Name)
	}
	pr := algorithm.Params{P: 2, Forest: groups[0].local.net.makeWhole().forest.nodes}
	var serve, barriers []string
	for _, a := range algorithm.For(program.AllReduce) {
		if a.Supports(pr) == nil && a.Canonical(2) {
			serve = append(serve, a.Name)
		}
	}
	for _, a := range algorithm.For(program.Barrier) {
		barriers = append(barriers, a.Name)
	}
	require.Contains(t, serve, "direct")
	require.Equal(t, map[int][]string{8: serve, 4 << 10: serve, 0: barriers}, seen)
	for _, g := range groups {
		require.Nil(t, g.local.net.calls.trial, "tries are over")
		require.NotNil(t, g.local.net.tries.trial)
	}
}

// TestRate: rounds that are slow for all change nothing, nor is it of use to have been in
// for quick ones alone.
func TestRate(t *testing.T) {
	best := &contestant{turns: []float64{8, 8, 64, 72, 8}}
	next := &contestant{turns: []float64{16, 8, 96, 96, 12}}
	gone := &contestant{turns: []float64{16, 16}, out: true}
	rate([]*contestant{gone, best, next})
	// The rounds took 12, 8, 80, 84 and 10, of those that are in.
	require.InDelta(t, 12*median([]float64{8. / 12, 1, 64. / 80, 72. / 84, 8. / 10}), best.takes, 1e-12)
	require.InDelta(t, 12*1.2, next.takes, 1e-12)
	require.InDelta(t, 12*(16./12+2)/2, gone.takes, 1e-12)
	require.Equal(t, best.takes, least([]*contestant{gone, best, next}))
	require.Equal(t, []float64{16, 16}, gone.turns)

	one := &contestant{turns: []float64{5, 7, 6}}
	rate([]*contestant{one})
	require.Equal(t, 6.0, one.takes)
}

// TestACalibratedGroupChoosesByItsMeasurements, which it has of every size and algorithm,
// and gives the bits of before.
func TestACalibratedGroupChoosesByItsMeasurements(t *testing.T) {
	groups := tcpGroups(t, 3, nil)
	defer closeAll(t, groups)
	var mu sync.Mutex
	results := map[string]int{}
	sum := func(c *Comm) error {
		x := hostile(uint64(c.Rank()), 100)
		err := AllReduce(c, &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x})
		mu.Lock()
		defer mu.Unlock()
		results[string(bitsOf(x))]++
		return err
	}
	for _, err := range outcomesOf(groups, 3, func(c *Comm) error {
		if err := sum(c); err != nil {
			return err
		}
		if err := c.calibrate(t.Context(), []int{8}); err != nil {
			return err
		}
		return sum(c)
	}) {
		require.NoError(t, err)
	}
	require.Len(t, results, 1)
	tuner := groups[0].Tuner()
	require.Equal(t, "fitted", tuner.Network.Name)
	canonical := 0
	for _, a := range algorithm.For(program.AllReduce) {
		if a.Canonical != nil && a.Canonical(3) {
			canonical++
		}
	}
	require.Len(t, tuner.Corrections, canonical+len(algorithm.For(program.Barrier)))
	for _, k := range tuner.Corrections {
		require.Equal(t, 3, k.Ranks)
		require.Positive(t, k.Factor)
	}
	// What a size takes that was measured is its measurement: the choice is the best of it
	// but for prices that are about the same.
	d, err := tuner.Choose(t.Context(), tune.Query{
		Collective: program.AllReduce, Params: algorithm.Params{P: 3}, Bytes: 8, Elem: 8,
	})
	require.NoError(t, err)
	require.Equal(t, "fitted", d.Network)
}
