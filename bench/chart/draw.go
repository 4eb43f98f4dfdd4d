package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	plotdraw "gonum.org/v1/plot/vg/draw"

	"github.com/superstep-ml/superstep/internal/picture"
)

// colours has two colours of the palette of Okabe and Ito, which people with any colour vision
// can tell apart. meanings has the texts of the legend.
var (
	colours  = [numTimes]color.RGBA{fromFile: {0x00, 0x72, 0xb2, 0xff}, inMemory: {0xe6, 0x9f, 0x00, 0xff}}
	meanings = [numTimes]string{fromFile: "whole process, from CSV to the saved model", inMemory: "training alone, rows in memory"}
)

// draw draws each of bars as a horizontal bar from 1 to its Times, the first bar on top, and
// writes the picture to path.
func draw(bars []bar, path string) error {
	pic := plot.New()
	pic.Title.Text = "Time to train, as a multiple of Superstep's (logarithmic scale)"
	pic.Title.Padding, pic.Legend.Padding = vg.Points(8), vg.Points(3)
	for _, style := range []*text.Style{&pic.Title.TextStyle, &pic.X.Tick.Label, &pic.Y.Tick.Label, &pic.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	pic.Legend.TextStyle.Font.Size, pic.Legend.XOffs, pic.Legend.YOffs = pic.X.Tick.Label.Font.Size, -vg.Points(8), vg.Points(8)
	bars = slices.Clone(bars)
	slices.Reverse(bars)
	rows := rows{bars, pic.X.Tick.Label}
	var names []plot.Tick
	for i, b := range bars {
		names = append(names, plot.Tick{Value: float64(i), Label: b.Library + ", " + b.What})
	}
	pic.X.Scale, pic.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(powers)
	pic.Y.Tick.Marker, pic.Y.Tick.Length, pic.Y.LineStyle.Width = plot.ConstantTicks(names), 0, 0
	grid := plotter.NewGrid()
	grid.Horizontal.Width = 0
	pic.Add(grid, rows)
	for of, meaning := range meanings {
		if slices.ContainsFunc(bars, func(b bar) bool { return b.Of == of }) {
			pic.Legend.Add(meaning, swatch{colours[of]})
		}
	}
	return picture.SaveRow(path, 7*vg.Inch, vg.Points(float64(60+26*(len(bars)+numTimes))), pic)
}

// rows is a plotter that draws one bar in each row of the picture, and beside the bar its
// length as a number.
type rows struct {
	bars  []bar
	label text.Style
}

// half is half the height of a bar. The distance between rows is 1.
const half = 0.32

// Plot implements plot.Plotter.
func (r rows) Plot(c plotdraw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, b := range r.bars {
		from, to := x(min(1, b.Times)), x(max(1, b.Times))
		lo, hi := y(float64(i)-half), y(float64(i)+half)
		c.FillPolygon(colours[b.Of], []vg.Point{{X: from, Y: lo}, {X: to, Y: lo}, {X: to, Y: hi}, {X: from, Y: hi}})
		style := r.label
		style.XAlign, style.YAlign = text.XLeft, text.YCenter
		c.FillText(style, vg.Point{X: to + vg.Points(4), Y: (lo + hi) / 2}, multiple(b.Times))
	}
	line := plotdraw.LineStyle{Color: color.Black, Width: vg.Points(1)}
	c.StrokeLine2(line, x(1), c.Min.Y, x(1), c.Max.Y)
}

// multiple returns v as text with at least two digits.
func multiple(v float64) string {
	if v < 9.95 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// DataRange implements plot.DataRanger. The x range begins at the largest power of ten that is
// at most 1 and at most the length of every bar. It ends at a power of ten that leaves space
// for a number beside the longest bar. The y range has space for the legend below the bars.
func (r rows) DataRange() (xmin, xmax, ymin, ymax float64) {
	least, most := 1.0, 1.0
	for _, b := range r.bars {
		least, most = min(least, b.Times), max(most, b.Times)
	}
	most = math.Pow(10, math.Ceil(math.Log10(1.3*most)))
	return math.Pow(10, math.Floor(math.Log10(least))), most, -0.8 - numTimes/2.0, float64(len(r.bars)) - 0.5 + half
}

// powers returns ticks from lo to hi. Ticks at powers of ten have labels. Ticks at 2 to 9 times
// a power of ten have none.
func powers(lo, hi float64) (ticks []plot.Tick) {
	for power := math.Pow(10, math.Floor(math.Log10(lo))); power <= hi; power *= 10 {
		for k := 1.0; k < 10; k++ {
			tick := plot.Tick{Value: k * power}
			if k == 1 {
				tick.Label = fmt.Sprintf("%g", power)
			}
			if tick.Value >= lo && tick.Value <= hi {
				ticks = append(ticks, tick)
			}
		}
	}
	return ticks
}

// swatch is the sample of a colour in the legend.
type swatch struct{ color color.Color }

// Thumbnail implements plot.Thumbnailer.
func (s swatch) Thumbnail(c *plotdraw.Canvas) {
	c.FillPolygon(s.color, []vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Min.X, Y: c.Max.Y}})
}
