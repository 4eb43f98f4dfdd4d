package commands

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// scaleCommand changes the parallelism of a job.
type scaleCommand struct {
	clusterFlags
	Job         string `arg:"" help:"ID of the job, or the start of it. A running job that saves no states, as with --copies 0 and no --checkpoint-dir, keeps its number until it ends or is restarted."`
	Parallelism string `arg:"" placeholder:"N|MIN:MAX" help:"Number of subtasks of each vertex, or the smallest and the largest number, such as 2:8."`
}

// Run changes the parallelism, and prints what follows.
func (c *scaleCommand) Run(ctx context.Context, s *Streams) error {
	to, err := wire.ParseParallelism(c.Parallelism)
	if err != nil {
		return UsageError{err}
	}
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		reply, err := jm.Scale(ctx, &wire.ScaleRequest{Job: wire.JobID(c.Job), Parallelism: to})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.Out, scaled(&reply.Job))
		return err
	})
}

// scaled says what a job does after its parallelism was set.
func scaled(j *wire.JobInfo) string {
	text := fmt.Sprintf("%s may run at parallelism %s", j.ID, j.Allowed)
	runs := j.State == wire.JobRunning || j.State == wire.JobDeploying
	switch {
	case runs && j.Allowed.Has(j.Parallelism):
		return text + fmt.Sprintf("; it runs at %d", j.Parallelism)
	case runs && j.Parallelism > j.Allowed.Max:
		return text + fmt.Sprintf("; it runs at %d until it is saved", j.Parallelism)
	case runs:
		return text + fmt.Sprintf("; it runs at %d until it is saved and %s can be had", j.Parallelism, humanize.CountOf(j.Allowed.Min, "slot", "slots"))
	}
	return text + fmt.Sprintf("; it is %s", j.State)
}
