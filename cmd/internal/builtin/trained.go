package builtin

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/engine"
)

// trainedReport prints the findings of a training, and draws the plot.
func trainedReport(w io.Writer, a training, r *engine.Result) ([]string, error) {
	file, err := model.Encoded(r, modelResult)
	if err != nil {
		return nil, err
	}
	about, err := summarizeFile(file)
	if err != nil {
		return nil, err
	}
	if err := about.ofPredictor().write(w, model.ShownRows); err != nil {
		return nil, err
	}
	on := "rows of " + a.Input
	if a.Test != "" {
		on = "rows of " + a.Test
	}
	found, err := findings(r, len(about.predictor().Classes))
	if err != nil {
		return nil, err
	}
	if a.Test != "" && found.shown != nil && found.weight == 0 {
		return nil, fmt.Errorf("--test: no row of %s has a label, a prediction and a weight above 0 to measure by; the model is written to %s", a.Test, a.Model)
	}
	if text := found.text(); text != "" {
		fmt.Fprintf(w, "\non the %s:\n%s", on, strings.TrimRight(text, "\n")+"\n")
	}
	if a.Plot != "" {
		if err := a.draw(about, found, on, r); err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "plot written to %s\n", a.Plot)
	}
	_, err = fmt.Fprintf(w, "model written to %s\n", a.Model)
	var columns []string
	if len(a.Features) > 0 {
		columns = append(columns, a.Label, a.Weight)
		columns = append(columns, a.Features...)
	}
	m, wrong := pipeline.DecodeAny(file)
	if err = errors.Join(err, wrong); err != nil {
		return nil, err
	}
	of := strings.TrimPrefix(on, "rows")
	without, _ := unmeasured(r, of)
	return slices.Concat(readingNotes(r, columns, a.numericOf(m)), a.indexNotes(r, a.readBy()), categoryNotes(m), a.trainedNotes(about, r), surveyNotes(m, r, of), without, a.namedNotes(lastOf(m))), nil
}

// draw draws the picture that --plot requests.
func (a training) draw(about *modelSummary, found *found, on string, r *engine.Result) error {
	switch a.plotOf() {
	case "clusters":
		points, err := engine.Rows[point](r, pointsResult)
		if err != nil {
			return err
		}
		return drawClusters(a.Plot, points, about.predictor().Columns)
	case "quality":
		if found.binary == nil && found.multiclass != nil {
			return drawConfusion(a.Plot, found.multiclass, on)
		}
		return drawCurve(a.Plot, "roc", found.binary, on)
	case "roc":
		if found.binary == nil {
			return errors.New("--plot-of roc: there are not two classes")
		}
		return drawCurve(a.Plot, "roc", found.binary, on)
	case "coefficients":
		return drawCoefficients(a.Plot, about)
	case "importance":
		return drawImportance(a.Plot, about)
	}
	return drawLoss(a.Plot, about)
}
