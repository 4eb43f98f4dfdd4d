package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/shared"
)

// probes are the measurements that a group makes of its own links.
func probes() []Sample {
	var s []Sample
	for bytes := 8; bytes <= 4<<20; bytes *= 8 {
		s = append(s, Sample{Kind: PingPong, Bytes: bytes}, Sample{Kind: Stream, Bytes: bytes})
	}
	return append(s, Sample{Kind: Fold, Bytes: 1 << 20}, Sample{Kind: Copy, Bytes: 1 << 20})
}

// measured gives samples the time that they take on a network.
func measured(t *testing.T, n *Network, samples []Sample, noise float64) []Sample {
	prices, err := Predict(t.Context(), n, samples, Options{})
	require.NoError(t, err)
	r := shared.NewRandom(1, "noise", 0, 0)
	for i := range samples {
		samples[i].Seconds = prices[i] * (1 + noise*(2*r.Float64()-1))
	}
	return samples
}

// A fit finds the numbers of the network that was measured, and nearly so from noisy
// measurements.
func TestFitFindsTheNetwork(t *testing.T) {
	two := func() *Network { // a core for either rank: on one, each waits for the other anyway
		n, _ := Preset("loopback")
		n.Cores = 2
		return n
	}
	truth := two()
	truth.Host.Latency = 7e-6
	for _, cost := range []*float64{&truth.SendOverhead, &truth.RecvOverhead, &truth.WakeUp} {
		*cost *= 1.7 // a fit keeps their ratios
	}
	truth.SendCopy, truth.RecvCopy, truth.Gamma, truth.Copy = 0.26e-9, 0.26e-9, 0.4e-9, 0.05e-9
	base := two()
	for noise, tolerance := range map[float64]float64{0: 0.02, 0.1: 0.15} {
		got, err := Fit(t.Context(), base, measured(t, truth, probes(), noise), Options{})
		require.NoError(t, err)
		for _, pair := range [][2]float64{
			{truth.SendOverhead, got.SendOverhead}, {truth.SendCopy, got.SendCopy},
			{truth.Gamma, got.Gamma}, {truth.Copy, got.Copy},
		} {
			require.InEpsilon(t, pair[0], pair[1], tolerance)
		}
		require.InEpsilon(t, truth.Host.Latency+truth.SendOverhead+truth.RecvOverhead, got.Host.Latency+got.SendOverhead+got.RecvOverhead, tolerance)
		// What was not measured is predicted too.
		a, pr := algorithm.Direct(), algorithm.Params{P: 6}
		want, err := Price(t.Context(), a, pr, 1<<20, 8, truth, Options{})
		require.NoError(t, err)
		price, err := Price(t.Context(), a, pr, 1<<20, 8, got, Options{})
		require.NoError(t, err)
		require.InEpsilon(t, want.Time, price.Time, tolerance)
	}
	require.Equal(t, two(), base, "the base is left alone")
}

// Hosts on a switch have a bandwidth to be found.
func TestFitOfASwitch(t *testing.T) {
	truth, _ := Preset("10gbe")
	truth.Rack = Link{Latency: 20e-6, Bandwidth: 3e9}
	base, _ := Preset("10gbe")
	got, err := Fit(t.Context(), base, measured(t, truth, probes(), 0), Options{})
	require.NoError(t, err)
	require.InEpsilon(t, truth.Rack.Bandwidth, got.Rack.Bandwidth, 0.05)
	require.InEpsilon(t, truth.Rack.Latency, got.Rack.Latency, 0.05)
}

// Collectives alone are enough to predict collectives.
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

// Cores that others use are found missing, and twice as many as presumed are found too.
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

func TestFitRefuses(t *testing.T) {
	base, _ := Preset("loopback")
	for want, samples := range map[string][]Sample{
		"no samples":                            {},
		"ping-pong of 8 bytes took 0 seconds":   {{Kind: PingPong, Bytes: 8}},
		"stream of -1 bytes: no such measure":   {{Kind: Stream, Bytes: -1, Seconds: 1}},
		"collective of 1 bytes: no such measur": {{Kind: Collective, Bytes: 1, Seconds: 1}},
		"kind(99)":                              {{Kind: 99, Seconds: 1}},
		"direct allreduce among 0 ranks":        {{Kind: Collective, Algorithm: algorithm.Direct(), Seconds: 1}},
	} {
		_, err := Fit(t.Context(), base, samples, Options{})
		require.ErrorContains(t, err, want)
	}
}
