package core

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// text returns effects as text, and performs them in the simulated world.
func (s *scenario) text(effects []Effect) string {
	var b strings.Builder
	var recorded []Persisted
	for _, e := range effects {
		switch e := e.(type) {
		case Send:
			if s.muteAcks && e.Message.Ack != nil {
				continue
			}
			fmt.Fprintf(&b, "  to %d: %s\n", e.Conn, messageText(e.Message))
			if d := e.Message.Deploy; d != nil {
				s.on[d.WorkerRef] = e.Conn
			}
		case Disconnect:
			fmt.Fprintf(&b, "  disconnect %d\n", e.Conn)
			delete(s.open, e.Conn)
		case Persist:
			s.records[e.Job.ID] = e.Job
			s.keep(e)
			if e.Retry && !s.held {
				recorded = append(recorded, Persisted{ID: e.Job.ID, Attempt: e.Job.Attempt})
			}
			plan := ""
			if e.Graph != nil {
				plan = fmt.Sprintf(" with the plan at parallelism %d", e.Job.Parallelism)
			}
			fmt.Fprintf(&b, "  persist %s%s%s%s\n", e.Job.ID, plan, map[bool]string{true: ", and say so"}[e.Barrier], outcomesText(e.Job.Outcomes))
		case Changed:
			fmt.Fprintf(&b, "  %s\n", jobText(e.Job))
		case Compile:
			fmt.Fprintf(&b, "  compile %s: %s\n", e.ID, e.Graph)
		case SaveAnswered:
			fmt.Fprintf(&b, "  answer request %d: checkpoint %d, failure %q\n", e.Request, e.Saved.Checkpoint.Number, e.Saved.Failure)
		case Progressed:
			fmt.Fprintf(&b, "  progressed %s\n", e.ID)
		case Forget:
			delete(s.records, e.ID)
			delete(s.kept, e.ID)
			fmt.Fprintf(&b, "  forget %s\n", e.ID)
		}
	}
	for _, e := range recorded {
		b.WriteString(s.step(e))
	}
	return b.String()
}

// keep stores what a record has for a restart of the job manager.
func (s *scenario) keep(e Persist) {
	require.Equal(s.t, e.Job.State.Ended(), e.Continuation == nil)
	if e.Job.State.Ended() {
		delete(s.kept, e.Job.ID)
		return
	}
	kept := s.kept[e.Job.ID]
	if e.Spec != nil {
		kept.Spec = *e.Spec
	}
	require.NotEmpty(s.t, kept.Spec.Name, "job %s has no specification on record", e.Job.ID)
	kept.Continuation, kept.Outcomes = *e.Continuation, e.Job.Outcomes
	s.kept[e.Job.ID] = kept
}

func messageText(m wire.ToTaskManager) string {
	switch {
	case m.Registered != nil:
		return fmt.Sprintf("registered with cluster %s, heartbeat %s, lease %s", m.Registered.Cluster, m.Registered.Heartbeat, m.Registered.Lease)
	case m.Ack != nil:
		return fmt.Sprintf("ack %d", m.Ack.Number)
	case m.Refused != nil:
		return fmt.Sprintf("refused%s: %s", map[bool]string{true: " for good"}[m.Refused.Final], m.Refused.Reason)
	case m.Deploy != nil:
		d := m.Deploy
		return fmt.Sprintf("deploy %s on %s%s, slots %v, memory %d, listens on %s%s", d.WorkerRef, d.TaskManager,
			map[wire.WorkerMode]string{wire.ResolveMode: " to resolve", wire.CommitMode: " to commit"}[d.Mode], d.Slots, d.Memory, d.Listen,
			map[bool]string{true: ", resumes"}[d.Resume])
	}
	w := m.Worker
	switch {
	case w.Prepare != nil:
		return fmt.Sprintf("%s prepare", w.WorkerRef)
	case w.Start != nil:
		if o := w.Start.Origin; o != nil {
			return fmt.Sprintf("%s start %v from checkpoint %d", w.WorkerRef, w.Start.Addresses, o.Number)
		}
		return fmt.Sprintf("%s start %v", w.WorkerRef, w.Start.Addresses)
	case w.Commit != nil:
		return fmt.Sprintf("%s commit%s", w.WorkerRef, outcomesText(w.Commit.Outcomes))
	case w.Save != nil:
		return fmt.Sprintf("%s save, request %d, place %q", w.WorkerRef, w.Save.Request-firstSave(storyBegin), w.Save.Place)
	case w.Cancel != nil:
		return fmt.Sprintf("%s cancel: %s", w.WorkerRef, w.Cancel.Reason)
	case w.Exit != nil:
		return fmt.Sprintf("%s exit", w.WorkerRef)
	default:
		return fmt.Sprintf("%s kill", w.WorkerRef)
	}
}

func outcomesText(outcomes [][]byte) string {
	if outcomes == nil {
		return ""
	}
	return fmt.Sprintf(" with %s", outcomes)
}

func jobText(j wire.JobInfo) string {
	text := fmt.Sprintf("%s is %s", j.ID, j.State)
	if j.Detail != "" {
		text += ": " + j.Detail
	}
	if f := j.Failure; f != nil && j.State.Ended() {
		text += fmt.Sprintf(" {worker %d, code %d, signal %q, lines %q}", f.Worker, f.ExitCode, f.Signal, f.LastLines)
	}
	return text
}

// show returns the result of a line that calls an accessor of the core, as text.
func (s *scenario) show(words []string) string {
	var b strings.Builder
	switch words[0] {
	case "jobs":
		for _, j := range s.core.Jobs() {
			fmt.Fprintf(&b, "  %s\n", jobText(j))
		}
	case "job":
		j, ok := s.core.Job(wire.JobID(words[1]))
		if !ok {
			return "  none\n"
		}
		fmt.Fprintf(&b, "  %s\n  attempt %d, %d slots, fingerprint %q, submitted +%s", jobText(j), j.Attempt, j.Slots, j.Fingerprint, j.Submitted.Sub(storyBegin))
		if !j.Started.IsZero() {
			fmt.Fprintf(&b, ", started +%s", j.Started.Sub(storyBegin))
		}
		if !j.Ended.IsZero() {
			fmt.Fprintf(&b, ", ended +%s", j.Ended.Sub(storyBegin))
		}
		fmt.Fprintf(&b, "\n  workers %v\n", j.Workers)
		for _, a := range j.Lost {
			fmt.Fprintf(&b, "  attempt %d, +%s to +%s: %s\n", a.Number, a.Began.Sub(storyBegin), a.Ended.Sub(storyBegin), a.Cause)
		}
		b.WriteString(checkpointsText(&j, s.core.CheckpointAges(s.now)))
		if j.Progress != nil {
			fmt.Fprintf(&b, "  progress %+v\n", *j.Progress)
		}
	case "taskmanagers":
		for _, n := range s.core.TaskManagers(s.now) {
			fmt.Fprintf(&b, "  %s %s: %d of %d free, heard %s ago, workers %v", n.Name, n.State, n.Free, n.Slots, n.HeardAgo, n.Workers)
			if n.Cordon != nil {
				fmt.Fprintf(&b, ", cordoned since +%s: %s", n.Cordon.Since.Sub(storyBegin), n.Cordon.Reason)
			}
			if n.Avoided != nil {
				fmt.Fprintf(&b, ", avoided until +%s, as %d workers died there", n.Avoided.Until.Sub(storyBegin), n.Avoided.Died)
			}
			b.WriteString("\n")
		}
	case "overview":
		o := s.core.Overview()
		fmt.Fprintf(&b, "  %d task managers, %d of %d slots free, jobs %v, platforms %v", o.TaskManagers, o.Free, o.Slots, o.Jobs, o.Platforms)
		if o.Cordoned > 0 {
			fmt.Fprintf(&b, ", %d slots cordoned", o.Cordoned)
		}
		b.WriteString("\n")
	case "counters":
		n := s.core.Counters()
		fmt.Fprintf(&b, "  %d checkpoints, %d failed, %d bytes, %.1fs, %d restarts, lost %v\n", n.Checkpoints, n.FailedCheckpoints, n.CheckpointBytes, n.CheckpointSeconds, n.Restarts, n.Lost)
	default:
		s.t.Fatalf("unknown line %q", words[0])
	}
	return b.String()
}
