package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestYoungInterval(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct{ cost, mtbf, want time.Duration }{
		{0, day, shortestInterval},
		{-time.Second, day, shortestInterval},
		{time.Nanosecond, time.Hour, shortestInterval},
		{2 * time.Millisecond, 1000 * time.Second, 2 * time.Second},
		{50 * time.Millisecond, 1000 * time.Second, 10 * time.Second},
		{2 * time.Second, 100 * time.Second, 20 * time.Second},
		{2 * time.Second, 25 * time.Hour, 10 * time.Minute},
		{time.Hour, 1<<63 - 1, longestInterval},
		{1<<63 - 1, 1<<63 - 1, longestInterval},
	} {
		require.Equal(t, c.want, youngInterval(c.cost, c.mtbf), "cost %v, mtbf %v", c.cost, c.mtbf)
	}
}

// TestYoungIntervalIsCheapest compares the interval with its neighbours: the part of the time that is
// lost to checkpoints, and on average to the repetition of half an interval after each failure, must
// not be smaller for them.
func TestYoungIntervalIsCheapest(t *testing.T) {
	for _, cost := range []time.Duration{time.Millisecond, 40 * time.Millisecond, time.Second} {
		for _, mtbf := range []time.Duration{time.Hour, 30 * time.Hour} {
			lost := func(interval float64) float64 { return cost.Seconds()/interval + interval/2/mtbf.Seconds() }
			best := youngInterval(cost, mtbf).Seconds()
			for _, factor := range []float64{0.25, 0.9, 1.1, 4} {
				require.Less(t, lost(best), lost(best*factor), "cost %v, mtbf %v, factor %v", cost, mtbf, factor)
			}
		}
	}
}

// TestSaverChoosesTheInterval requires that the first checkpoint of a queue is due after the default
// interval, and later ones after the interval that follows from the measured delays of that queue.
func TestSaverChoosesTheInterval(t *testing.T) {
	saving(t, checkpointConfig{auto: true, mtbf: 1000 * time.Second}, func(t *testing.T, s *saver, store *memoryStore) {
		step := 0
		next := func(queue string, delay time.Duration) time.Duration {
			began := time.Now()
			for step++; !s.Due(queue, step); step++ {
				time.Sleep(100 * time.Millisecond)
			}
			c := cutAt(step, false)
			c.Delay = delay
			s.Save(queue, c)
			synctest.Wait()
			return time.Since(began)
		}
		s.Due("a", 0)
		require.Equal(t, DefaultCheckpointEvery, next("a", 50*time.Millisecond))
		require.Equal(t, 10*time.Second, next("a", 50*time.Millisecond))
		require.Equal(t, 10*time.Second, next("a", 350*time.Millisecond))
		require.Equal(t, 20*time.Second, next("a", 200*time.Millisecond), "the average of 50 and 350 ms is 200 ms")
		require.Equal(t, 20*time.Second, next("a", 0))
		require.Greater(t, next("b", 0), 10*time.Second, "another queue begins with the default")
		require.Equal(t, time.Second, next("b", 0))
		s.close(endFailed)
	})
}
