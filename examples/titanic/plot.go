package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/internal/picture"
)

// drawROC draws the ROC curve to the file at path: the true positive rate over the false
// positive rate. The diagonal is the curve of random predictions. The ending of the path
// determines the format.
func drawROC(path string, r *evaluate.BinaryReport) error {
	p := picture.New(fmt.Sprintf("survival: area under the ROC curve %.3f", r.AUC),
		"share of the dead predicted to survive", "share of the survivors predicted to survive")
	points := make(plotter.XYs, len(r.Curve))
	for i, c := range r.Curve {
		points[i] = plotter.XY{X: c.FPR, Y: c.TPR}
	}
	roc, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	roc.Color, roc.Width = color.RGBA{0x00, 0x72, 0xb2, 0xff}, vg.Points(1.6)
	chance, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	chance.Color, chance.Dashes = color.Gray{0x99}, []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(plotter.NewGrid(), chance, roc)
	return picture.Save(p, path)
}
