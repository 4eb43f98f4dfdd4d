package builtin

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// series is what was measured after each round.
type series struct {
	name   string
	values []float64
}

// boosted adds what training measured: a curve for each set of the first metric, and the
// values after the best round of all.
func (p *portrait) boosted(m *gbdt.Model) {
	s := m.Summary
	p.facts = append([]fact{{"objective", m.Objective.String()}}, p.facts...)
	if len(s.Record) == 0 || len(s.Metrics) == 0 {
		return
	}
	best := len(s.Record)
	if s.BestRound > 0 {
		best = min(best, s.BestRound)
	}
	p.lossName, p.loss = s.Metrics[0], nil
	t := tabled{Title: "measured after round " + strconv.Itoa(best), Columns: append([]string{"set"}, s.Metrics...)}
	for k, set := range s.Sets {
		curve := series{name: set}
		for _, round := range s.Record {
			curve.values = append(curve.values, float64(round[k][0]))
		}
		p.curves = append(p.curves, curve)
		row := []any{set}
		for _, v := range s.Record[best-1][k] {
			row = append(row, float64(v))
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) > 0 {
		p.Tables = append(p.Tables, t)
	}
}

// outOfBag adds how good a forest is on the rows that its trees did not draw.
func (p *portrait) outOfBag(m *forest.Model) {
	if o := m.OutOfBag; o != nil {
		score, loss := "R² out of bag", "rmse out of bag"
		if m.Task == forest.Classification {
			score, loss = "accuracy out of bag", "log-loss out of bag"
		}
		p.facts = append(p.facts, fact{score, textOf(o.Score)}, fact{loss, textOf(o.Loss)})
	}
}

// importances adds what features count for, the most important first; those that no split
// looks at are left out.
func (p *portrait) importances(e *tree.Ensemble, feature func(i int) string) {
	t := tabled{Title: "importance, the largest gain first", Columns: []string{"feature", "share of gain", "gain", "cover", "splits"}}
	total := 0.0
	all := e.Importances()
	for _, im := range all {
		total += im.TotalGain
	}
	for i, im := range all {
		if im.Splits == 0 {
			continue
		}
		share := math.NaN()
		if total > 0 {
			share = im.TotalGain / total
		}
		name := feature(i)
		t.Rows = append(t.Rows, []any{name, share, im.Gain(), im.Cover(), float64(im.Splits)})
		p.importance = append(p.importance, coefficient{name: name, value: share})
	}
	slices.SortStableFunc(t.Rows, func(a, b []any) int { return cmp.Compare(b[1].(float64), a[1].(float64)) })
	p.Tables = append(p.Tables, t)
}
