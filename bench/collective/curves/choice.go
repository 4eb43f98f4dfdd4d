package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/superstep-ml/superstep/collective/simulate"
	"github.com/superstep-ml/superstep/internal/benchresult"
)

// Limits for choices: see the package's documentation.
const (
	nearBest     = 1.20
	nearBestPart = 0.90
)

// choiceCommand has the flags of the command choice.
type choiceCommand struct {
	Measured string `required:"" placeholder:"FILE" help:"File with measurements, as lines of JSON, of chosen algorithms and of algorithms by name."`
	Check    bool   `help:"Exit with 1 if too few choices are near the best; see the package documentation."`
}

// Run is called by kong.
func (c *choiceCommand) Run(out io.Writer) error {
	m, err := openMeasurements(c.Measured, medianRound)
	if err != nil {
		return err
	}
	choices, err := evaluateChoices(m)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Measured, err)
	}
	if good := reportChoices(out, choices); c.Check && !good {
		return errors.New("choices are not as near to the best as they should be")
	}
	return nil
}

// medianRound returns the median of the medians of the rounds of a line.
func medianRound(l *benchresult.Line) float64 { return benchresult.Median(rounds(l)) }

// evaluatedChoice has three runs at the same point: the run of the chosen algorithm, the
// fastest run of an algorithm that the group could have chosen, and the fastest run of any
// algorithm.
type evaluatedChoice struct{ chosen, competitor, best *simulate.Sample }

// ratio returns the time of the choice divided by the time of another run.
func (j *evaluatedChoice) ratio(other *simulate.Sample) float64 {
	return j.chosen.Seconds / other.Seconds
}

// evaluateChoices finds the best runs at the point of each choice. It returns the choices in
// order of collective, number of ranks and size. The time of a choice is the median over its
// own rounds and the rounds in which the same algorithm ran by its name.
func evaluateChoices(m *measurements) ([]evaluatedChoice, error) {
	if len(m.chosen) == 0 {
		return nil, errors.New("nothing was chosen: measure with --algorithm chosen,all")
	}
	choices := make([]evaluatedChoice, len(m.chosen))
	for i := range m.chosen {
		j := evaluatedChoice{chosen: &m.chosen[i]}
		rounds := m.chosenRounds[i]
		for k := range m.runs {
			r := &m.runs[k]
			if !samePoint(r, j.chosen) {
				continue
			}
			if r.Algorithm.Name == j.chosen.Algorithm.Name && slices.Equal(r.Params.Dims, j.chosen.Params.Dims) {
				rounds = slices.Concat(rounds, m.runRounds[k])
			}
			if j.best == nil || r.Seconds < j.best.Seconds {
				j.best = r
			}
			if competes(r) && (j.competitor == nil || r.Seconds < j.competitor.Seconds) {
				j.competitor = r
			}
		}
		if j.competitor == nil {
			return nil, fmt.Errorf("%s was chosen, but no algorithm that it competed with was measured by name: measure with --algorithm chosen,all", j.chosen)
		}
		j.chosen.Seconds = benchresult.Median(rounds) / 1e6
		choices[i] = j
	}
	slices.SortStableFunc(choices, func(a, b evaluatedChoice) int {
		x, y := a.chosen, b.chosen
		return cmp.Or(cmp.Compare(x.Algorithm.Collective, y.Algorithm.Collective),
			cmp.Compare(x.Params.P, y.Params.P), cmp.Compare(x.Bytes, y.Bytes))
	})
	return choices, nil
}

// samePoint reports whether two runs have the same collective, number of ranks, size and size
// of elements.
func samePoint(a, b *simulate.Sample) bool {
	return a.Algorithm.Collective == b.Algorithm.Collective && a.Params.P == b.Params.P &&
		a.Bytes == b.Bytes && a.Elem == b.Elem
}

// competes reports whether a group may choose the algorithm of a run.
func competes(r *simulate.Sample) bool {
	return !r.Algorithm.Collective.Reduces() || canonical(r.Algorithm, r.Params.P)
}

// reportChoices prints how close the times of the choices are to the times of the best runs. It
// reports whether enough choices are within the limit.
func reportChoices(out io.Writer, choices []evaluatedChoice) bool {
	fmt.Fprintf(out, "| collective | ranks | bytes | chosen | took | best it competes with | took | ratio | best of all | ratio |\n"+
		"|---|---:|---:|---|---:|---|---:|---:|---|---:|\n")
	near, nearAll := 0, 0
	for i := range choices {
		j := &choices[i]
		rival, best := j.ratio(j.competitor), j.ratio(j.best)
		if rival <= nearBest {
			near++
		}
		if best <= nearBest {
			nearAll++
		}
		c := j.chosen
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s | %s | %.2f | %s | %.2f |\n",
			c.Algorithm.Collective, c.Params.P, benchresult.Size(c.Bytes), c.Algorithm.Name, benchresult.Duration(c.Seconds),
			j.competitor.Algorithm.Name, benchresult.Duration(j.competitor.Seconds), rival, j.best.Algorithm.Name, best)
	}
	all := len(choices)
	share := func(n int) float64 { return 100 * float64(n) / float64(all) }
	fmt.Fprintf(out, "\nOf %d choices, %d (%.0f %%) took at most %.1f times as long as the best that competes, %d (%.0f %%) as the best of all.\n",
		all, near, share(near), nearBest, nearAll, share(nearAll))
	return float64(near) >= nearBestPart*float64(all)
}
