package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/picture"
	"github.com/superstep-ml/superstep/operators"
)

// plotted is a point of the plot: its coordinates and its cluster.
type plotted struct {
	XY      []float64
	Cluster int64
}

// The colours are the palette of Okabe and Ito, which people with any colour vision can
// distinguish. When all colours have been used, further clusters use them again with the next
// shape.
var (
	colours = []color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
		{0x56, 0xb4, 0xe9, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0xf0, 0xe4, 0x42, 0xff},
	}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}}
)

// maxLegend is the largest number of clusters that are named in the legend. A longer legend
// would cover the points. The title always has the number of clusters.
const maxLegend = 8

// plottedRows returns the rows of a plot of two columns. They have the columns of plotted.
func plottedRows(clustered *engine.Dataset, columns []string) *engine.Dataset {
	xy := unused(clustered, "xy")
	rows := operators.Select(operators.Vectorize(clustered, xy, columns...), xy, "cluster")
	if xy != "xy" {
		rows = operators.Rename(rows, xy, "xy") // the name in plotted
	}
	return rows
}

// finiteRows returns the rows whose coordinates are finite and at most 1e300 in absolute value,
// and the number of other rows. With larger values, the length of an axis may overflow.
func finiteRows(rows []plotted) (finite []plotted, hidden int) {
	for _, r := range rows {
		if slices.ContainsFunc(r.XY, func(v float64) bool { return !(math.Abs(v) <= 1e300) }) {
			hidden++
		} else {
			finite = append(finite, r)
		}
	}
	return finite, hidden
}

// drawClusters writes a scatter plot of two columns to the file at path. The points are
// coloured by cluster, and a cross marks the mean of each cluster. The ending of the path
// determines the format: png, svg or pdf.
func drawClusters(path, title string, columns []string, rows []plotted, k int) error {
	p := picture.New(title, columns[0], columns[1])
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(picture.Ticks), plot.TickerFunc(picture.Ticks)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	points := make([]plotter.XYs, k)
	for _, r := range rows {
		points[r.Cluster] = append(points[r.Cluster], plotter.XY{X: r.XY[0], Y: r.XY[1]})
	}
	var means plotter.XYs
	for c, xys := range points {
		if len(xys) == 0 {
			continue
		}
		scatter, err := plotter.NewScatter(xys)
		if err != nil {
			return fmt.Errorf("plot: cluster %d: %w", c, err)
		}
		scatter.GlyphStyle = draw.GlyphStyle{
			Color:  colours[c%len(colours)],
			Radius: vg.Points(3),
			Shape:  shapes[c/len(colours)%len(shapes)],
		}
		p.Add(scatter)
		if k <= maxLegend {
			p.Legend.Add(fmt.Sprintf("cluster %d (%d rows)", c, len(xys)), scatter)
		}
		means = append(means, mean(xys))
	}
	if len(means) > 0 {
		crosses, err := plotter.NewScatter(means)
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		crosses.GlyphStyle = draw.GlyphStyle{Color: color.Black, Radius: vg.Points(6), Shape: draw.CrossGlyph{}}
		p.Add(crosses)
		p.Legend.Add("mean", crosses)
	}
	if len(means) == 0 {
		return picture.Save(p, path)
	}
	// The axes are extended, so that there is a margin around the points and the legend does not
	// cover them.
	legend := 0.05 // share of the height of the plot that is kept free for the legend
	if k <= maxLegend {
		legend += float64(0.047 * float64(k))
	}
	width, height := float64((p.X.Max-p.X.Min)/32), float64((p.Y.Max-p.Y.Min)/32)
	p.X.Min, p.X.Max = p.X.Min-width, p.X.Max+width
	p.Y.Min = p.Y.Min - height
	p.Y.Max += float64((p.Y.Max - p.Y.Min) * float64(legend/(1-legend)))
	return picture.Save(p, path)
}

// mean returns the mean of the points.
func mean(points plotter.XYs) plotter.XY {
	var m plotter.XY
	for _, p := range points {
		m.X += p.X / float64(len(points))
		m.Y += p.Y / float64(len(points))
	}
	return m
}
