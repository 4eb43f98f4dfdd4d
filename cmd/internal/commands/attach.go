package commands

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// attachCommand follows a job until the job ends. It prints the same as a client that waits for
// the job.
type attachCommand struct {
	clusterFlags
	Job   string `arg:"" help:"ID of the job, or the start of it if no other job has the same."`
	Quiet bool   `short:"q" help:"Print what the job prints and nothing of its states and progress."`
}

// Help describes the output and the exit codes.
func (c *attachCommand) Help() string {
	return "What the job prints goes to standard output, from the beginning; its states and progress go to standard error. The exit code is 0 if the job finishes and 1 if it fails or is cancelled. Ctrl-C ends the command, with exit code 1, and leaves the job running."
}

// Run follows the job until it ends.
func (c *attachCommand) Run(ctx context.Context, s *Streams) error {
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		a := &attached{out: s.Out, err: s.Err, job: c.Job}
		if c.Quiet {
			a.err = io.Discard
		}
		info, err := jm.FollowToEnd(ctx, wire.JobID(c.Job), false, a.event)
		switch {
		case err != nil && ctx.Err() != nil:
			fmt.Fprintf(s.Err, "job %s keeps running: superstep attach follows it again, superstep cancel ends it\n", a.job)
			return ExitError(exitFailed)
		case err != nil:
			return err
		case info.State == wire.JobFinished:
			return nil
		}
		return ended(s.Err, info)
	})
}

// ended returns the error for a job that was cancelled or has failed. info describes the job.
// If the failure of the job contains its last lines of output, ended writes these lines to w.
func ended(w io.Writer, info *wire.JobInfo) error {
	if f := info.Failure; f != nil {
		for _, line := range f.LastLines {
			fmt.Fprintf(w, "  | %s\n", plain(line))
		}
		return fmt.Errorf("job %s %s: %s", info.ID, info.State.Verb(), terminalText(f.Error()))
	}
	return fmt.Errorf("job %s %s: %s", info.ID, info.State.Verb(), plain(info.Detail))
}

// progressEvery is the interval between reports of progress.
const progressEvery = time.Second

// attached prints the events of a job. It prints the output of the job to out, and its states
// and progress to err.
type attached struct {
	out, err io.Writer
	job      string
	plan     *plan.Plan
	state    string    // the state that was printed last
	progress string    // the progress that was printed last
	uncopied []string  // queues of which was printed that their states are not copied
	reported time.Time // when progress was printed last, by the job manager's clock
}

// event prints e if it is an event of output, state or progress, and ignores other events. It
// does not print progress that is unchanged, or that follows the last printed progress within
// progressEvery.
func (a *attached) event(e *wire.Event) error {
	switch {
	case e.Output != nil:
		if _, err := a.out.Write(e.Output.Text); err != nil {
			return QuietError{err}
		}
	case e.State != nil:
		return a.reportState(e.State)
	case e.Progress != nil:
		for _, u := range e.Progress.Uncopied {
			if !slices.Contains(a.uncopied, u.Queue) {
				a.uncopied = append(a.uncopied, u.Queue)
				fmt.Fprintf(a.err, "%s\n", plain(u.String()))
			}
		}
		text := progressText(e.Progress, a.plan)
		if text == "" || text == a.progress || e.Time.Sub(a.reported) < progressEvery {
			return nil
		}
		a.progress, a.reported = text, e.Time
		fmt.Fprintf(a.err, "%s\n", text)
	}
	return nil
}

// reportState prints the state of the job if it has changed.
func (a *attached) reportState(info *wire.JobInfo) (err error) {
	if a.plan == nil {
		if a.plan, err = planOf(info); err != nil {
			return err
		}
	}
	a.job = string(info.ID)
	text := info.State.String()
	if info.Detail != "" && !info.State.Ended() {
		text += ": " + plain(info.Detail)
	}
	if text != a.state {
		a.state = text
		fmt.Fprintf(a.err, "job %s is %s\n", info.ID, text)
	}
	return nil
}

// progressText returns a line of text with the progress of a job with plan p, or "" if p is
// nil.
func progressText(at *wire.Progress, p *plan.Plan) string {
	if p == nil {
		return ""
	}
	text, done, all := "", 0, 0
	for i := range p.Vertices {
		if i < len(at.Vertices) {
			done, all = done+at.Vertices[i].ShardsDone, all+p.Shards
		}
	}
	if all > 0 {
		text = fmt.Sprintf("%d of %d shards done", done, all)
	}
	for i, q := range p.Queues {
		if i < len(at.Queues) && at.Queues[i].Superstep > 0 {
			text += "; " + queueText(&q, &at.Queues[i])
		}
	}
	return text
}

// queueText returns a line of text with the progress of queue q.
func queueText(q *plan.Queue, now *wire.QueueProgress) string {
	limit := ""
	if q.MaxSupersteps > 0 {
		limit = fmt.Sprintf(" of at most %d", q.MaxSupersteps)
	}
	line := fmt.Sprintf("queue %s: superstep %d%s", plain(q.Name), now.Superstep, limit)
	for _, v := range now.Values {
		line += fmt.Sprintf("  %s %g", plain(v.Name), v.Value)
	}
	return line
}
