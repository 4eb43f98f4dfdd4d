package main

import (
	"math"
	"math/rand/v2"
)

// scenario describes a job of supersteps whose workers fail. All times are in seconds.
//
// The job runs on workers that fail independently of each other, each as a Poisson process. So the
// failures of the job are a Poisson process too, whose rate is the sum of the rates of the
// workers. A failure loses what was computed since the last complete checkpoint, or since the
// beginning. Then the workers are down, until all of them are started again.
type scenario struct {
	Work      float64 `json:"work"`      // time that the job takes without failures and checkpoints
	Superstep float64 `json:"superstep"` // time of a superstep
	// Down is the time from a failure until new workers are started. It includes the detection of
	// the failure. No worker runs in this time, so none can fail.
	Down float64 `json:"down"`
	// Restart is the time that new workers take until they compute: they start, connect, read the
	// rows again and load the checkpoint. They can fail in this time, as in any other.
	Restart float64 `json:"restart"`
	// Every is the number of supersteps between two checkpoints; 0 means no checkpoints.
	Every int `json:"every"`
	// Checkpoint is the time that a checkpoint stops the supersteps.
	Checkpoint float64 `json:"checkpoint"`
	// Write is the time from then until the checkpoint is complete, while the supersteps go on.
	// The next checkpoint does not begin earlier.
	Write float64 `json:"write"`
}

// outcome is the outcome of a job.
type outcome struct {
	Wall     float64 `json:"wall"`     // time from the first superstep to the end, or to the moment when the job was given up
	Failures int     `json:"failures"` // number of failures while workers ran
	Finished bool    `json:"finished"` // false if the job was given up
}

// run simulates a job. next returns the time of the first failure that is later than the time
// after; times count from the first superstep, and the argument never falls. A job that takes
// longer than limit is given up.
func (s scenario) run(next func(after float64) float64, limit float64) (o outcome) {
	steps := s.supersteps()
	every := s.every(steps)
	cycle := float64(float64(every)*s.Superstep) + s.Checkpoint
	now, done := 0.0, 0 // done is the number of supersteps before the last complete checkpoint
	for failure := next(0); ; {
		left := steps - done
		checkpoints := (left - 1) / every // none after the last superstep
		end := now + float64(float64(left)*s.Superstep) + float64(float64(checkpoints)*s.Checkpoint)
		if end <= failure {
			o.Wall, o.Finished = end, true
			return o
		}
		if complete := math.Floor((failure - now - s.Write) / cycle); complete > 0 {
			done += min(int(complete), checkpoints) * every // whatever the rounding
		}
		// The workers start, until they do so without a failure.
		for now = failure; ; now = failure {
			o.Failures++
			started := now + s.Down
			failure = next(started)
			if now = started + s.Restart; failure >= now {
				break
			}
			if failure > limit {
				break
			}
		}
		if now > limit {
			o.Wall = now
			return o
		}
	}
}

// supersteps returns the number of supersteps of the job.
func (s scenario) supersteps() int { return max(1, int(math.Round(s.Work/s.Superstep))) }

// every returns the number of supersteps between two checkpoints, for a job with the given number
// of supersteps. Without checkpoints it is that number.
func (s scenario) every(steps int) int {
	if s.Every == 0 {
		return steps
	}
	return min(steps, max(s.Every, int(math.Ceil(s.Write/s.Superstep))))
}

// youngs returns the scenario with a checkpoint after Young's interval, the square root of twice
// the time of a checkpoint times the mean time between failures of the job, rounded to
// supersteps. See J. W. Young, A first order approximation to the optimum checkpoint interval,
// Communications of the ACM 17 (1974).
func (s scenario) youngs(mean float64) scenario {
	s.Every = max(1, int(min(math.Round(math.Sqrt(2*s.Checkpoint*mean)/s.Superstep), float64(s.supersteps()))))
	return s
}

// poisson is a Poisson process: the failures of all workers of a job.
type poisson struct {
	draw *rand.Rand
	mean float64 // time between two failures
	last float64 // time of the last failure that was drawn
}

// newPoisson returns the process with a mean time between failures. Another stream of the same
// seed is another process.
func newPoisson(mean float64, seed, stream uint64) *poisson {
	return &poisson{draw: rand.New(rand.NewPCG(seed, stream)), mean: mean}
}

// next returns the time of the first failure after the given time, which must not be earlier than
// in the call before.
func (p *poisson) next(after float64) float64 {
	for p.last <= after {
		p.last += float64(p.draw.ExpFloat64() * p.mean)
	}
	return p.last
}

// estimate is the outcome of many simulated jobs.
type estimate struct {
	// Goodput is the useful time divided by the wall time, over all jobs. Nothing of a job that
	// was given up is useful.
	Goodput float64 `json:"goodput"`
	// Low and High are the goodput of the job that is slower than 95 %, and of the one that is
	// faster than 95 % of the jobs.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// patience is the number of times its work that a simulated job may take before it is given up.
const patience = 100

// simulate runs a scenario many times, with different failures. The result is a function of the
// arguments.
func (s scenario) simulate(mean float64, jobs int, seed uint64) estimate {
	useful, wall, finished := 0.0, 0.0, 0
	each := make([]float64, 0, jobs)
	for job := range jobs {
		o := s.run(newPoisson(mean, seed, uint64(job)).next, patience*s.Work)
		goodput := 0.0
		if o.Finished {
			finished++
			useful += s.Work
			goodput = s.Work / o.Wall
		}
		wall += o.Wall
		each = append(each, goodput)
		if job == hopeless && finished == 0 {
			return estimate{}
		}
	}
	return estimate{useful / wall, quantile(each, 0.05), quantile(each, 0.95)}
}

// If the first jobs up to this one are all given up, simulate does not run the others.
const hopeless = 20
