// Package picture has the code that plots of commands and examples share: their style, their
// ticks, their file formats, and writing them.
package picture

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

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
	content, err := p.WriterTo(7*vg.Inch, 5*vg.Inch, strings.TrimPrefix(filepath.Ext(path), "."))
	if err == nil {
		err = wholefile.WriteFrom(path, content)
	}
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}
