package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/internal/wire"
)

// recover adds the recorded jobs. It takes up again those that had not ended, if it has the data
// for that (adopt.go, resume.go). Other workers of former job managers are not used any more.
// Task managers kill them when the lease lapses or, if they register earlier, on the command of
// the core.
func (c *Core) recover(config Config) {
	jobs := slices.Clone(config.History)
	slices.SortStableFunc(jobs, func(a, b wire.JobInfo) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	var taken []*job
	for _, info := range jobs {
		r, resumes := config.Resume[info.ID]
		switch {
		case c.jobs[info.ID] != nil:
		case info.State.Ended():
			c.remember(info)
		case !resumes || !TakesUp(info, r.Continuation):
			c.endInterrupted(info, config.Doubts[info.ID])
		case info.State == wire.JobCommitting:
			c.revive(info, r, config.Doubts[info.ID])
		default:
			taken = append(taken, c.takeUp(info, r))
		}
	}
	latest := slices.Clone(taken)
	slices.SortStableFunc(latest, func(a, b *job) int { return b.deployed.Compare(a.deployed) })
	for _, j := range latest {
		c.adoptAttempt(j, config.Resume[j.info.ID])
	}
	for _, j := range taken {
		c.goOn(j, config.Resume[j.info.ID])
	}
	c.loseReplaced()
	slices.SortStableFunc(c.ended, func(a, b *job) int { return a.info.Ended.Compare(b.info.Ended) })
	c.forget()
}

// TakesUp reports whether a job with the given record, which has not ended, can be taken up again.
// Others end: a job that was being cancelled, and a job that was failing for a known cause.
func TakesUp(info wire.JobInfo, k Continuation) bool {
	switch info.State {
	case wire.JobFailing:
		return k.Deciding && info.Failure != nil
	case wire.JobCancelling:
		return false
	}
	return !info.State.Ended()
}

// remember adds a job that is recorded as ended.
func (c *Core) remember(info wire.JobInfo) *job {
	info.Outcomes, info.Plan = nil, nil
	j := &job{info: info}
	c.jobs[info.ID] = j
	c.ended = append(c.ended, j)
	return j
}

// endInterrupted ends a job that had not ended when the job manager stopped, and that is not taken
// up again.
func (c *Core) endInterrupted(info wire.JobInfo, doubt string) {
	j := c.remember(info)
	was := info.State
	const gaveUp = ", and could not take it up again; its log says why"
	message := "the job manager restarted while it ran" + gaveUp
	switch {
	case doubt != "" && was != wire.JobCancelling && was != wire.JobFailing:
		message = fmt.Sprintf("its last recorded state is %s; %s", was, doubt)
	case was == wire.JobCommitting:
		message = "the job manager restarted while its results were being made visible; all, some or none of them may be"
	case was == wire.JobCancelling:
		message = ""
	case was == wire.JobFailing && info.Failure != nil:
		message = info.Failure.Error()
	case was == wire.JobResolving || was == wire.JobWaiting || was == wire.JobRestarting:
		message = "the job manager restarted while it waited" + gaveUp
	case was == wire.JobDeploying:
		message = "the job manager restarted while it was deployed" + gaveUp
	}
	j.info.Ended = c.wall()
	switch {
	case was == wire.JobCancelling:
		j.info.State = wire.JobCancelled
	default:
		j.info.State, j.info.Detail = wire.JobFailed, message
		if was != wire.JobFailing || info.Failure == nil {
			j.info.Failure = &wire.Failure{Kind: wire.ClusterFailure, Message: message, Worker: -1, ExitCode: -1}
		}
	}
	c.record(j, false)
}
