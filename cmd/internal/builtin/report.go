package builtin

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// maxShown is the maximal number of coordinates of a centre that are printed. The model file
// has all coordinates.
const maxShown = 10

// report prints the centres and writes the model.
func report(w io.Writer, a KMeansArgs, r *engine.Result) ([]string, error) {
	model, err := kmeans.ModelOf(r, "model")
	if err != nil {
		return nil, err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "cluster\tsize\tcentre\t")
	for c, center := range model.Centers {
		var text []string
		for _, x := range center[:min(len(center), maxShown)] {
			text = append(text, fmt.Sprintf("%.5g", x))
		}
		if len(center) > maxShown {
			text = append(text, "…")
		}
		fmt.Fprintf(table, "%d\t%.0f\t%s\t\n", c, model.Sizes[c], strings.Join(text, " "))
	}
	if err := table.Flush(); err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "inertia %.6g after %d supersteps\n", model.Inertia, len(model.History))
	if a.Output != "" {
		fmt.Fprintf(w, "predictions written to %s\n", a.Output)
	}
	if a.Model != "" {
		if err := model.Save(a.Model); err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "model written to %s\n", a.Model)
	}
	return nil, nil
}
