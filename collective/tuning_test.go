package collective

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/tune"
)

// TestCalibrationMeasuresUsableAlgorithms requires that a calibration measures exactly the
// algorithms that accept the forests of the group's processes. The group has three ranks in two
// processes, and algorithms run between the processes.
func TestCalibrationMeasuresUsableAlgorithms(t *testing.T) {
	groups := tcpGroups(t, 3, [][]int{{0, 1}, {2}})
	defer closeAll(t, groups)
	for _, err := range outcomesOf(groups, 3, func(c *Comm) error { return c.calibrate(t.Context(), []int{8, 4 << 10}) }) {
		require.NoError(t, err)
	}
	seen := map[int][]string{}
	for _, k := range groups[0].Tuner().Corrections {
		require.Equal(t, 2, k.Ranks)
		require.Positive(t, k.Factor)
		seen[k.Bytes] = append(seen[k.Bytes], k.Algorithm)
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
		require.Nil(t, g.local.net.calls.trial, "after calibration, calls must not be the trials")
		require.NotNil(t, g.local.net.trials.trial)
	}
}

// TestACalibratedGroupChoosesByItsMeasurements requires that calibration measures every
// algorithm and size, and that it does not change the bits of results.
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
	// The predicted time of a measured size is the measured time. The predicted time of the
	// choice is the lowest, or only slightly higher than the lowest.
	d, err := tuner.Choose(t.Context(), tune.Query{
		Collective: program.AllReduce, Params: algorithm.Params{P: 3}, Bytes: 8, Elem: 8,
	})
	require.NoError(t, err)
	require.Equal(t, "fitted", d.Network)
}
