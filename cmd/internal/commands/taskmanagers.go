package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// taskManagersCommand lists task managers.
type taskManagersCommand struct {
	clusterFlags
	Output outputForm `short:"o" enum:"text,json" default:"text" placeholder:"FORM" help:"text or json."`
}

// Run prints the task managers and the cluster's slots.
func (c *taskManagersCommand) Run(ctx context.Context, s *Streams) error {
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		reply, err := jm.TaskManagers(ctx, &wire.TaskManagersRequest{})
		if err != nil {
			return err
		}
		if c.Output == "json" {
			return writeJSON(s.Out, reply.TaskManagers)
		}
		return writeTaskManagers(s.Out, reply, time.Now())
	})
}

// writeTaskManagers prints a table of the task managers. If the job manager takes no jobs, or a
// task manager gets no or fewer workers, it also prints the reason.
func writeTaskManagers(w io.Writer, reply *wire.TaskManagersReply, now time.Time) error {
	if reply.Ailing != "" {
		if _, err := fmt.Fprintf(w, "the job manager takes no jobs: %s\n\n", plain(reply.Ailing)); err != nil {
			return err
		}
	}
	nodes := reply.TaskManagers
	if len(nodes) == 0 {
		_, err := fmt.Fprintln(w, "no task managers: start one with \"superstep taskmanager\"")
		return err
	}
	t := table{head: []string{"task manager", "state", "slots", "free", "memory", "platform", "version", "executable", "heard", "workers"}}
	slots, free := 0, 0
	for i := range nodes {
		n := &nodes[i]
		if n.State == "alive" { // slots of task managers in other states cannot be used
			slots, free = slots+n.Slots, free+n.Free
		}
		if n.State == wire.TaskManagerAbsent {
			t.row(n.Name, stateOf(n), "-", "-", "-", "-", "-", "-", "-", "-")
			continue
		}
		t.row(n.Name, stateOf(n), strconv.Itoa(n.Slots), strconv.Itoa(n.Free), humanize.Bytes(n.Memory), n.Platform.String(), versionOf(n.Build), cmp.Or(programs.Short(n.Executable), "-"),
			span(n.HeardAgo)+" ago", strconv.Itoa(len(n.Workers)))
	}
	if err := t.write(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\n%d of %d slots are free\n", free, slots); err != nil {
		return err
	}
	told := map[string]bool{} // names that several task managers may have
	for i := range nodes {
		for _, line := range reasonsOf(&nodes[i], now) {
			if told[line] {
				continue
			}
			told[line] = true
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// stateOf returns the state of a task manager, and why it gets no or fewer workers.
func stateOf(n *wire.TaskManagerInfo) string {
	state := n.State
	if n.Ailing != "" {
		state += ", takes no work"
	}
	if n.Cordon != nil {
		state += ", cordoned"
	}
	if n.Avoided != nil {
		state += ", avoided"
	}
	return state
}

// reasonsOf returns lines that say why a task manager gets no or fewer workers.
func reasonsOf(n *wire.TaskManagerInfo, now time.Time) (lines []string) {
	if n.Ailing != "" {
		lines = append(lines, plain(n.Name+" takes no work: "+n.Ailing))
	}
	if n.Cordon != nil {
		lines = append(lines, plain(n.Name+" is cordoned"+cordonText(n.Cordon, now)))
	}
	if a := n.Avoided; a != nil {
		lines = append(lines, plain(fmt.Sprintf("%s is avoided until %s, as %s died there", n.Name, a.Until.Format(time.RFC3339), humanize.Count(a.Died, "worker"))))
	}
	return lines
}

// cordonText returns text that says since when a task manager is cordoned, and why.
func cordonText(c *wire.Cordon, now time.Time) string {
	text := fmt.Sprintf(" since %s (%s)", c.Since.Format(time.RFC3339), ago(now, c.Since))
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

// versionOf returns the first word of build, a description of a build. This word is the version.
func versionOf(build string) string {
	version, _, _ := strings.Cut(build, " ")
	return cmp.Or(version, "-")
}

// cordonCommand keeps new workers from a task manager.
type cordonCommand struct {
	clusterFlags
	TaskManager string `arg:"" name:"taskmanager" help:"Name of the task manager, as the taskmanagers command lists it."`
	Reason      string `placeholder:"TEXT" help:"Why, for the people who see it."`
}

// Run cordons the task manager, and prints what that means for the cluster.
func (c *cordonCommand) Run(ctx context.Context, s *Streams) error {
	if !wire.CheckReason(c.Reason) {
		return UsageError{fmt.Errorf("--reason: want one line of printable text of at most %d bytes", wire.MaxReason)}
	}
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		reply, err := jm.Cordon(ctx, &wire.CordonRequest{TaskManager: c.TaskManager, Reason: c.Reason})
		if err != nil {
			return err
		}
		return writeCordoned(s.Out, reply, time.Now())
	})
}

// uncordonCommand allows new workers on a task manager.
type uncordonCommand struct {
	clusterFlags
	TaskManager string `arg:"" name:"taskmanager" help:"Name of the task manager, as the taskmanagers command lists it."`
}

// Run uncordons the task manager, and prints what that means for the cluster.
func (c *uncordonCommand) Run(ctx context.Context, s *Streams) error {
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		reply, err := jm.Uncordon(ctx, &wire.UncordonRequest{TaskManager: c.TaskManager})
		if err != nil {
			return err
		}
		return writeCordoned(s.Out, reply, time.Now())
	})
}

// writeCordoned prints the answer to a request to cordon or uncordon a task manager.
func writeCordoned(w io.Writer, r *wire.CordonReply, now time.Time) error {
	text := r.TaskManager
	switch {
	case r.Cordon == nil && r.Changed:
		text += " is not cordoned any more"
	case r.Cordon == nil:
		text += " was not cordoned"
	case r.Changed:
		text += " is cordoned" + cordonText(r.Cordon, now)
	default:
		text += " was cordoned already" + cordonText(r.Cordon, now)
	}
	text = plain(text) + "\n"
	switch {
	case r.Cordon == nil:
	case r.Registered == 0:
		text += "no task manager of this name is in the cluster now; one that registers gets no workers\n"
	case r.Workers == 0:
		text += "no workers run there\n"
	default:
		text += humanize.CountOf(r.Workers, "worker that runs there goes on\n", "workers that run there go on\n")
	}
	switch {
	case r.Slots == 0 && r.Cordon != nil:
		text += "no slots are left for new workers: jobs wait until a task manager is uncordoned or another one registers\n"
	case r.Slots == 0:
		text += "the cluster has no slots for new workers now\n"
	default:
		text += fmt.Sprintf("the cluster has %s for new workers\n", humanize.Count(r.Slots, "slot"))
	}
	_, err := io.WriteString(w, text)
	return err
}
