package main

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/internal/picture"
)

// colours has the colours for the sets of rows.
var colours = []color.RGBA{{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}}

// drawCurves plots the first metric on each set of rows over the rounds of training.
func drawCurves(path string, s gbdt.Summary) error {
	p := picture.New(fmt.Sprintf("boosting: the best of %d rounds is %d", s.Rounds, s.BestRound), "round", s.Metrics[0])
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
	return picture.Save(p, path)
}
