package builtin

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// Inspect prints a description of the model file at path as text or JSON. The model may be of
// any kind. Inspect prints at most rows rows of each table; 0 means all rows. If plot is not
// empty, Inspect also draws the plot named by plotOf to the file plot.
func Inspect(w io.Writer, path string, asJSON bool, rows int, plot, plotOf string) error {
	if err := validPlot(plot); err != nil {
		return err
	}
	file, err := model.ReadFile(path)
	if err != nil {
		return err
	}
	p, err := summarizeFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(p)
	} else {
		if rows == 0 {
			rows = maxNamed
		}
		err = p.write(w, rows)
	}
	if err != nil || plot == "" {
		return err
	}
	switch plotOf {
	case "coefficients":
		return drawCoefficients(plot, p)
	case "importance":
		return drawImportance(plot, p)
	}
	return drawLoss(plot, p)
}
