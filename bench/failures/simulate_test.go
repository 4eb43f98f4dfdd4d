package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// segment returns the expected time of w seconds of work that begin anew after each failure. With
// no time of restart it is (mean + down)(exp(w/mean) - 1); with no time down it is the expression
// of J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps,
// Future Generation Computer Systems 22 (2006), in which the restart can fail as well.
//
// A recovery that fails begins again, so that its expected time X satisfies
// X = down + mean(1 - q) + (1 - q)X, where q = exp(-restart/mean). Likewise the time S of the
// segment satisfies S = mean(1 - p) + (1 - p)(X + S), where p = exp(-w/mean).
func segment(w, mean, down, restart float64) float64 {
	return (mean + down) * math.Exp(restart/mean) * math.Expm1(w/mean)
}

// expected returns the expected time of a job. Each checkpoint begins a new segment, so it must be
// complete when the supersteps go on.
func (s scenario) expected(mean float64) float64 {
	steps := s.supersteps()
	every := s.every(steps)
	wall, left := 0.0, steps
	for ; left > every; left -= every {
		wall += segment(float64(every)*s.Superstep+s.Checkpoint, mean, s.Down, s.Restart)
	}
	return wall + segment(float64(left)*s.Superstep, mean, s.Down, s.Restart)
}

// TestExpectedTime compares the mean time of simulated jobs with closed forms.
func TestExpectedTime(t *testing.T) {
	const jobs = 4000
	for _, s := range []scenario{
		{Work: 100, Superstep: 1},
		{Work: 100, Superstep: 1, Down: 30},
		{Work: 100, Superstep: 1, Restart: 30},
		{Work: 100, Superstep: 1, Down: 20, Restart: 10},
		{Work: 100, Superstep: 1, Down: 20, Restart: 10, Every: 10, Checkpoint: 0.5},
		{Work: 100, Superstep: 1, Down: 2, Restart: 40, Every: 7, Checkpoint: 2},
		{Work: 100, Superstep: 1, Every: 1},
	} {
		for _, mean := range []float64{25, 60, 150, 5000} {
			sum, squares := 0.0, 0.0
			for job := range jobs {
				o := s.run(newPoisson(mean, 1, uint64(job)).next, math.Inf(1))
				require.True(t, o.Finished)
				sum, squares = sum+o.Wall, squares+o.Wall*o.Wall
			}
			got := sum / jobs
			deviation := math.Sqrt((squares/jobs - got*got) / jobs)
			require.InDelta(t, s.expected(mean), got, 4*deviation+1e-9, "%+v, mean %v", s, mean)
		}
	}
}

// TestBestInterval requires that the best interval is close to Young's if a checkpoint takes much
// less time than there is between failures, and that nothing is gained by any other.
func TestBestInterval(t *testing.T) {
	for _, mean := range []float64{600, 3600, 86400} {
		s := scenario{Work: 86400, Superstep: 0.25, Down: 17, Restart: 60, Checkpoint: 0.5}
		youngs := s.youngs(mean)
		require.InDelta(t, math.Sqrt(2*0.5*mean), float64(youngs.Every)*s.Superstep, s.Superstep/2)
		best, least := 0, math.Inf(1)
		for every := youngs.Every / 4; every < youngs.Every*4; every++ {
			s.Every = every
			if wall := s.expected(mean); wall < least {
				best, least = every, wall
			}
		}
		require.InEpsilon(t, youngs.Every, best, 0.05, "mean %v", mean)
		require.Less(t, youngs.expected(mean), 1.0001*least)
		// So do the simulated jobs: a third and three times the interval are worse.
		at := youngs.simulate(mean, 300, 1).Goodput
		for _, every := range []int{youngs.Every / 3, youngs.Every * 3} {
			s.Every = every
			require.Less(t, s.simulate(mean, 300, 1).Goodput, at, "mean %v, every %d", mean, every)
		}
	}
	require.Equal(t, 1, scenario{Work: 10, Superstep: 1}.youngs(60).Every, "checkpoints that cost nothing are written after every superstep")
	require.Equal(t, 10, scenario{Work: 10, Superstep: 1, Checkpoint: 1}.youngs(math.Inf(1)).Every)
}

// stepwise is the reference of scenario.run. It looks for a failure in every superstep.
func stepwise(s scenario, failures []float64) (now float64, count int) {
	before := func(until float64) (at float64, ok bool) {
		for _, at := range failures {
			if at > now && at < until {
				return at, true
			}
		}
		return until, false
	}
	durable, saving, saved := 0, 0, math.Inf(1) // the checkpoint of superstep saving is complete at the time saved
	for done := 0; done < s.supersteps(); {
		took := s.Superstep
		if s.Every > 0 && done > durable && done%s.Every == 0 {
			took += s.Checkpoint
			saving, saved = done, now+s.Checkpoint+s.Write
		}
		at, failed := before(now + took)
		if saved <= at {
			durable, saved = saving, math.Inf(1)
		}
		now = at
		if done++; !failed {
			continue
		}
		for done, saved = durable, math.Inf(1); failed; {
			count++
			now += s.Down
			now, failed = before(now + s.Restart)
		}
	}
	return now, count
}

// TestReference compares simulated jobs with the reference, for random scenarios. The failures are
// those of single workers, each with a process of its own.
func TestReference(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		s := scenario{Work: float64(1 + draw.IntN(60)), Superstep: 1, Down: draw.Float64() * 5, Restart: draw.Float64() * 5}
		if draw.IntN(3) > 0 {
			s.Every, s.Checkpoint = 1+draw.IntN(8), draw.Float64()
			s.Write = draw.Float64() * float64(s.Every)
		}
		const end = 100_000
		var failures []float64
		workers := 1 + draw.IntN(8)
		for worker := range workers {
			process := newPoisson(float64(workers)*(10+90*draw.Float64()), draw.Uint64(), uint64(worker))
			for at := process.next(0); at < end; at = process.next(at) {
				failures = append(failures, at)
			}
		}
		slices.Sort(failures)
		wall, count := stepwise(s, failures)
		o := s.run(func(after float64) float64 {
			i, found := slices.BinarySearch(failures, after)
			if found {
				i++
			}
			return append(failures, math.Inf(1))[i]
		}, end)
		require.True(t, o.Finished)
		require.InDelta(t, wall, o.Wall, 1e-6, "%+v", s)
		require.Equal(t, count, o.Failures, "%+v", s)
	}
}

// given returns the failures of a test.
func given(times ...float64) func(after float64) float64 {
	return func(after float64) float64 {
		for _, at := range times {
			if at > after {
				return at
			}
		}
		return math.Inf(1)
	}
}

// TestByHand compares jobs with times that were computed by hand.
func TestByHand(t *testing.T) {
	s := scenario{Work: 10, Superstep: 1, Down: 2, Restart: 3, Every: 4, Checkpoint: 0.5, Write: 0.25}
	for name, c := range map[string]struct {
		s        scenario
		failures []float64
		wall     float64
		count    int
	}{
		"no failure":                       {s, nil, 11, 0}, // two checkpoints
		"no failure, no checkpoint":        {scenario{Work: 10, Superstep: 1}, nil, 10, 0},
		"before a checkpoint is complete":  {s, []float64{4.7}, 4.7 + 5 + 11, 1},
		"after it is complete":             {s, []float64{4.8}, 4.8 + 5 + 6.5, 1},
		"while no worker runs":             {s, []float64{4.8, 5, 6.7}, 4.8 + 5 + 6.5, 1},
		"while workers restart":            {s, []float64{4.8, 7, 12}, 12 + 5 + 6.5, 3},
		"at the end":                       {s, []float64{10.9}, 10.9 + 5 + 2, 1},
		"no checkpoint":                    {scenario{Work: 10, Superstep: 1, Down: 2, Restart: 3}, []float64{9, 20}, 20 + 5 + 10, 2},
		"writing takes longer than a pair": {scenario{Work: 10, Superstep: 1, Every: 2, Write: 5}, []float64{9.5}, 9.5 + 10, 1},
	} {
		o := c.s.run(given(c.failures...), 1000)
		require.True(t, o.Finished, name)
		require.InDelta(t, c.wall, o.Wall, 1e-9, name)
		require.Equal(t, c.count, o.Failures, name)
	}
}

// TestGivenUp requires that a job that cannot finish is given up, and that nothing of it counts.
func TestGivenUp(t *testing.T) {
	s := scenario{Work: 1000, Superstep: 1, Down: 1}
	o := s.run(newPoisson(10, 1, 1).next, 5000)
	require.False(t, o.Finished)
	require.Greater(t, o.Wall, 5000.0)
	require.Zero(t, s.simulate(10, 1000, 1))
	s.Restart = 1e6 // the workers never get ready
	require.False(t, s.run(newPoisson(10, 1, 1).next, 5000).Finished)
}

// TestSameSeed requires that an estimate is a function of its arguments, and between its bounds.
func TestSameSeed(t *testing.T) {
	s := scenario{Work: 100, Superstep: 1, Down: 1, Restart: 2, Every: 5, Checkpoint: 0.1}
	a := s.simulate(20, 200, 7)
	require.Equal(t, a, s.simulate(20, 200, 7))
	require.NotEqual(t, a, s.simulate(20, 200, 8))
	require.Less(t, a.Low, a.Goodput)
	require.Less(t, a.Goodput, a.High)
	require.InDelta(t, s.Work/s.expected(20), a.Goodput, 0.02)
}
