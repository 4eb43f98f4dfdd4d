package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
)

// validPlot says whether a picture can be written to a path; "" stands for none.
func validPlot(path string) error {
	if ext := filepath.Ext(path); path != "" && ext != ".png" && ext != ".svg" && ext != ".pdf" {
		return fmt.Errorf("--plot %s: want a name that ends in .png, .svg or .pdf", path)
	}
	return nil
}

// drawROC draws the true positive rate over the false positive rate. The farther the curve lies
// above the diagonal, the better the model. The ending of the path chooses the format.
func drawROC(path string, r *evaluate.BinaryReport) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("survival: area under the ROC curve %.3f", r.AUC)
	p.X.Label.Text, p.Y.Label.Text = "share of the dead predicted to survive", "share of the survivors predicted to survive"
	p.Title.Padding = vg.Points(8)
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant = "Sans"
	}
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
	return save(p, path)
}

// save writes to a temporary file and renames it, so that no partial picture is ever seen.
func save(p *plot.Plot, path string) error {
	content, err := p.WriterTo(7*vg.Inch, 5*vg.Inch, strings.TrimPrefix(filepath.Ext(path), "."))
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".plot-*.partial")
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = content.WriteTo(file)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(file.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}
