package engine

import "strings"

// The states of a job on a cluster that are shown differently from other states.
const (
	uploadingState  = "uploading"
	runningState    = "running"
	committingState = "committing"
	// detachedState is the last state of a job that its client has left to the cluster.
	detachedState = "detached"
)

// runs reports whether there are rows and supersteps to show. That is always the case for a job
// in this process, and for a job on a cluster once it runs there.
func runs(p Progress) bool {
	return p.State == "" || p.State == runningState && len(p.Vertices) > 0
}

// getsLine reports whether a state is shown in a line that is not overwritten. States without
// detail are not, nor are states that the lines of the plan and of the outcome show.
func getsLine(p Progress) bool {
	return p.Detail != "" && p.State != committingState && !final(p)
}

// final reports whether a job on a cluster has ended, or its client has left it.
func final(p Progress) bool {
	switch p.State {
	case "finished", "failed", "cancelled", detachedState:
		return true
	}
	return false
}

// steadyDetail returns the detail of a state for a line that is not overwritten. The number of
// uploaded bytes is left out.
func steadyDetail(p Progress) string {
	if p.State == uploadingState {
		return ""
	}
	return shortDetail(p.Detail)
}

// shortDetail returns a detail on one line, without the stack of a panic.
func shortDetail(detail string) string {
	said, _ := splitStack(detail)
	return strings.ReplaceAll(said, "\n", " ")
}

// renderState returns the state of a job on a cluster as one line: "iris-kmeans · 3.2s ·
// waiting: 4 more slots are needed · 20260102-150405-iris-kmeans-7f3a".
func renderState(p Progress, width int) string {
	state := p.State
	p.Detail = shortDetail(p.Detail)
	switch {
	case p.Detail != "" && state == uploadingState:
		state += " " + p.Detail
	case strings.HasPrefix(p.Detail, state): // "waiting for 6 slots"
		state = p.Detail
	case p.Detail != "":
		state += ": " + p.Detail
	}
	parts := []string{formatElapsed(p.Elapsed), state}
	if p.Job != "" {
		parts = append([]string{p.Job}, parts...)
	}
	if p.JobID != "" {
		parts = append(parts, p.JobID)
	}
	return clipLine(strings.Join(parts, " · "), width)
}

// stateObject writes the state of a job on a cluster as JSON if it has changed.
func (d *display) stateObject(p Progress) {
	if shown := p.State + " " + steadyDetail(p); p.State != "" && !p.Done && shown != d.state {
		d.state = shown
		d.object(struct {
			Event   string  `json:"event"`
			Job     string  `json:"job"`
			ID      string  `json:"id,omitempty"`
			State   string  `json:"state"`
			Detail  string  `json:"detail,omitempty"`
			Seconds float64 `json:"seconds"`
		}{"state", p.Job, p.JobID, p.State, p.Detail, float64(p.Elapsed.Milliseconds()) / 1000})
	}
}
