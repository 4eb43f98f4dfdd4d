package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// report prints the results, and writes the model and the plot if --model and --plot are given.
func report(a args, r *engine.Result) error {
	a = a.withDefaults()
	model, err := kmeans.ModelOf(r, "model")
	if err != nil {
		return err
	}
	printModel(a, model)
	if a.Label != "" {
		majorities, err := engine.Rows[majority](r, "majorities")
		if err != nil {
			return err
		}
		fmt.Printf("purity against %s: %.3f\n", a.Label, purity(majorities))
	}
	if a.Model != "" {
		if err := model.Save(a.Model); err != nil {
			return err
		}
	}
	leftOut := ""
	if a.Plot != "" {
		rows, err := engine.Rows[plotted](r, "plot")
		if err != nil {
			return err
		}
		rows, hidden := finiteRows(rows)
		if hidden > 0 {
			leftOut = fmt.Sprintf(", %d of its %d points left out: NaN, infinite or beyond 1e300", hidden, hidden+len(rows))
		}
		title := fmt.Sprintf("%d clusters, inertia %.6g", len(model.Centers), model.Inertia)
		if err := drawClusters(a.Plot, title, a.PlotColumns, rows, len(model.Centers)); err != nil {
			return err
		}
	}
	for _, written := range [][3]string{{"predictions", a.Output}, {"model", a.Model}, {"plot", a.Plot, leftOut}} {
		if written[1] != "" {
			fmt.Printf("%s written to %s%s\n", written[0], written[1], written[2])
		}
	}
	return nil
}

// printModel prints a table of the centres, and then the inertia of the first and the last
// supersteps.
func printModel(a args, model *kmeans.Model) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "cluster\tsize\t%s\t\n", strings.Join(a.Columns, "\t"))
	for c, center := range model.Centers {
		fmt.Fprintf(table, "%d\t%.0f\t", c, model.Sizes[c])
		for _, x := range center {
			fmt.Fprintf(table, "%.5g\t", x)
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	fmt.Printf("inertia per superstep:")
	for i, step := range model.History {
		if shown := 4; len(model.History) > 2*shown && i == shown {
			fmt.Printf(" …")
		} else if i < shown || i >= len(model.History)-shown {
			fmt.Printf(" %.6g", step.Inertia)
		}
	}
	fmt.Println()
}

// majority has the number of rows in a cluster (All), and the number of these rows that have
// the most frequent label of the cluster (Most).
type majority struct{ Most, All int64 }

// purity returns the share of rows that have the most frequent label of their cluster.
func purity(clusters []majority) float64 {
	var most, all int64
	for _, c := range clusters {
		most, all = most+c.Most, all+c.All
	}
	return float64(most) / float64(all)
}
