package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// listCommand lists jobs.
type listCommand struct {
	clusterFlags
	State  []string   `placeholder:"STATE" help:"Only jobs in these states, such as running, waiting, failed."`
	Limit  int        `short:"n" default:"50" placeholder:"N" help:"Largest number of jobs to list, newest first; 0 lists all (default: ${default})."`
	Output outputForm `short:"o" enum:"text,json" default:"text" placeholder:"FORM" help:"text or json."`
}

// Run prints the jobs.
func (c *listCommand) Run(ctx context.Context, s *Streams) error {
	req := wire.ListRequest{Limit: c.Limit}
	for _, text := range c.State {
		state, err := wire.ParseJobState(strings.ToLower(text))
		if err != nil {
			return UsageError{fmt.Errorf("--state: %w; the states are %s", err, strings.Join(stateNames(), ", "))}
		}
		req.States = append(req.States, state)
	}
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		reply, err := jm.List(ctx, &req)
		if err != nil {
			return err
		}
		if c.Output == "json" {
			jobs := make([]jobObject, 0, len(reply.Jobs))
			for i := range reply.Jobs {
				jobs = append(jobs, objectOf(&reply.Jobs[i]))
			}
			return writeJSON(s.Out, jobs)
		}
		if err := writeJobs(s.Out, reply.Jobs, time.Now()); err != nil || c.Limit <= 0 || len(reply.Jobs) < c.Limit {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "\nthe newest %d; there may be more, which --limit 0 shows\n", c.Limit)
		return err
	})
}

func stateNames() []string {
	var names []string
	for _, state := range wire.JobStates() {
		names = append(names, state.String())
	}
	return names
}

// jobObject is a job as JSON, with the name of its state instead of a number.
type jobObject struct {
	State string `json:"state"`
	wire.JobInfo
	Plan *plan.Plan `json:"plan,omitempty"`
}

func objectOf(j *wire.JobInfo) jobObject { return jobObject{State: j.State.String(), JobInfo: *j} }

// writeJobs prints jobs as a table.
func writeJobs(w io.Writer, jobs []wire.JobInfo, now time.Time) error {
	if len(jobs) == 0 {
		_, err := fmt.Fprintln(w, "no jobs")
		return err
	}
	t := table{head: []string{"job", "name", "state", "slots", "submitted", "ran", "detail"}}
	for i := range jobs {
		j := &jobs[i]
		detail, _, _ := strings.Cut(j.Detail, "\n") // the detail of a panic continues with the stack
		t.row(string(j.ID), j.Name, j.State.String(), slotsOf(j), ago(now, j.Submitted), ran(j, now), detail)
	}
	return t.write(w)
}

// slotsOf returns the number of slots that a job needs, or "-" if it has not been compiled yet.
func slotsOf(j *wire.JobInfo) string {
	if j.Slots == 0 {
		return "-"
	}
	return strconv.Itoa(j.Slots)
}

// ran returns how long a job has run, or "-" if it has not started.
func ran(j *wire.JobInfo, now time.Time) string {
	if j.Started.IsZero() {
		return "-"
	}
	end := now
	if !j.Ended.IsZero() {
		end = j.Ended
	}
	return span(end.Sub(j.Started))
}

// showCommand shows one job.
type showCommand struct {
	clusterFlags
	Job    string `arg:"" help:"ID of the job, or the start of it if no other job has the same."`
	Plan   string `enum:"none,text,json,dot" default:"none" placeholder:"FORM" help:"Print only the plan, as text, json or dot."`
	Output string `short:"o" enum:"text,json" default:"text" placeholder:"FORM" help:"text or json."`
}

// Run prints the job.
func (c *showCommand) Run(ctx context.Context, s *Streams) error {
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		j, err := jm.Show(ctx, &wire.ShowRequest{Job: wire.JobID(c.Job)})
		if err != nil {
			return err
		}
		p, err := planOf(j)
		if err != nil {
			return err
		}
		switch {
		case c.Plan != "none":
			return writePlan(s.Out, p, c.Plan)
		case c.Output == "json":
			o := objectOf(j)
			o.Plan = p
			return writeJSON(s.Out, o)
		}
		return writeJob(s.Out, j, p, time.Now())
	})
}

// planOf decodes the plan of a job, or returns nil if there is none yet.
func planOf(j *wire.JobInfo) (*plan.Plan, error) {
	if len(j.Plan) == 0 {
		return nil, nil
	}
	p, err := plan.DecodePlan(j.Plan)
	if err != nil {
		return nil, fmt.Errorf("the plan of job %s: %w", j.ID, err)
	}
	return p, nil
}

func writePlan(w io.Writer, p *plan.Plan, form string) error {
	if p == nil {
		return errors.New("the job has no plan yet: its inputs are still being resolved")
	}
	return p.Print(w, form)
}

// writeJob prints the properties, the failure, the workers and the progress of a job.
func writeJob(w io.Writer, j *wire.JobInfo, p *plan.Plan, now time.Time) error {
	lines := [][2]string{
		{"job", string(j.ID)},
		{"name", j.Name},
		{"state", j.State.String()},
		{"detail", j.Detail},
		{"submitted", j.Submitted.Format(time.RFC3339) + " (" + ago(now, j.Submitted) + ")"},
		{"ran", ran(j, now)},
		{"parallelism", subtasks(j)},
		{"priority", priority(j)},
		{"executable", j.Artifact},
		{"build", j.Build},
		{"fingerprint", j.Fingerprint},
	}
	for _, l := range lines {
		if l[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-12s %s\n", l[0], plain(l[1])); err != nil {
			return err
		}
	}
	if f := j.Failure; f != nil {
		fmt.Fprintf(w, "\n%s\n", terminalText(f.Error()))
		for _, line := range f.LastLines {
			fmt.Fprintf(w, "  | %s\n", plain(line))
		}
	}
	if len(j.Lost) > 0 {
		if err := writeAttempts(w, j); err != nil {
			return err
		}
		if err := writeRecoveries(w, j.Lost); err != nil {
			return err
		}
	}
	if len(j.Workers) > 0 {
		fmt.Fprintln(w)
		t := table{head: []string{"worker", "task manager", "slots", "address"}}
		for i, at := range j.Workers {
			slots := fmt.Sprintf("%d–%d", at.Slots.Lo, at.Slots.Hi-1)
			switch {
			case at.Left:
				slots = "none, has left"
			case at.Slots.Hi == at.Slots.Lo:
				slots = "none, hands over"
			}
			t.row(strconv.Itoa(i), at.TaskManager, slots, at.Address)
		}
		if err := t.write(w); err != nil {
			return err
		}
	}
	return writeProgress(w, j.Progress, p)
}

// subtasks returns with how many subtasks a job runs and may run.
func subtasks(j *wire.JobInfo) string {
	allowed := ""
	if j.Resizable() {
		allowed = fmt.Sprintf(" (%s allowed)", j.Allowed)
	}
	return fmt.Sprintf("%d%s of %d shards, seed %d", j.Parallelism, allowed, j.Shards, j.Seed)
}

// priority returns the priority of a job as text, "" if it is the default.
func priority(j *wire.JobInfo) string {
	if j.Priority == 0 {
		return ""
	}
	return strconv.Itoa(j.Priority)
}

// writeAttempts prints the attempts of a job that was restarted: those that were lost, and the
// current or last one.
func writeAttempts(w io.Writer, j *wire.JobInfo) error {
	fmt.Fprintln(w)
	if first := j.Lost[0].Number; len(j.Lost) == wire.MaxLost && first > 1 {
		fmt.Fprintf(w, "the attempts before %d are not listed\n", first)
	}
	t := table{head: []string{"attempt", "began", "ran after", "ended", "why it ended", "continued from"}}
	if j.Origin == nil && !slices.ContainsFunc(j.Lost, func(a wire.LostAttempt) bool { return a.From != "" }) {
		t.head = t.head[:len(t.head)-1]
	}
	at := func(when time.Time) string {
		if when.IsZero() {
			return "-"
		}
		return when.Format(time.RFC3339)
	}
	last := wire.LostAttempt{}
	for _, a := range j.Lost {
		cause, _, _ := strings.Cut(a.Cause, "\n")
		t.row([]string{strconv.Itoa(a.Number), at(a.Began), recovery(last.Ended, a.Ran), at(a.Ended), cause, a.From}[:len(t.head)]...)
		last = a
	}
	if j.Attempt > last.Number {
		began := j.Started
		if began.Before(last.Ended) { // it has not begun to run yet
			began = time.Time{}
		}
		from := ""
		if j.Origin != nil {
			from = j.Origin.String()
		}
		t.row([]string{strconv.Itoa(j.Attempt), at(began), recovery(last.Ended, began), at(j.Ended), j.State.String(), from}[:len(t.head)]...)
	}
	return t.write(w)
}

// writeRecoveries prints the phases of the recovery from each lost attempt, as times since the loss
// was detected.
func writeRecoveries(w io.Writer, lost []wire.LostAttempt) error {
	t := table{head: []string{"recovery from", "detected"}}
	for p := range wire.RecoveryPhase(wire.RecoveryPhases) {
		t.head = append(t.head, p.String())
	}
	t.head = append(t.head, "at superstep")
	for i := range lost {
		r := &lost[i].Recovery
		if r.Detected.IsZero() { // recorded by an earlier version
			continue
		}
		row := []string{strconv.Itoa(lost[i].Number), r.Detected.Format(time.RFC3339)}
		for p := range wire.RecoveryPhase(wire.RecoveryPhases) {
			after := "-"
			if at := *r.End(p); !at.IsZero() {
				after = fmt.Sprintf("%.2fs", at.Sub(r.Detected).Seconds())
			}
			row = append(row, after)
		}
		superstep := "-"
		if r.Superstep > 0 {
			superstep = strconv.Itoa(r.Superstep)
		}
		t.row(append(row, superstep)...)
	}
	if len(t.rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return t.write(w)
}

// recovery returns the time from the end of an attempt until the next one ran on all workers, as text;
// "-" if there is no attempt before, or if the next one did not come so far.
func recovery(ended, ran time.Time) string {
	if ended.IsZero() || ran.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.1fs", ran.Sub(ended).Seconds())
}

// writeProgress prints the progress of the vertices and queues of a job.
func writeProgress(w io.Writer, at *wire.Progress, p *plan.Plan) error {
	if at == nil || p == nil {
		return nil
	}
	t := table{head: []string{"vertex", "name", "parallelism", "rows", "shards done"}}
	for i, v := range p.Vertices {
		if i >= len(at.Vertices) {
			break
		}
		rows, shards := strconv.FormatInt(at.Vertices[i].Rows, 10), fmt.Sprintf("%d of %d", at.Vertices[i].ShardsDone, p.Shards)
		if v.Queue != "" && p.Nodes[v.Chain[0].Node].Stage != plan.QueueInit {
			rows, shards = "-", "-" // except for the init stage, vertices of a queue do not output rows
		}
		t.row(strconv.Itoa(i), v.Name, strconv.Itoa(v.Parallelism), rows, shards)
	}
	fmt.Fprintln(w)
	if err := t.write(w); err != nil {
		return err
	}
	for i, q := range p.Queues {
		if i >= len(at.Queues) {
			break
		}
		line := queueText(&q, &at.Queues[i])
		if _, err := fmt.Fprintf(w, "\n%s\n", line); err != nil {
			return err
		}
	}
	for _, u := range at.Uncopied {
		if _, err := fmt.Fprintf(w, "\n%s\n", plain(u.String())); err != nil {
			return err
		}
	}
	return nil
}

// terminalText applies plain to each line of s. It keeps line breaks, and replaces each
// character of the indentation of a line by a space.
func terminalText(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		indent := len(lines[i]) - len(strings.TrimLeft(lines[i], " \t"))
		lines[i] = strings.Repeat(" ", indent) + plain(lines[i][indent:])
	}
	return strings.Join(lines, "\n")
}

// logsCommand prints the output of workers.
type logsCommand struct {
	clusterFlags
	Job    string `arg:"" help:"ID of the job, or the start of it if no other job has the same."`
	Worker int    `default:"-1" placeholder:"N" help:"Only of this worker (default: all workers)."`
	Follow bool   `short:"f" help:"Follow the output until the job ends."`
}

// Run prints the lines. Without --worker, the number of the worker and the name of its task
// manager precede each line in brackets.
func (c *logsCommand) Run(ctx context.Context, s *Streams) error {
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		stream, err := jm.Logs(ctx, &wire.LogsRequest{Job: wire.JobID(c.Job), Worker: c.Worker, Follow: c.Follow})
		if err != nil {
			return err
		}
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, line := range strings.Split(strings.TrimSuffix(string(chunk.Text), "\n"), "\n") {
				if c.Worker < 0 {
					whose := strings.TrimSpace(fmt.Sprintf("%d %s", chunk.Worker, chunk.TaskManager))
					line = fmt.Sprintf("[%s] %s", whose, line)
				}
				if _, err := fmt.Fprintln(s.Out, terminalText(line)); err != nil {
					return QuietError{err}
				}
			}
		}
	})
}

// cancelCommand cancels jobs.
type cancelCommand struct {
	clusterFlags
	Jobs []string `arg:"" help:"IDs of the jobs, or the starts of them."`
}

// Run cancels the jobs. If a job cannot be cancelled, Run still cancels the other jobs.
func (c *cancelCommand) Run(ctx context.Context, s *Streams) error {
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		var errs []error
		for _, id := range c.Jobs {
			reply, err := jm.Cancel(ctx, &wire.CancelRequest{Job: wire.JobID(id), Reason: "by the cancel command"})
			if err != nil {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintf(s.Out, "%s is %s\n", reply.Job.ID, reply.Job.State)
		}
		return errors.Join(errs...)
	})
}
