package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/superstep-ml/superstep/internal/picture"
)

// colours has the colours of the variants, from the palette of Okabe and Ito, which people with
// any colour vision can tell apart.
var colours = []color.RGBA{{0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x72, 0xb2, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0x56, 0x56, 0x56, 0xff}}

// draw draws the curves of the simulation and, beside them, the runs on a cluster.
func (r *results) draw(path string) error {
	left, err := newPlot("A day of supersteps, simulated", r.Simulated, nil)
	if err != nil {
		return err
	}
	if r.Measured == nil {
		return picture.SaveRow(path, 6*vg.Inch, 4.5*vg.Inch, left)
	}
	title := fmt.Sprintf("%.0f s of supersteps on a cluster: runs (points), simulation (lines)", r.Measured.of(noGuard).Work)
	right, err := newPlot(title, r.Measured.Expected, r.Measured)
	if err != nil {
		return err
	}
	return picture.SaveRow(path, 11*vg.Inch, 4.5*vg.Inch, left, right)
}

// newPlot returns a plot of curves. If m is not nil, each of its runs is a point, the curves are those of
// its costs, and the range of 90 % of the simulated jobs is shaded.
func newPlot(title string, curves []curve, m *measured) (*plot.Plot, error) {
	p := picture.New(title, "mean time between failures of the job", "goodput")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(timeTicks)
	p.Y.Min, p.Y.Tick.Marker = 0, plot.TickerFunc(shareTicks)
	p.Y.Max = 1.05 + 0.08*float64(len(curves)) // the legend is above the curves
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, vg.Points(6)
	p.Add(plotter.NewGrid())
	for i, c := range curves {
		if err := c.add(p, colours[i%len(colours)], m.points(i)); err != nil {
			return nil, fmt.Errorf("plot: %s: %w", c.Name, err)
		}
	}
	return p, nil
}

// points returns the points of the runs that belong to curve i.
func (m *measured) points(i int) (xys plotter.XYs) {
	if m == nil {
		return nil
	}
	for _, r := range m.Runs {
		if !r.LeftOut && r.Guard == m.Costs[i].Guard {
			xys = append(xys, plotter.XY{X: r.Mean, Y: r.Goodput})
		}
	}
	return xys
}

// add adds a curve to a plot, and the points of runs, if there are any.
func (c *curve) add(p *plot.Plot, colour color.RGBA, runs plotter.XYs) error {
	var middle, area plotter.XYs
	for _, at := range c.Points {
		middle, area = append(middle, plotter.XY{X: at.Mean, Y: at.Goodput}), append(area, plotter.XY{X: at.Mean, Y: at.High})
	}
	for _, at := range slices.Backward(c.Points) {
		area = append(area, plotter.XY{X: at.Mean, Y: at.Low})
	}
	line, err := plotter.NewLine(middle)
	if err != nil {
		return err
	}
	line.Color, line.Width = colour, vg.Points(1.5)
	if len(runs) == 0 {
		p.Add(line)
		p.Legend.Add(c.Name, line)
		return nil
	}
	shade, err := plotter.NewPolygon(area)
	if err != nil {
		return err
	}
	shade.Color, shade.LineStyle.Width = color.NRGBA{colour.R, colour.G, colour.B, 0x28}, 0
	points, err := plotter.NewScatter(runs)
	if err != nil {
		return err
	}
	points.GlyphStyle = draw.GlyphStyle{Color: colour, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	p.Add(shade, line, points)
	p.Legend.Add(c.Name, line, points)
	return nil
}

// shareTicks returns ticks for shares from 0 to 1, in percent.
func shareTicks(_, _ float64) (ticks []plot.Tick) {
	for percent := 0; percent <= 100; percent += 20 {
		ticks = append(ticks, plot.Tick{Value: float64(percent) / 100, Label: fmt.Sprintf("%d %%", percent)})
	}
	return ticks
}

// timeTicks returns ticks for times in seconds.
func timeTicks(lo, hi float64) (ticks []plot.Tick) {
	for _, t := range []struct {
		label string
		time  time.Duration
	}{
		{"1 s", time.Second}, {"2 s", 2 * time.Second}, {"5 s", 5 * time.Second}, {"10 s", 10 * time.Second},
		{"20 s", 20 * time.Second}, {"1 min", time.Minute}, {"10 min", 10 * time.Minute},
		{"1 h", time.Hour}, {"6 h", 6 * time.Hour}, {"1 d", 24 * time.Hour}, {"5 d", 5 * 24 * time.Hour}, {"30 d", 30 * 24 * time.Hour},
	} {
		if at := t.time.Seconds(); at >= lo && at <= hi {
			ticks = append(ticks, plot.Tick{Value: at, Label: t.label})
		}
	}
	if len(ticks) == 0 {
		ticks = append(ticks, plot.Tick{Value: math.Sqrt(lo * hi), Label: duration(math.Sqrt(lo * hi))})
	}
	return ticks
}

// validPicture returns an error unless a picture can be drawn at path, or path is empty.
func validPicture(path string) error { return picture.Valid(path) }
