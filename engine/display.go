package engine

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// progressMode says how the command line shows the progress of a run.
type progressMode string

const (
	progressAuto  progressMode = "auto" // live on a terminal, plain elsewhere
	progressPlain progressMode = "plain"
	progressJSON  progressMode = "json"
	progressOff   progressMode = "off"
	progressLive  progressMode = "live" // replaces auto on a terminal
)

// plainEvery is the time between two progress lines that are not overwritten.
const plainEvery = 2 * time.Second

// display shows the progress of one run. Log messages are written through it too, so that they
// do not appear in the middle of a live line. It is safe for concurrent use.
type display struct {
	mode  progressMode
	out   io.Writer
	width func() int // of the terminal, in characters

	mu      sync.Mutex
	live    string        // line on the screen that will be overwritten, or ""
	printed time.Duration // elapsed time of the run when the last plain line was printed
	ended   map[string]bool
	state   string // state of a job on a cluster that was last shown in a line that is not overwritten
}

func newDisplay(mode progressMode, out io.Writer, width func() int) *display {
	return &display{mode: mode, out: out, width: width, ended: map[string]bool{}}
}

// eraseLine moves the cursor to the beginning of the line and clears the line.
const eraseLine = "\r\x1b[K"

// Write writes a message: it erases the live line before and redraws it after.
func (d *display) Write(p []byte) (int, error) { return d.writeTo(d.out, p) }

// sharedScreen is the writer of another output that may be on the same screen.
type sharedScreen struct {
	screen *display
	out    io.Writer
}

// Write writes whole lines, as the display's Write does.
func (b sharedScreen) Write(p []byte) (int, error) { return b.screen.writeTo(b.out, p) }

func (d *display) writeTo(out io.Writer, p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live == "" {
		return out.Write(p)
	}
	if _, err := io.WriteString(d.out, eraseLine); err != nil {
		return 0, err
	}
	n, err := out.Write(p)
	if err == nil {
		_, err = io.WriteString(d.out, d.live)
	}
	return n, err
}

// begin shows the plan that is about to run.
func (d *display) begin(p *plan.Plan) {
	switch d.mode {
	case progressOff:
	case progressJSON:
		d.object(struct {
			Event       string `json:"event"`
			Job         string `json:"job"`
			Operators   int    `json:"operators"`
			Vertices    int    `json:"vertices"`
			Parallelism int    `json:"parallelism"`
			Shards      int    `json:"shards"`
			Seed        uint64 `json:"seed"`
		}{"begin", p.Job, len(p.Nodes), len(p.Vertices), p.Parallelism, p.Shards, p.Seed})
	default:
		fmt.Fprint(d, renderPlan(p, d.width()))
	}
}

// update shows the progress p. It is the function of the run's OnProgress.
func (d *display) update(p Progress) {
	switch d.mode {
	case progressOff:
	case progressJSON:
		d.stateObject(p)
		if p.State == detachedState && p.Err == nil {
			return
		}
		if p.Done || len(p.Vertices) > 0 && d.due(p) {
			d.object(progressObject(p))
		}
	case progressLive:
		d.overwrite(p)
	default:
		d.plain(p)
	}
}

// due reports whether another line must be written: plainEvery has passed, or a queue has ended.
func (d *display) due(p Progress) bool {
	due := p.Elapsed-d.printed >= plainEvery
	for _, q := range p.Queues {
		if q.Ended && !d.ended[q.Name] {
			d.ended[q.Name] = true
			due = true
		}
	}
	if due {
		d.printed = p.Elapsed
	}
	return due
}

// plain writes lines that are not overwritten: one for each state of a job on a cluster,
// one for each queue that has ended, one every plainEvery, and the outcome.
func (d *display) plain(p Progress) {
	if shown := p.State + " " + steadyDetail(p); p.State != "" && !p.Done && shown != d.state {
		d.state, d.printed = shown, p.Elapsed
		if getsLine(p) {
			fmt.Fprintln(d, renderState(p, math.MaxInt))
		}
	}
	for _, q := range p.Queues {
		if q.Ended && !d.ended[q.Name] {
			d.ended[q.Name] = true
			fmt.Fprintln(d, renderQueueEnd(q, p.Elapsed))
		}
	}
	if p.Done {
		if p.Err == nil && p.State != detachedState {
			fmt.Fprintln(d, renderDone(p))
		}
		return
	}
	if p.Elapsed-d.printed >= plainEvery {
		d.printed = p.Elapsed
		if runs(p) {
			fmt.Fprintln(d, renderLine(p, math.MaxInt))
		} else if p.State == uploadingState {
			fmt.Fprintln(d, renderState(p, math.MaxInt))
		}
	}
}

// overwrite replaces the live line. The lines of the outcome are not overwritten.
func (d *display) overwrite(p Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !p.Done {
		if d.live = renderLine(p, d.width()); !runs(p) {
			d.live = renderState(p, d.width())
		}
		io.WriteString(d.out, eraseLine+d.live)
		return
	}
	erase := ""
	if d.live != "" {
		erase, d.live = eraseLine, ""
	}
	for _, q := range p.Queues {
		if q.Ended && p.Err == nil {
			fmt.Fprintf(d.out, "%s%s\n", erase, clipLine(renderQueueEnd(q, 0), d.width()))
			erase = ""
		}
	}
	if p.Err == nil && p.State != detachedState {
		erase += clipLine(renderDone(p), d.width()) + "\n"
	}
	io.WriteString(d.out, erase)
}

// object writes one JSON object on a line.
func (d *display) object(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		line = []byte(`{"event":"error"}`)
	}
	d.Write(append(line, '\n'))
}

// progressEvent is a line of --progress json. Values that JSON numbers cannot
// represent (infinities, NaN) are given as text.
type progressEvent struct {
	Event         string       `json:"event"` // "progress", "done" or "failed"
	Job           string       `json:"job"`
	Seconds       float64      `json:"seconds"`
	Rows          int64        `json:"rows"`
	RowsPerSecond float64      `json:"rows_per_second"`
	Queues        []queueEvent `json:"queues,omitempty"`
	Error         string       `json:"error,omitempty"`
	Detail        string       `json:"detail,omitempty"` // the stack, if the failure is a panic
}

type queueEvent struct {
	Name          string         `json:"name"`
	Superstep     int            `json:"superstep"`
	MaxSupersteps int            `json:"max_supersteps,omitempty"`
	Ended         bool           `json:"ended"`
	Values        map[string]any `json:"values,omitempty"` // written sorted by name
}

func progressObject(p Progress) progressEvent {
	e := progressEvent{
		Event:         "progress",
		Job:           p.Job,
		Seconds:       float64(p.Elapsed.Milliseconds()) / 1000,
		Rows:          p.Rows,
		RowsPerSecond: math.Round(p.RowsPerSecond),
	}
	if p.Done {
		e.Event = "done"
	}
	if p.Err != nil {
		e.Event = "failed"
		e.Error, e.Detail = splitStack(p.Err.Error())
	}
	for _, q := range p.Queues {
		qe := queueEvent{Name: q.Name, Superstep: q.Superstep, MaxSupersteps: q.Max, Ended: q.Ended}
		for _, v := range q.Values {
			if qe.Values == nil {
				qe.Values = map[string]any{}
			}
			if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
				qe.Values[v.Name] = fmt.Sprint(v.Value)
			} else {
				qe.Values[v.Name] = v.Value
			}
		}
		e.Queues = append(e.Queues, qe)
	}
	return e
}

// splitStack separates the lines of a message that are stack frames from its other lines.
func splitStack(message string) (said, stack string) {
	var lines, calls []string
	for line := range strings.Lines(message) {
		line = strings.TrimSuffix(line, "\n")
		if call := strings.TrimLeft(line, " "); strings.HasPrefix(call, "\t") && strings.HasSuffix(call, ")") {
			calls = append(calls, strings.TrimSpace(call))
			continue
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), strings.Join(calls, "\n")
}

// renderLine returns the progress of a run as one line of at most width characters.
func renderLine(p Progress, width int) string {
	parts := []string{formatElapsed(p.Elapsed)}
	reading, sources := false, 0
	for _, v := range p.Vertices {
		if v.Source {
			sources++
			reading = reading || v.ShardsDone < v.Shards
		}
	}
	switch {
	case reading && p.Rows > 0:
		parts = append(parts, fmt.Sprintf("%s rows, %s/s", formatCount(float64(p.Rows)), formatCount(p.RowsPerSecond)))
	case sources > 0:
		parts = append(parts, formatCount(float64(p.Rows))+" rows")
	}
	if q := current(p.Queues); q != nil {
		parts = append(parts, renderQueue(*q))
	}
	line := strings.Join(parts, " · ")
	if p.Job != "" {
		line = p.Job + " · " + line
	}
	return clipLine(line, width)
}

// current returns the queue to show: the last queue that has done a superstep and has not
// ended, else the last queue that has ended, or nil if no queue has done a superstep.
func current(queues []QueueProgress) *QueueProgress {
	var shown *QueueProgress
	for i := range queues {
		q := &queues[i]
		if q.Superstep > 0 && (shown == nil || shown.Ended || !q.Ended) {
			shown = q
		}
	}
	return shown
}

// renderQueue returns the progress of a queue as text: "kmeans 12/50 inertia=78.85".
func renderQueue(q QueueProgress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", q.Name, q.Superstep)
	if q.Max > 0 {
		fmt.Fprintf(&b, "/%d", q.Max)
	}
	for _, v := range q.Values {
		fmt.Fprintf(&b, " %s=%.6g", v.Name, v.Value)
	}
	if q.Ended || q.PerSecond <= 0 {
		return b.String()
	}
	fmt.Fprintf(&b, ", %s/s", formatRate(q.PerSecond))
	if q.Left >= time.Second {
		fmt.Fprintf(&b, ", at most %s left", formatElapsed(q.Left))
	}
	return b.String()
}

// formatRate returns a rate with about two digits: "0.25", "3.1", "42", "1.2k".
func formatRate(perSecond float64) string {
	switch {
	case perSecond < 1:
		return strconv.FormatFloat(perSecond, 'f', 2, 64)
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return formatCount(perSecond)
}

// renderQueueEnd returns a line about a queue that has ended, with the time if elapsed is not 0.
func renderQueueEnd(q QueueProgress, elapsed time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", q.Name, humanize.Count(q.Superstep, "superstep"))
	for _, v := range q.Values {
		fmt.Fprintf(&b, ", %s=%.6g", v.Name, v.Value)
	}
	if elapsed > 0 {
		fmt.Fprintf(&b, " (after %s)", formatElapsed(elapsed))
	}
	return b.String()
}

// renderDone returns a line about a run that has succeeded.
func renderDone(p Progress) string {
	rows := "1 row"
	if p.Rows != 1 {
		rows = formatCount(float64(p.Rows)) + " rows"
	}
	return fmt.Sprintf("done: %s in %s", rows, formatElapsed(p.Elapsed))
}

// maxPlanLines limits the number of lines of a plan shown at the start of a run.
const maxPlanLines = 12

// renderPlan returns a plan as a few lines of at most width characters: a line for
// each queue, and for each vertex outside of queues.
func renderPlan(p *plan.Plan, width int) string {
	name := p.Job
	if name == "" {
		name = "job"
	}
	lines := []string{fmt.Sprintf("%s: %s in %s, parallelism %d, %d shards, seed %d", name,
		humanize.Count(len(p.Nodes), "operator"), humanize.CountOf(len(p.Vertices), "vertex", "vertices"), p.Parallelism, p.Shards, p.Seed)}
	shown := map[string]bool{}
	for _, v := range p.Vertices {
		switch {
		case v.Queue == "":
			lines = append(lines, fmt.Sprintf("  %s ×%d", v.Name, v.Parallelism))
		case !shown[v.Queue]:
			shown[v.Queue] = true
			lines = append(lines, fmt.Sprintf("  queue %s ×%d: %s", v.Queue, v.Parallelism, renderStages(p, v.Queue)))
		}
	}
	if hidden := len(lines) - 1 - maxPlanLines; hidden > 1 {
		lines = append(lines[:1+maxPlanLines], fmt.Sprintf("  … and %d more (--explain shows all)", hidden))
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(clipLine(line, width) + "\n")
	}
	return b.String()
}

// renderStages returns the names of the stages of a superstep. The three stages of an AllReduce
// have one name.
func renderStages(p *plan.Plan, queue string) string {
	var names []string
	for _, n := range p.Nodes {
		if n.Queue != queue {
			continue
		}
		name := n.Name
		switch n.Stage {
		case plan.Compute:
			if name == "" {
				name = n.Op
			}
		case plan.Send:
			name = "AllReduce(" + name + ")"
		case plan.Communicate:
			if name == "" {
				name = n.Op
			} else {
				name = n.Op + "(" + name + ")"
			}
		case plan.RepeatBegin:
			name = "repeat ["
		case plan.RepeatEnd:
			name = "]"
		default:
			continue
		}
		names = append(names, name)
	}
	return strings.NewReplacer("[ → ", "[", " → ]", "]").Replace(strings.Join(names, " → "))
}

// formatElapsed returns a time as text for people: "0.4s", "12.3s", "4m05s", "2h03m".
func formatElapsed(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// formatCount returns a count with at most four digits: "950", "12.3k", "4.5M".
func formatCount(n float64) string {
	if n < 1000 {
		return strconv.FormatFloat(math.Floor(n), 'f', 0, 64)
	}
	const units = "kMGT"
	i := -1
	for n >= 1000 && i < len(units)-1 {
		n, i = n/1000, i+1
	}
	// Rounded down, so that 999,999 does not become "1000.0k".
	return strconv.FormatFloat(math.Floor(n*10)/10, 'f', 1, 64) + units[i:i+1]
}

// clipLine returns s as one line of at most width characters, cut with an
// ellipsis if it is longer. As names come from users and may contain anything,
// unprintable characters are replaced by question marks.
func clipLine(s string, width int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if width <= 0 {
		return ""
	}
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
