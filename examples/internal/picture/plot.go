// Package picture has the code that the examples share for plots: their style, their file
// formats, and writing them.
package picture

import (
	"fmt"
	"path/filepath"
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
