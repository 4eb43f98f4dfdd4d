package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/internal/wire"
)

// recover adds the recorded jobs. Their former workers are not used any more. Task managers
// kill these workers when the lease lapses or, if they register earlier, on the command of the
// core.
func (c *Core) recover(config Config) {
	jobs := slices.Clone(config.History)
	slices.SortStableFunc(jobs, func(a, b wire.JobInfo) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	for _, info := range jobs {
		r, resumes := config.Resume[info.ID]
		switch {
		case c.jobs[info.ID] != nil:
		case info.State == wire.JobCommitting && resumes:
			c.revive(info, r, config.Doubts[info.ID])
		case !info.State.Ended():
			c.endInterrupted(info, config.Doubts[info.ID])
		default:
			c.remember(info)
		}
	}
	slices.SortStableFunc(c.ended, func(a, b *job) int { return a.info.Ended.Compare(b.info.Ended) })
	c.forget()
}

// remember adds a job that is recorded as ended.
func (c *Core) remember(info wire.JobInfo) *job {
	info.Outcomes, info.Plan = nil, nil
	j := &job{info: info}
	c.jobs[info.ID] = j
	c.ended = append(c.ended, j)
	return j
}

// endInterrupted fails a job whose last record says that it had not ended when the job manager
// stopped.
func (c *Core) endInterrupted(info wire.JobInfo, doubt string) {
	j := c.remember(info)
	was := info.State
	message := "the job manager restarted while it ran"
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
		message = "the job manager restarted while it waited"
	case was == wire.JobDeploying:
		message = "the job manager restarted while it was deployed"
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
