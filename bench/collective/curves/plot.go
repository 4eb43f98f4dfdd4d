package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/superstep-ml/superstep/internal/benchresult"
)

// colours is the palette of Okabe and Ito, which people with any colour vision can tell apart.
// If there are more curves than colours, further curves use the same colours with other dashes
// and other shapes of points.
var (
	colours = []color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
		{0x56, 0xb4, 0xe9, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x00, 0x00, 0xff},
	}
	dashes = [][]vg.Length{nil, {vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(2)}}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}}
)

// draw draws the three pictures of the network of p.
func (c *drawCommand) draw(p *pricer) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	var sizes, ranks []int
	for bytes := elem; bytes <= c.MaxBytes; bytes *= 2 {
		sizes = append(sizes, bytes)
	}
	for r := 2; r <= c.MaxRanks; r *= 2 {
		if ranks = append(ranks, r); r >= 16 && 3*r/2 <= c.MaxRanks {
			ranks = append(ranks, 3*r/2)
		}
	}
	name := p.net.Name
	err := p.picture(filepath.Join(c.Out, fmt.Sprintf("allreduce-%s-by-size.png", name)),
		fmt.Sprintf("AllReduce among %d ranks, %s", c.At, name), "bytes", sizes, sizeTicks,
		func(bytes int) (int, int) { return c.At, bytes })
	for kind, bytes := range map[string]int{"short": c.Short, "long": c.Long} {
		if err != nil {
			return err
		}
		err = p.picture(filepath.Join(c.Out, fmt.Sprintf("allreduce-%s-%s-by-ranks.png", name, kind)),
			fmt.Sprintf("AllReduce of %s, %s", benchresult.Size(bytes), name), "ranks", ranks, rankTicks,
			func(r int) (int, int) { return r, bytes })
	}
	return err
}

// picture draws a curve for each algorithm through its prices at xs, and writes the picture to
// path. at returns the number of ranks and the bytes for a value of xs.
func (p *pricer) picture(path, title, xLabel string, xs []int, ticks plot.TickerFunc, at func(x int) (ranks, bytes int)) error {
	pic := plot.New()
	pic.Title.Text, pic.X.Label.Text, pic.Y.Label.Text = title, xLabel, "time"
	pic.Title.Padding, pic.Legend.Padding = vg.Points(8), vg.Points(2)
	pic.X.Scale, pic.Y.Scale = plot.LogScale{}, plot.LogScale{}
	pic.X.Tick.Marker, pic.Y.Tick.Marker = ticks, plot.TickerFunc(timeTicks)
	for _, style := range []*text.Style{&pic.Title.TextStyle, &pic.X.Label.TextStyle, &pic.Y.Label.TextStyle,
		&pic.X.Tick.Label, &pic.Y.Tick.Label, &pic.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	pic.Legend.Top, pic.Legend.Left = true, true
	pic.Add(plotter.NewGrid())
	for i, a := range allReduces() {
		var curve plotter.XYs
		for _, x := range xs {
			ranks, bytes := at(x)
			t, ok, err := p.price(a, ranks, bytes)
			if err != nil {
				return err
			}
			if ok {
				curve = append(curve, plotter.XY{X: float64(x), Y: t})
			}
		}
		if len(curve) == 0 {
			continue
		}
		line, points, err := plotter.NewLinePoints(curve)
		if err != nil {
			return fmt.Errorf("plot: %s: %w", a.Name, err)
		}
		line.Color, line.Width, line.Dashes = colours[i%len(colours)], vg.Points(1.3), dashes[i/len(colours)%len(dashes)]
		points.GlyphStyle = draw.GlyphStyle{Color: line.Color, Radius: vg.Points(2), Shape: shapes[i/len(colours)%len(shapes)]}
		pic.Add(line, points)
		pic.Legend.Add(a.Name, line, points)
	}
	if err := pic.Save(8*vg.Inch, 6*vg.Inch, path); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}

// sizeTicks returns ticks at powers of eight bytes. rankTicks returns ticks at powers of two.
func sizeTicks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for v := 8; float64(v) <= hi; v *= 8 {
		if float64(v) >= lo {
			ticks = append(ticks, plot.Tick{Value: float64(v), Label: benchresult.Size(v)})
		}
	}
	return ticks
}

func rankTicks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for v := 2; float64(v) <= hi; v *= 2 {
		if float64(v) >= lo {
			ticks = append(ticks, plot.Tick{Value: float64(v), Label: fmt.Sprint(v)})
		}
	}
	return ticks
}

// timeTicks returns ticks for times in seconds. Ticks at powers of ten have labels. Ticks at 2
// to 9 times a power of ten have none.
func timeTicks(lo, hi float64) []plot.Tick {
	names := []string{"1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "1000 s"}
	var ticks []plot.Tick
	power := 1e-6
	for _, name := range names {
		for k := 1; k < 10; k++ {
			v := float64(k) * power
			if v < lo || v > hi {
				continue
			}
			tick := plot.Tick{Value: v}
			if k == 1 {
				tick.Label = name
			}
			ticks = append(ticks, tick)
		}
		power *= 10
	}
	return ticks
}
