package main

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective"
)

// rates calls rawRate on the two ranks of a local group. Rank r passes hosts[r] as the host of
// rank 0.
func rates(ctx context.Context, hosts [2]string) (rate [2]float64, errs [2]error) {
	g := collective.NewLocalGroup(2)
	var ranks sync.WaitGroup
	for r, host := range hosts {
		ranks.Go(func() {
			c := g.Rank(r)
			rate[r], errs[r] = rawRate(ctx, c, host)
			c.Close(errs[r])
		})
	}
	ranks.Wait()
	return rate, errs
}

func TestRawRate(t *testing.T) {
	rate, errs := rates(t.Context(), [2]string{"127.0.0.1", "127.0.0.1"})
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.Positive(t, rate[0])
}

// TestRawRateBetweenRanksThatDoNotReachEachOther requires that both ranks return an error if
// rank 0 cannot listen at its host, or rank 1 cannot connect to that host.
func TestRawRateBetweenRanksThatDoNotReachEachOther(t *testing.T) {
	for _, hosts := range [][2]string{{"127.0.0.1", "host.invalid"}, {"host.invalid", "127.0.0.1"}} {
		_, errs := rates(t.Context(), hosts)
		for _, err := range errs {
			require.ErrorContains(t, err, "--no-raw")
			require.ErrorContains(t, err, "host.invalid")
		}
	}
}
