package selection

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/engine"
)

// Score is a row of a comparison: the value of a metric for a candidate in a fold, and
// statistics of the metric over all folds.
type Score struct {
	Candidate string  `column:"candidate" json:"candidate"`
	Index     int64   `column:"index" json:"index"` // index of the candidate, from 0
	Metric    string  `column:"metric" json:"metric"`
	Fold      int64   `column:"fold" json:"fold"` // number of the fold, from 0
	Value     float64 `column:"value" json:"value"`
	// Mean and Std are the mean and the standard deviation of the metric over the folds. Std
	// divides by the number of folds.
	Mean float64 `column:"mean" json:"mean"`
	Std  float64 `column:"std" json:"std"`
	// Rank is 1 plus the number of candidates with a better mean of this metric. A mean that is
	// NaN is worse than any other mean.
	Rank int64 `column:"rank" json:"rank"`
}

// Table is the result of a comparison.
type Table struct {
	// Scores are sorted by candidate, then by metric, then by fold.
	Scores []Score
}

// TableOf returns the table that was collected under a name from Comparison.Scores.
func TableOf(result *engine.Result, name string) (*Table, error) {
	rows, err := engine.Rows[Score](result, name)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("result %q has no rows: a comparison has some", name)
	}
	return &Table{Scores: rows}, nil
}

// Best returns the first score of the candidate that is best by the first metric. It returns
// nil if all means are NaN.
func (t *Table) Best() *Score {
	for i, s := range t.Scores {
		if s.Rank == 1 && s.Metric == t.Scores[0].Metric && !math.IsNaN(s.Mean) {
			return &t.Scores[i]
		}
	}
	return nil
}

// String returns a text with a line for each candidate. A line has the mean and the standard
// deviation of each metric, and the rank by the first metric.
func (t *Table) String() string {
	rows := [][]string{{"rank", "candidate"}}
	for _, s := range t.Scores {
		if s.Fold != 0 {
			continue
		}
		if s.Index == 0 {
			rows[0] = append(rows[0], s.Metric)
		}
		if s.Metric == t.Scores[0].Metric {
			rows = append(rows, []string{strconv.FormatInt(s.Rank, 10), s.Candidate})
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], fmt.Sprintf("%.6g ± %.6g", s.Mean, s.Std))
	}
	widths := make([]int, 0, len(rows[0]))
	for _, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], len([]rune(cell)))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		line := ""
		for j, cell := range row {
			line += fmt.Sprintf("%-*s  ", widths[j], cell)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

// scores returns the rows of a comparison. values are indexed by candidate, metric and fold.
func scores(candidates []string, metrics []Metric, values [][][]float64) []Score {
	means, deviations := make([][]float64, len(candidates)), make([][]float64, len(candidates))
	for i := range candidates {
		for j := range metrics {
			mean, std := meanStd(values[i][j])
			means[i], deviations[i] = append(means[i], mean), append(deviations[i], std)
		}
	}
	var rows []Score
	for i, name := range candidates {
		for j, m := range metrics {
			rank := int64(1)
			for other := range candidates {
				if better(means[other][j], means[i][j], m.LessIsBetter) {
					rank++
				}
			}
			for fold, v := range values[i][j] {
				rows = append(rows, Score{
					Candidate: name, Index: int64(i), Metric: m.Name, Fold: int64(fold),
					Value: v, Mean: means[i][j], Std: deviations[i][j], Rank: rank,
				})
			}
		}
	}
	return rows
}

// better reports whether mean a is better than mean b. If less is set, lower values are better.
func better(a, b float64, less bool) bool {
	switch {
	case math.IsNaN(a):
		return false
	case math.IsNaN(b):
		return true
	case less:
		return a < b
	}
	return a > b
}

// meanStd returns the mean and the standard deviation of values.
func meanStd(values []float64) (mean, std float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v
	}
	mean /= n
	for _, v := range values {
		std += float64((v-mean)*(v-mean)) / n
	}
	return mean, math.Sqrt(std)
}
