package commands

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// savepointCommand saves the state of a running job.
type savepointCommand struct {
	clusterFlags
	Job   string `arg:"" help:"ID of the job, or the start of it. The job needs --checkpoint-dir."`
	Place string `arg:"" placeholder:"DIR" help:"Directory on the machine of worker 0, which is made, or s3://BUCKET/PREFIX."`
}

// Run makes the savepoint, and prints what it has.
func (c *savepointCommand) Run(ctx context.Context, s *Streams) error {
	place := c.Place
	if place != "" && !strings.Contains(place, "://") {
		var err error
		if place, err = filepath.Abs(place); err != nil {
			return err
		}
	}
	if err := wire.CheckPlace(place); err != nil {
		return UsageError{err}
	}
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		reply, err := jm.Savepoint(ctx, &wire.SavepointRequest{Job: wire.JobID(c.Job), Place: place})
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s is saved in %s\n", reply.Job, place)
		if len(reply.Checkpoint.Queues) == 0 {
			text += "no queue has done a superstep: a run from here begins at superstep 1\n"
		}
		for _, q := range reply.Checkpoint.Queues {
			text += fmt.Sprintf("queue %q: superstep %d", q.Name, q.Superstep)
			if q.Ended {
				text += ", the last"
			}
			text += "\n"
		}
		_, err = fmt.Fprint(s.Out, text)
		return err
	})
}

// drainCommand makes the jobs on a task manager go on elsewhere.
type drainCommand struct {
	clusterFlags
	TaskManager string        `arg:"" name:"taskmanager" help:"Name of the task manager, as the taskmanagers command lists it."`
	Reason      string        `placeholder:"TEXT" help:"Why, for the people who see it."`
	Within      time.Duration `placeholder:"TIME" help:"Time after which jobs leave that could not be saved, such as 30s; they begin at their last checkpoint, or at superstep 1 (default: never)."`
}

// Run drains the task manager, and prints which jobs leave.
func (c *drainCommand) Run(ctx context.Context, s *Streams) error {
	switch {
	case !wire.CheckReason(c.Reason):
		return UsageError{fmt.Errorf("--reason: want one line of printable text of at most %d bytes", wire.MaxReason)}
	case c.Within < 0:
		return UsageError{fmt.Errorf("--within is %v: want a positive time", c.Within)}
	}
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		reply, err := jm.Drain(ctx, &wire.DrainRequest{TaskManager: c.TaskManager, Reason: c.Reason, Within: c.Within})
		if err != nil {
			return err
		}
		if err := writeCordoned(s.Out, &reply.CordonReply, time.Now()); err != nil {
			return err
		}
		_, err = io.WriteString(s.Out, drained(reply, c.Within))
		return err
	})
}

// drained says which jobs leave a task manager, and which stay there for the time being, as of their state
// nothing would be left.
func drained(reply *wire.DrainReply, within time.Duration) string {
	leave := jobsThat(reply.Leave, "leaves: it is saved and then goes on elsewhere", "leave: each is saved and then goes on elsewhere")
	const why = "no checkpoints and no other workers or too few slots elsewhere"
	if within > 0 {
		return leave + jobsThat(reply.Stay,
			fmt.Sprintf("would lose its state, as it has %s: after %v it begins again elsewhere", why, within),
			fmt.Sprintf("would lose their states, as they have %s: after %v they begin again elsewhere", why, within))
	}
	return leave + jobsThat(reply.Stay,
		"would lose its state, as it has "+why+": it stays until that changes or it has ended (--within limits that)",
		"would lose their states, as they have "+why+": they stay until that changes or they have ended (--within limits that)")
}

// jobsThat returns a line that says something of one job or of several, "" if there is none.
func jobsThat(jobs []wire.JobID, one, several string) string {
	names := make([]string, len(jobs))
	for i, id := range jobs {
		names[i] = string(id)
	}
	said := several
	switch len(jobs) {
	case 0:
		return ""
	case 1:
		said = one
	}
	return plain(humanize.List(names, ", ", 10)) + " " + said + "\n"
}
