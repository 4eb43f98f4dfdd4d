package engine

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// Summary returns a description of the run as tables for people: rows and times of
// each vertex and its subtasks, then supersteps, stages and last reported values of
// each queue, then accumulators and memory.
func (r *Result) Summary() string {
	var b strings.Builder
	summarizeVertices(&b, r.Report.Vertices)
	for i := range r.Report.Queues {
		summarizeQueue(&b, &r.Report.Queues[i])
	}
	for _, a := range r.Report.Accumulators {
		fmt.Fprintf(&b, "accumulator %s = %.10g\n", clipLine(a.Name, maxSummaryName), a.Value)
	}
	fmt.Fprintf(&b, "%s elapsed, at most %s of rows held, %s spilled\n",
		formatDuration(r.Report.Elapsed), humanize.Bytes(r.Report.PeakMemory), humanize.Bytes(r.Report.Spilled))
	return b.String()
}

// maxSummaryName limits the length of names in a table, so that its columns stay narrow.
const maxSummaryName = 48

// summarizeVertices writes a line for each vertex and, if it has several subtasks, for
// each subtask. The counters of its operators follow.
func summarizeVertices(b *strings.Builder, vertices []task.VertexReport) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "vertex\tsubtask\tshards\trows in\trows out\tbusy\twaiting")
	for _, v := range vertices {
		var all task.SubtaskReport
		for _, s := range v.Subtasks {
			all.RowsIn += s.RowsIn
			all.RowsOut += s.RowsOut
			all.Shards += s.Shards
			all.Busy += s.Busy
			all.Waiting += s.Waiting
		}
		subtaskLine(w, clipLine(v.Name, maxSummaryName), "all", all)
		if len(v.Subtasks) > 1 {
			for i, s := range v.Subtasks {
				subtaskLine(w, "", fmt.Sprint(i), s)
			}
		}
		for _, c := range counters(v) {
			fmt.Fprintf(w, "  %s: %d\t\t\t\t\t\t\n", clipLine(c.Name, maxSummaryName), c.Value)
		}
	}
	w.Flush()
}

func subtaskLine(w *tabwriter.Writer, vertex, subtask string, s task.SubtaskReport) {
	fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", vertex, subtask, s.Shards, s.RowsIn, s.RowsOut, formatDuration(s.Busy), formatDuration(s.Waiting))
}

// counters sums the counters of a vertex over its subtasks and operators, in the order of first
// appearance.
func counters(v task.VertexReport) []task.Counter {
	var sums []task.Counter
	at := map[string]int{}
	for _, s := range v.Subtasks {
		for _, o := range s.Operators {
			for _, c := range o.Counters {
				i, known := at[c.Name]
				if !known {
					i = len(sums)
					at[c.Name] = i
					sums = append(sums, task.Counter{Name: c.Name})
				}
				sums[i].Value += c.Value
			}
		}
	}
	return sums
}

// summarizeQueue writes a queue's supersteps, stages and last values.
func summarizeQueue(b *strings.Builder, q *task.QueueReport) {
	ended := "ended by its maximum"
	if q.Stopped {
		ended = "ended by its criterion"
	}
	fmt.Fprintf(b, "\nqueue %s: %s, %s, %s\n", clipLine(q.Name, maxSummaryName), humanize.Count(q.Supersteps, "superstep"), ended, formatDuration(q.Elapsed))
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "stage\tcalls\tbytes\tbusy\tprogram")
	for _, s := range q.Stages {
		program := s.Program
		if program == "" {
			program = "-"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", clipLine(s.Name, maxSummaryName), s.Calls, humanize.Bytes(s.Bytes), formatDuration(s.Busy), program)
	}
	w.Flush()
	for _, s := range q.Series {
		if n := len(s.Values); n > 0 {
			fmt.Fprintf(b, "%s = %.10g\n", clipLine(s.Name, maxSummaryName), s.Values[n-1])
		}
	}
}

// formatDuration returns a duration with about three digits: "1.23s", "45.6ms".
func formatDuration(d time.Duration) string {
	if d < 1000 {
		return d.String()
	}
	unit := time.Duration(10)
	for d >= 1000*unit && unit < time.Second {
		unit *= 10
	}
	return d.Round(unit).String()
}
