package commands

import (
	"context"
	"fmt"
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
		for _, list := range []struct {
			jobs []wire.JobID
			what string
		}{{reply.Leave, "leave: they are saved, and go on elsewhere"}, {reply.Stay, c.stays()}} {
			if len(list.jobs) == 0 {
				continue
			}
			names := make([]string, len(list.jobs))
			for i, id := range list.jobs {
				names[i] = string(id)
			}
			if _, err := fmt.Fprintln(s.Out, plain(humanize.List(names, ", ", 10)), list.what); err != nil {
				return err
			}
		}
		return nil
	})
}

// stays says what becomes of jobs of whose state nothing would be left.
func (c *drainCommand) stays() string {
	if c.Within > 0 {
		return fmt.Sprintf("would lose their state, as they have no checkpoints and no other workers or too few slots elsewhere: after %v they begin again elsewhere", c.Within)
	}
	return "would lose their state, as they have no checkpoints and no other workers or too few slots elsewhere: they stay until that changes, or they have ended (--within limits that)"
}
