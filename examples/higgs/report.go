package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/fixedmath"
)

// report prints the results, and writes the model and the plot if --model and --plot are given.
func report(a args, r *engine.Result) error {
	m, err := gbdt.ModelOf(r, "model")
	if err != nil {
		return err
	}
	unseen, err := evaluate.ReportOf[evaluate.BinaryReport](r, "unseen")
	if err != nil {
		return err
	}
	fmt.Printf("%d rounds, the best on the test rows was round %d\n", m.Summary.Rounds, m.Summary.BestRound)
	fmt.Printf("area under the ROC curve of %.0f test rows %.4f, accuracy %.3f\n", unseen.Weight, unseen.AUC, unseen.Accuracy)
	if err := printFeatures(m); err != nil {
		return err
	}
	if a.Model != "" {
		if err := m.Save(a.Model); err != nil {
			return err
		}
		fmt.Printf("model written to %s\n", a.Model)
	}
	if a.Plot != "" {
		if err := drawCurves(a.Plot, m.Summary); err != nil {
			return err
		}
		fmt.Printf("plot written to %s\n", a.Plot)
	}
	return nil
}

// printedFeatures is the number of features that are printed.
const printedFeatures = 5

// printFeatures prints the total gain of the most important features. For each of these it also
// prints its contribution to the log odds that are predicted for a row in which all features
// are 1.
func printFeatures(m *gbdt.Model) error {
	x, err := m.Ensemble.Explainer(tree.ExplainOptions{})
	if err != nil {
		return err
	}
	features := len(m.Ensemble.Features)
	row, moves := make([]float64, features), make([]float64, features+1)
	for i := range row {
		row[i] = 1
	}
	x.Values(row, moves)
	all := m.Ensemble.Importances()
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].TotalGain, all[a].TotalGain) })
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "feature\tsplits\ttotal gain\tmoves a row of ones by\t")
	rest := 0.0
	for i, f := range order {
		if i < printedFeatures {
			fmt.Fprintf(table, "%s\t%d\t%.1f\t%+.3f\t\n", all[f].Feature, all[f].Splits, all[f].TotalGain, moves[f])
		} else {
			rest += moves[f]
		}
	}
	fmt.Fprintf(table, "others\t\t\t%+.3f\t\n", rest)
	if err := table.Flush(); err != nil {
		return err
	}
	margin := moves[features]
	for _, v := range moves[:features] {
		margin += v
	}
	fmt.Printf("the mean row is at %+.3f, and so a row of ones at %+.3f: probability %.3f\n", moves[features], margin, 1/(1+fixedmath.Exp(-margin)))
	return nil
}
