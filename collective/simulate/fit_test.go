package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// probes returns the samples that a group measures on its own links, without times.
func probes() []Sample {
	var s []Sample
	for bytes := 8; bytes <= 4<<20; bytes *= 8 {
		s = append(s, Sample{Kind: PingPong, Bytes: bytes}, Sample{Kind: Stream, Bytes: bytes})
	}
	return append(s, Sample{Kind: Fold, Bytes: 1 << 20}, Sample{Kind: Copy, Bytes: 1 << 20})
}

// measured sets the times of samples to the times predicted for network n, with noise, and
// returns the samples.
func measured(t *testing.T, n *Network, samples []Sample, noise float64) []Sample {
	prices, err := Predict(t.Context(), n, samples, Options{})
	require.NoError(t, err)
	r := sharding.NewRandom(1, "noise", 0, 0)
	for i := range samples {
		samples[i].Seconds = prices[i] * (1 + noise*(2*r.Float64()-1))
	}
	return samples
}

// TestFitFindsTheNetwork requires that a fit finds the costs of the measured network: within 2
// % from measurements without noise, and within 15 % from measurements with 10 % noise.
func TestFitFindsTheNetwork(t *testing.T) {
	two := func() *Network { // two cores, so that each rank has its own: ranks that share a core wait for each other
		n, _ := Preset("loopback")
		n.Cores = 2
		return n
	}
	truth := two()
	truth.Host.Latency = 7e-6
	for _, cost := range []*float64{&truth.SendOverhead, &truth.RecvOverhead, &truth.WakeUp} {
		*cost *= 1.7 // all these costs are multiplied, since a fit keeps their ratios
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
		// The fitted network also predicts times that were not measured.
		a, pr := algorithm.Direct(), algorithm.Params{P: 6}
		want, err := Price(t.Context(), a, pr, 1<<20, 8, truth, Options{})
		require.NoError(t, err)
		price, err := Price(t.Context(), a, pr, 1<<20, 8, got, Options{})
		require.NoError(t, err)
		require.InEpsilon(t, want.Time, price.Time, tolerance)
	}
	require.Equal(t, two(), base, "Fit must not change base")
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
