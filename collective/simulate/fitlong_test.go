//go:build !race

// These tests fit many samples in one goroutine, which is slow under the race detector and has
// no races.

package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
)

// TestFitOfASwitch requires that a fit finds the latency and the bandwidth between hosts on a
// switch.
func TestFitOfASwitch(t *testing.T) {
	truth, _ := Preset("10gbe")
	truth.Rack = Link{Latency: 20e-6, Bandwidth: 3e9}
	base, _ := Preset("10gbe")
	got, err := Fit(t.Context(), base, measured(t, truth, probes(), 0), Options{})
	require.NoError(t, err)
	require.InEpsilon(t, truth.Rack.Bandwidth, got.Rack.Bandwidth, 0.05)
	require.InEpsilon(t, truth.Rack.Latency, got.Rack.Latency, 0.05)
}

// TestFitToCollectives requires that a fit that has only samples of collectives predicts the
// times of other collectives.
func TestFitToCollectives(t *testing.T) {
	truth, _ := Preset("loopback")
	truth.Host.Latency, truth.SendCopy, truth.RecvCopy = 60e-6, 0.5e-9, 0.5e-9
	var samples, others []Sample
	for _, p := range []int{2, 4, 8} {
		for bytes := 8; bytes <= 1<<20; bytes *= 32 {
			s := Sample{Kind: Collective, Algorithm: algorithm.Direct(), Params: algorithm.Params{P: p}, Bytes: bytes}
			samples = append(samples, s)
			s.Params.P, s.Bytes = p-1, 2*bytes
			others = append(others, s)
		}
	}
	base, _ := Preset("loopback")
	got, err := Fit(t.Context(), base, measured(t, truth, samples, 0), Options{})
	require.NoError(t, err)
	others = measured(t, truth, others[4:], 0)
	prices, err := Predict(t.Context(), got, others, Options{})
	require.NoError(t, err)
	for i := range others {
		require.InEpsilon(t, others[i].Seconds, prices[i], 0.05, others[i].String())
	}
}

// TestFitFindsTheCoresThereAre requires that a fit finds the number of available cores, if it
// is a quarter or twice the number of cores in base.
func TestFitFindsTheCoresThereAre(t *testing.T) {
	samples := probes()
	for _, bytes := range []int{8, 1 << 20} {
		for _, p := range []int{2, 4} {
			samples = append(samples, Sample{Kind: Collective, Algorithm: algorithm.Direct(), Params: algorithm.Params{P: p}, Bytes: bytes})
		}
	}
	for presumed, is := range map[int]int{4: 1, 1: 2} {
		truth, _ := Preset("loopback")
		truth.Cores, truth.Host.Latency = is, 2e-6
		base, _ := Preset("loopback")
		base.Cores = presumed
		got, err := Fit(t.Context(), base, measured(t, truth, samples, 0), Options{})
		require.NoError(t, err)
		require.Equal(t, is, got.Cores)
		require.InEpsilon(t, truth.SendOverhead, got.SendOverhead, 0.05)
	}
}
