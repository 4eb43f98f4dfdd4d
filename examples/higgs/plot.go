package main

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
)

// validPlot says whether a picture can be written to a path; "" stands for none.
func validPlot(path string) error {
	if ext := filepath.Ext(path); path != "" && ext != ".png" && ext != ".svg" && ext != ".pdf" {
		return fmt.Errorf("--plot %s: want a name that ends in .png, .svg or .pdf", path)
	}
	return nil
}

// colours of the sets.
var colours = []color.RGBA{{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}}

// drawCurves draws the first metric on each set after each round.
func drawCurves(path string, s gbdt.Summary) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("boosting: the best of %d rounds is %d", s.Rounds, s.BestRound)
	p.X.Label.Text, p.Y.Label.Text = "round", s.Metrics[0]
	p.Title.Padding, p.Legend.Padding = vg.Points(8), vg.Points(3)
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	p.Add(plotter.NewGrid())
	for k, name := range s.Sets {
		var points plotter.XYs
		for round := range s.Record {
			if v := float64(s.Record[round][k][0]); !math.IsNaN(v) {
				points = append(points, plotter.XY{X: float64(round + 1), Y: v})
			}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		line.Color, line.Width = colours[k%len(colours)], vg.Points(1.6)
		p.Add(line)
		p.Legend.Add(name, line)
	}
	p.Legend.Left, p.Legend.Top = true, true
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
	_, err = content.WriteTo(file)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("plot: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}
