package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A variant is a way to survive failures.
type variant struct {
	Name string `json:"name"`
	// of returns the scenario for a mean time between failures of the job, in seconds.
	of func(mean float64) scenario
}

// curve has the goodput of a variant at several mean times between failures.
type curve struct {
	variant
	Points []point `json:"points"`
}

// point is a point of a curve.
type point struct {
	Mean     float64  `json:"mean"` // time between two failures of the job, in seconds
	Scenario scenario `json:"scenario"`
	estimate
}

// long is the job of the simulation: a day of supersteps of one second. Its workers are on
// machines of their own. A machine that is silent counts as lost after 1.5 s, and the next attempt begins
// 0.1 s later. (A delay that is doubled, because attempts do not run for --restart-window, is left out.)
// The workers take a minute to start and to read their rows: all of them without states in memory, else the
// new one. A checkpoint stops the supersteps for half a second and takes ten seconds to write.
var long = scenario{
	Work: (24 * time.Hour).Seconds(), Superstep: 1, Down: 1.6, Restart: 60, Checkpoint: 0.5, Write: 10,
}

// byDefault is the default interval between two checkpoints.
const byDefault = 30 * time.Second

// variants returns the ways in which a job can survive failures.
func variants(job scenario) []variant {
	every := func(seconds float64) scenario {
		s := job
		s.Every = max(1, int(math.Round(seconds/s.Superstep)))
		return s
	}
	without := job
	without.Every, without.Checkpoint, without.Write = 0, 0, 0
	return []variant{
		{Name: "no checkpoints", of: func(float64) scenario { return without }},
		{Name: fmt.Sprintf("checkpoints every %s", duration(byDefault.Seconds())), of: func(float64) scenario { return every(byDefault.Seconds()) }},
		{Name: "checkpoints at Young's interval", of: job.youngs},
		{Name: "states in memory", of: func(float64) scenario { return inMemory(job) }},
	}
}

// inMemory returns the scenario with states that are copied to the memory of other workers after each
// superstep, for 2 % of its time. Two workers are never lost at once.
func inMemory(job scenario) scenario {
	job.Every, job.Checkpoint, job.Write = 1, 0.02*job.Superstep, 0
	return job
}

// simulated returns the curve of each variant at the given mean times between failures.
func simulated(all []variant, means []float64, jobs int, seed uint64) []curve {
	curves := make([]curve, 0, len(all))
	for _, v := range all {
		c := curve{variant: v}
		for _, mean := range means {
			s := v.of(mean)
			c.Points = append(c.Points, point{mean, s, s.simulate(mean, jobs, seed)})
		}
		curves = append(curves, c)
	}
	return curves
}

// spread returns n values from lo to hi, each the same multiple of the one before.
func spread(lo, hi float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = lo * math.Pow(hi/lo, float64(i)/float64(n-1))
	}
	return all
}

// quantile returns the value of all that a share of them does not exceed. It sorts all.
func quantile(all []float64, share float64) float64 {
	slices.Sort(all)
	return all[min(int(share*float64(len(all))), len(all)-1)]
}
