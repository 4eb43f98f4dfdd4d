package builtin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// advice returns a text that names the training flags that help if training refuses a row with
// the error e.
func (a TrainArgs) advice(e *engine.RowError) string {
	switch {
	case e.Cure == engine.FillOrLeaveOut && a.Missing == "fill":
		return "--missing fill does so for features alone; --missing skip leaves such rows out"
	case e.Cure == engine.FillOrLeaveOut:
		return "--missing fill puts a value in its place, --missing skip leaves such rows out"
	case e.Cure == engine.LeaveOut:
		return "--missing skip leaves such rows out"
	}
	return e.Advice
}

// adviceOnFiles returns the advice for a row that is refused by a command that has no flags for
// such rows.
func adviceOnFiles(e *engine.RowError) string {
	switch e.Cure {
	case engine.FillOrLeaveOut:
		return "put a value in its place, or leave such rows out of the file"
	case engine.LeaveOut:
		return "leave such rows out of the file"
	}
	return e.Advice
}

// trainedNotes returns what a user must know about a successful training: rows that were left out,
// a training that did not converge, and features without standard errors.
func (a training) trainedNotes(about *modelSummary, r *engine.Result) []string {
	notes := a.skippedNotes(r)
	var s struct {
		Iterations   int
		Converged    *bool
		Reason       string
		Method       string
		GradientNorm float64 `json:"gradient_norm"`
		Inference    *struct{ Collinear []int }
	}
	if json.Unmarshal(about.predictor().Summary, &s) != nil {
		return notes
	}
	if s.Converged != nil && !*s.Converged {
		notes = append(notes, unconverged(s.Reason, s.Method, s.Iterations, s.GradientNorm))
	}
	if s.Inference != nil && len(s.Inference.Collinear) > 0 {
		notes = append(notes, fmt.Sprintf("%s constant, or determined by others: without standard errors, as are those others", humanize.CountOf(len(s.Inference.Collinear), "feature is", "features are")))
	}
	return notes
}

// skippedNotes returns notes on how many rows were left out of training, and why.
func (a training) skippedNotes(r *engine.Result) []string {
	const end = "left out of training"
	counters := countersFor(r, collects(modelResult))
	all, beyond := counters[skippedCounter], counters[infiniteCounter]
	looked := r.Graph != nil && slices.ContainsFunc(r.Graph.Nodes, func(n plan.Node) bool { return n.Op == completeOp })
	switch {
	case !looked && !a.of.Command().Trees: // algorithms do not distinguish missing and infinite values
		return leftOut(all, " with missing or infinite values "+end)
	case beyond == 0:
		return leftOut(all, " with missing values "+end)
	case beyond == all:
		return leftOut(all, " with infinite values "+end)
	}
	return leftOut(all-beyond, fmt.Sprintf(" with missing values, and %d with infinite ones, %s", beyond, end))
}

// namedNotes returns notes about output columns that do not have their usual name, because
// another column has the usual name.
func (a training) namedNotes(m model.Model) (notes []string) {
	usual, made := a.of.Predicts(), predictionOf(m)
	note := func(flag, what, column, usual, given, more string) {
		if column != usual && given == "" {
			notes = append(notes, fmt.Sprintf("the model calls its %s %q, not %q, as another column has that name: %s names them otherwise%s", what, column, usual, flag, more))
		}
	}
	note("--prediction-column", "predictions", made.Column, usual.Column, a.PredictionColumn, ", and --features the columns to predict from")
	note("--probability-column", "probabilities", made.Scores, usual.Scores, a.ProbabilityColumn, "")
	note("--distance-column", "distances", made.Distance, usual.Distance, a.DistanceColumn, "")
	return notes
}

// unconverged returns a note that says why training ended before it reached an optimum, and what the
// user can do.
func unconverged(reason, method string, iterations int, norm float64) string {
	const text = "training did not converge: "
	switch reason {
	case "diverging":
		return text + "the coefficients grow without end, because the features separate the labels of all rows, or of some rows, perfectly: do not read them as effects, or give a penalty, such as --l2 0.01"
	case "overshooting":
		return text + "it ended with a larger loss than it began with, as its steps are too long: lower --rate, or scale the features"
	case "precision":
		return text + fmt.Sprintf("no step lowers the loss any more, though the gradient is %.3g: scale features that are of very different sizes, or give a penalty", norm)
	}
	one, many := "iteration was", "iterations were"
	if method == "SGD" {
		one, many = "pass over the rows was", "passes over the rows were"
	}
	return text + humanize.CountOf(iterations, one, many) + " too few; --max-iter allows more"
}

// skippedFor returns the number of rows that were left out by operators upstream of an end
// node. The end node is the node for which end returns true.
func skippedFor(r *engine.Result, end func(n *plan.Node) bool) int64 {
	return countersFor(r, end)[skippedCounter]
}

// countersFor returns counter name -> sum of that counter over all operators upstream of an end
// node. The end node is the node for which end returns true; its own counters do not count.
func countersFor(r *engine.Result, end func(n *plan.Node) bool) map[string]int64 {
	sums := map[string]int64{}
	if r.Graph == nil {
		return sums
	}
	before := map[plan.NodeID]bool{}
	for i := len(r.Graph.Nodes) - 1; i >= 0; i-- { // the inputs of a node precede it in Nodes
		n := &r.Graph.Nodes[i]
		if !before[n.ID] && !end(n) {
			continue
		}
		for _, in := range n.Inputs {
			before[in.From] = true
		}
	}
	for _, v := range r.Report.Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				for _, c := range o.Counters {
					if before[o.Node] {
						sums[c.Name] += c.Value
					}
				}
			}
		}
	}
	return sums
}

// lacks has the reasons why evaluations leave out a row. Each reason is that a value is missing
// in the column that one of options names; what describes the missing value.
var lacks = []struct {
	what    string
	options []string
}{
	{"label", []string{"LabelCol"}},
	{"prediction", []string{"PredictionCol", "ScoreCol", "ClusterCol", "VectorCol", "ProbabilityCols"}},
	{"query", []string{"QueryCol"}},
	{"weight", []string{"WeightCol"}},
}

// unmeasured returns notes on how many rows an evaluation left out, and why. where is a text
// that names the files of the rows, such as " of a.csv". rest is the number of rows that the
// model had left out before the evaluation.
func unmeasured(r *engine.Result, where string) (notes []string, rest int64) {
	counters := countersFor(r, collects(testResult))
	rest = counters[skippedCounter]
	for _, l := range lacks {
		var n int64
		for _, option := range l.options {
			n += counters[evaluate.Lacking+option]
		}
		rest -= n
		notes = append(notes, leftOut(n, where+" without a "+l.what+" left out of the evaluation")...)
	}
	return notes, rest
}

// collects returns a function that reports whether a node collects the given result.
func collects(result string) func(n *plan.Node) bool {
	return func(n *plan.Node) bool { return n.Op == "Collect" && n.Name == result }
}

// leftOut returns the note that n rows were left out, or nil if n is 0. where is the text that
// follows the number of rows.
func leftOut(n int64, where string) []string {
	if n == 0 {
		return nil
	}
	return []string{humanize.Count(n, "row") + where}
}

// rowsRead returns the number of rows that all file sources have produced.
func rowsRead(r *engine.Result) int64 {
	var sum int64
	for _, v := range r.Report.Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				if strings.HasPrefix(r.Plan.Nodes[o.Node].Op, "Read") {
					sum += o.RowsOut
				}
			}
		}
	}
	return sum
}
