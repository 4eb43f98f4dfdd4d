// Package picture has the code that plots of commands and examples share: their style, their
// ticks, their file formats, and writing them.
package picture

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/superstep-ml/superstep/internal/wholefile"
)

// Valid returns an error if path does not end in the name of a supported format: .png, .svg or
// .pdf. An empty path, which means that no plot is wanted, is valid.
func Valid(path string) error {
	if ext := filepath.Ext(path); path != "" && ext != ".png" && ext != ".svg" && ext != ".pdf" {
		return fmt.Errorf("--plot %s: want a name that ends in .png, .svg or .pdf", path)
	}
	return nil
}

// New returns an empty plot with the given title and the labels x and y of the axes.
func New(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding, p.Legend.Padding = vg.Points(8), vg.Points(3)
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	return p
}

// Ticks returns the ticks of an axis from lo to hi: four to eight round numbers, which are
// multiples of 1, 2 or 5 times a power of ten.
func Ticks(lo, hi float64) []plot.Tick {
	if !(hi > lo) || math.IsInf(hi-lo, 0) {
		return []plot.Tick{{Value: lo, Label: strconv.FormatFloat(lo, 'g', 6, 64)}}
	}
	step := 1.0
	for ; (hi-lo)/step > 8; step *= 10 {
	}
	for ; (hi-lo)/step < 1; step /= 10 {
	}
	switch n := (hi - lo) / step; {
	case n < 2:
		step /= 5
	case n < 4:
		step /= 2
	}
	var marks []plot.Tick
	for i := range 10 { // at most 10, since on a very short axis rounding may lose the step
		if at := (math.Ceil(lo/step) + float64(i)) * step; at <= hi {
			marks = append(marks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'g', 6, 64)})
		}
	}
	return marks
}

// Save writes p to the file at path. The ending of the path determines the format. If writing
// fails, an existing file is not changed.
func Save(p *plot.Plot, path string) error {
	return SaveRow(path, 7*vg.Inch, 5*vg.Inch, p)
}

// margin is the width of the empty border of a picture, and half the space between two plots.
const margin = 10

// SaveRow is like Save, for plots that lie beside each other in a picture of the given size.
func SaveRow(path string, width, height vg.Length, row ...*plot.Plot) error {
	content, err := drawRow(strings.TrimPrefix(filepath.Ext(path), "."), width, height, row)
	if err == nil {
		err = wholefile.WriteFrom(path, content)
	}
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}

// drawRow returns a picture of plots in the given format.
func drawRow(format string, width, height vg.Length, row []*plot.Plot) (io.WriterTo, error) {
	canvas, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return nil, err
	}
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: 2 * margin, PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: margin}
	for i, part := range plot.Align([][]*plot.Plot{row}, tiles, page)[0] {
		row[i].Draw(part)
	}
	if format != "svg" {
		return canvas, nil
	}
	var file bytes.Buffer
	if _, err := canvas.WriteTo(&file); err != nil {
		return nil, err
	}
	// Where Liberation Sans is not installed, Arial replaces it. The letters of both fonts have
	// the same widths.
	return bytes.NewReader(bytes.ReplaceAll(file.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))), nil
}
