package builtin

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/picture"
	"github.com/superstep-ml/superstep/internal/wholefile"
)

// Pictures have 672 by 480 pixels.
const (
	plotWidth  = 7 * vg.Inch
	plotHeight = 5 * vg.Inch
)

// These are the colours of Okabe and Ito, which people with any colour vision can distinguish.
// After the last colour, the colours are used again with another shape of points.
var (
	palette = []color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
		{0x56, 0xb4, 0xe9, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0xf0, 0xe4, 0x42, 0xff},
	}
	glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}}
	grey   = color.RGBA{0x99, 0x99, 0x99, 0xff}
)

// validPlot returns an error if no picture can be written to path. The empty path means that no
// picture is written.
func validPlot(path string) error {
	if path == "" {
		return nil
	}
	if err := picture.Valid(path); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("--plot %s: there is no directory %s", path, filepath.Dir(path))
	}
	return nil
}

// canvas returns an empty picture.
func canvas(title, x, y string) *plot.Plot {
	p := picture.New(clipped(title, 80), clipped(x, 60), clipped(y, 60))
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(picture.Ticks), plot.TickerFunc(picture.Ticks)
	p.Add(plotter.NewGrid())
	return p
}

// clipped returns s, or "…" and the end of s if s has more than most characters.
func clipped(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return s
}

// curve adds a line to a plot.
func curve(p *plot.Plot, points plotter.XYs, c color.Color, dashed bool) (*plotter.Line, error) {
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	line.Color, line.Width = c, vg.Points(1.6)
	if dashed {
		line.Dashes, line.Width = []vg.Length{vg.Points(4), vg.Points(3)}, vg.Points(1)
	}
	p.Add(line)
	return line, nil
}

// drawLoss draws the loss that training reported for each iteration.
func drawLoss(path string, about *modelSummary) error {
	about = about.predictor()
	if len(about.described.Curves) > 0 {
		return drawCurves(path, about)
	}
	var points plotter.XYs
	for i, v := range about.loss {
		if math.Abs(v) < 1e300 { // false for NaN
			points = append(points, plotter.XY{X: float64(i), Y: v})
		}
	}
	if len(points) == 0 {
		return fmt.Errorf("a model of kind %s has no curve of training to draw", about.Kind)
	}
	p := canvas(about.Kind+": training", "iteration", about.lossName)
	if _, err := curve(p, points, palette[0], false); err != nil {
		return err
	}
	if len(points) <= 60 {
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: palette[0], Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
		p.Add(dots)
	}
	margins(p)
	return savePlot(p, path)
}

// drawCurves draws the measure that training computed on each set after each round.
func drawCurves(path string, about *modelSummary) error {
	p := canvas(about.Kind+": training", "round", about.lossName)
	for i, s := range about.described.Curves {
		var points plotter.XYs
		for round, v := range s.Values {
			if math.Abs(v) < 1e300 { // false for NaN
				points = append(points, plotter.XY{X: float64(round + 1), Y: v})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, err := curve(p, points, palette[i%len(palette)], i >= len(palette))
		if err != nil {
			return err
		}
		p.Legend.Add(clipped(s.Name, 24), line)
	}
	p.Legend.Top = true
	margins(p)
	taken := 0.03 + float64(0.047*float64(min(len(about.described.Curves), maxLegend))) // room for the legend
	p.Y.Max += float64((p.Y.Max - p.Y.Min) * (taken / (1 - taken)))
	return savePlot(p, path)
}

// margins adds empty space around the drawing.
func margins(p *plot.Plot) {
	width, height := (p.X.Max-p.X.Min)/32, (p.Y.Max-p.Y.Min)/32
	if width == 0 {
		width = 0.5
	}
	if height == 0 {
		height = max(math.Abs(p.Y.Max)/10, 1e-6)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = p.X.Min-width, p.X.Max+width, p.Y.Min-height, p.Y.Max+height
}

// drawCurve draws the ROC, precision-recall or lift curve of a report.
func drawCurve(path, what string, r *evaluate.BinaryReport, on string) error {
	var points, chance plotter.XYs
	p := canvas(fmt.Sprintf("ROC, area %.4f, %s", r.AUC, on), "false positive rate", "true positive rate")
	share := r.Positive / r.Weight
	switch what {
	case "pr":
		p = canvas(fmt.Sprintf("precision and recall, average precision %.4f, %s", r.PRAUC, on), "recall", "precision")
		chance = plotter.XYs{{X: 0, Y: share}, {X: 1, Y: share}}
	case "lift":
		p = canvas("lift, "+on, "share of rows predicted to be positive", "lift")
		chance = plotter.XYs{{X: 0, Y: 1}, {X: 1, Y: 1}}
	default:
		chance = plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}}
	}
	for i, c := range r.Curve {
		xy := plotter.XY{X: c.FPR, Y: c.TPR}
		switch what {
		case "pr":
			xy = plotter.XY{X: c.TPR, Y: c.Precision}
		case "lift":
			xy = plotter.XY{X: c.Share, Y: c.Lift}
			if i == 0 {
				continue // the lift of no rows is not defined
			}
		}
		if !math.IsNaN(xy.X) && !math.IsNaN(xy.Y) {
			points = append(points, xy)
		}
	}
	if len(points) == 0 {
		return errors.New("there is no curve to draw: the rows are all of one class")
	}
	line, err := curve(p, points, palette[0], false)
	if err != nil {
		return err
	}
	by, err := curve(p, chance, grey, true)
	if err != nil {
		return err
	}
	p.Legend.Add("the model", line)
	p.Legend.Add("chance", by)
	p.Legend.Left = what == "pr"
	p.Legend.Top = what == "lift"
	p.X.Min, p.X.Max, p.Y.Min = -0.02, 1.02, -0.02
	if what != "lift" {
		p.Y.Max = 1.02
	}
	return savePlot(p, path)
}

// drawCoefficients draws the largest coefficients as bars. If standard errors are known, it
// adds error bars of two standard errors.
func drawCoefficients(path string, about *modelSummary) error {
	about = about.predictor()
	if len(about.described.Coefficients) == 0 {
		return fmt.Errorf("a model of kind %s has no coefficients to draw", about.Kind)
	}
	return drawBars(path, about.Kind+": coefficients", "estimate", about.described.Coefficients)
}

// drawImportance draws the most important features by their share of the gain of splits.
func drawImportance(path string, about *modelSummary) error {
	about = about.predictor()
	if len(about.described.Importances) == 0 {
		return fmt.Errorf("a model of kind %s has no splits whose importance can be drawn", about.Kind)
	}
	return drawBars(path, about.Kind+": importance", "share of the gain", about.described.Importances)
}

// drawBars draws the largest values in all as bars.
func drawBars(path, title, axis string, all []model.Term) error {
	list := slices.Clone(all)
	slices.SortStableFunc(list, func(a, b model.Term) int { return cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)) })
	left := len(list)
	list = list[:min(len(list), model.ShownRows)]
	left -= len(list)
	slices.Reverse(list) // the largest at the top
	if left > 0 {
		title += fmt.Sprintf(", the %d largest of %d", len(list), len(list)+left)
	}
	p := canvas(title, axis, "")
	values, labels := make(plotter.Values, len(list)), make([]string, len(list))
	for i, c := range list {
		values[i], labels[i] = c.Value, clipped(c.Name, 28)
	}
	bars, err := plotter.NewBarChart(values, min(vg.Points(14), plotHeight/vg.Length(2*len(list))))
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width = true, palette[0], 0
	p.Add(bars)
	for i, c := range list {
		if c.StdError == 0 {
			continue
		}
		y, reach := float64(i), 2*c.StdError
		if _, err := curve(p, plotter.XYs{{X: c.Value - reach, Y: y}, {X: c.Value + reach, Y: y}}, color.Black, false); err != nil {
			return err
		}
	}
	p.NominalY(labels...)
	if _, err := curve(p, plotter.XYs{{X: 0, Y: -0.5}, {X: 0, Y: float64(len(list)) - 0.5}}, grey, false); err != nil {
		return err
	}
	roomForBars(p)
	return savePlot(p, path)
}

// roomForBars extends the axis so that the longest bars do not reach the border, where they
// would look cut off.
func roomForBars(p *plot.Plot) {
	room := float64(0.05 * (p.X.Max - p.X.Min))
	if p.X.Max > 0 {
		p.X.Max += room
	}
	if p.X.Min < 0 {
		p.X.Min -= room
	}
}

// maxLegend is the largest number of clusters that get a legend: a longer one would cover the
// points.
const maxLegend = 8

// drawClusters draws rows by their first two features, coloured by cluster.
func drawClusters(path string, rows []point, features []string) error {
	if len(rows) == 0 {
		return errors.New("there is no row to draw")
	}
	axes := [2]string{"first feature", ""}
	copy(axes[:], features)
	p := canvas("clusters", axes[0], axes[1])
	byCluster := map[int64]plotter.XYs{}
	for _, r := range rows {
		byCluster[r.Cluster] = append(byCluster[r.Cluster], plotter.XY{X: r.X, Y: r.Y})
	}
	var clusters []int64
	for c := range byCluster {
		clusters = append(clusters, c)
	}
	slices.Sort(clusters)
	for _, c := range clusters {
		scatter, err := plotter.NewScatter(byCluster[c])
		if err != nil {
			return fmt.Errorf("plot: cluster %d: %w", c, err)
		}
		at := int(c)
		scatter.GlyphStyle = draw.GlyphStyle{Color: palette[at%len(palette)], Radius: vg.Points(2.5), Shape: glyphs[at/len(palette)%len(glyphs)]}
		p.Add(scatter)
		if len(clusters) <= maxLegend {
			p.Legend.Add(fmt.Sprintf("cluster %d", c), scatter)
		}
	}
	p.Title.Text = fmt.Sprintf("%d clusters, %d rows", len(clusters), len(rows))
	p.Legend.Top, p.Legend.Left = true, true
	margins(p)
	if len(clusters) <= maxLegend { // room for the legend
		taken := 0.05 + float64(0.047*float64(len(clusters)))
		p.Y.Max += float64((p.Y.Max - p.Y.Min) * (taken / (1 - taken)))
	}
	return savePlot(p, path)
}

// maxConfused is the largest number of classes for which a confusion matrix is readable.
const maxConfused = 20

// drawConfusion draws a confusion matrix with the weight of each cell. A row of the matrix is a
// true class. The shade of a cell shows the share of the class that is in the cell: white is 0,
// and the darkest blue is 1.
func drawConfusion(path string, r *evaluate.MulticlassReport, on string) error {
	n := len(r.Classes)
	if n == 0 || n > maxConfused {
		return fmt.Errorf("there are %d classes: a confusion matrix of 1 to %d can be drawn", n, maxConfused)
	}
	p := canvas(fmt.Sprintf("confusion, accuracy %.4f, %s", r.Accuracy, on), "predicted", "truth")
	var labels []string
	var at plotter.XYs
	var texts []string
	for t, row := range r.Confusion {
		labels = append(labels, clipped(r.Classes[t], 16))
		all := 0.0
		for _, w := range row {
			all += w
		}
		y := float64(n - 1 - t) // the first class at the top
		for c, w := range row {
			x := float64(c)
			square, err := plotter.NewPolygon(plotter.XYs{{X: x - 0.5, Y: y - 0.5}, {X: x + 0.5, Y: y - 0.5}, {X: x + 0.5, Y: y + 0.5}, {X: x - 0.5, Y: y + 0.5}})
			if err != nil {
				return fmt.Errorf("plot: %w", err)
			}
			square.Color, square.LineStyle.Width = shade(w/max(all, 1e-300)), 0
			p.Add(square)
			at, texts = append(at, plotter.XY{X: x, Y: y}), append(texts, strconv.FormatFloat(w, 'g', 5, 64))
		}
	}
	numbers, err := plotter.NewLabels(plotter.XYLabels{XYs: at, Labels: texts})
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	for i := range numbers.TextStyle {
		numbers.TextStyle[i].XAlign, numbers.TextStyle[i].YAlign = text.XCenter, text.YCenter
		numbers.TextStyle[i].Font.Variant = "Sans"
	}
	p.Add(numbers)
	p.NominalX(labels...)
	slices.Reverse(labels)
	p.NominalY(labels...)
	return savePlot(p, path)
}

// shade returns a shade of blue for a share from 0 to 1. Black text is readable on all shades.
func shade(share float64) color.Color {
	mix := func(full uint8) uint8 { return uint8(255 - float64(share*0.7*float64(255-full))) }
	return color.RGBA{mix(palette[0].R), mix(palette[0].G), mix(palette[0].B), 0xff}
}

// savePlot writes the picture to a temporary file and renames that file to path, so that path
// never contains a part of a picture.
func savePlot(p *plot.Plot, path string) error {
	content, err := draw.NewFormattedCanvas(plotWidth, plotHeight, strings.TrimPrefix(filepath.Ext(path), "."))
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	// Labels begin at the border of the drawing. An empty edge separates them from the border
	// of the picture.
	const edge = 6
	whole := draw.New(content)
	whole.SetColor(p.BackgroundColor)
	whole.Fill(whole.Rectangle.Path())
	p.Draw(draw.Crop(whole, edge, -edge, edge, -edge))
	if err := wholefile.WriteFrom(path, content); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}
