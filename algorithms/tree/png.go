package tree

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
)

// scale is the number of pixels of a unit.
const scale = 2

// maxPixels bounds the size of a picture.
const maxPixels = 1 << 27

// The colours of a picture: those of boxes, and of ink at growing strength.
const inks = 8

// palette has the colours of boxes and then, for each, its mixtures with ink.
func palette() color.Palette {
	papers := [...][3]int{white: {255, 255, 255}, grey: {232, 232, 232}, blue: {214, 230, 247}, amber: {250, 227, 198}}
	var p color.Palette
	for _, c := range papers {
		for ink := range inks {
			mix := func(paper int) uint8 { return uint8((paper*(inks-1-ink) + 48*ink) / (inks - 1)) }
			p = append(p, color.RGBA{mix(c[0]), mix(c[1]), mix(c[2]), 255})
		}
	}
	return p
}

// WritePNG draws one tree as WriteSVG does. Characters other than those of ASCII are drawn as
// boxes. A picture of more than 134 million pixels is an error.
func (e *Ensemble) WritePNG(w io.Writer, tree int, o DrawOptions) error {
	d, err := e.drawing(tree, o)
	if err != nil {
		return err
	}
	if d.w*d.h > maxPixels/(scale*scale) {
		return fmt.Errorf("tree: a picture of tree %d has %d by %d pixels, too many: set DrawOptions.Depth", tree, d.w*scale, d.h*scale)
	}
	return png.Encode(w, newCanvas(d).Paletted)
}

// newCanvas draws a tree.
func newCanvas(d *drawing) canvas {
	c := canvas{image.NewPaletted(image.Rect(0, 0, d.w*scale, d.h*scale), palette())}
	d.edges(func(x0, y0, x1, y1 int, missing bool) {
		c.line(x0*scale, y0*scale, x1*scale, y1*scale)
		if missing {
			c.dot((x0+x1)/2*scale, (y0+y1)/2*scale)
		}
	})
	for i := range d.boxes {
		c.box(&d.boxes[i])
	}
	return c
}

// canvas is a picture whose pixels are colours of a box times inks plus ink.
type canvas struct{ *image.Paletted }

// ink makes a pixel as dark as ink says, from 0 to inks-1, if it is not darker.
func (c canvas) ink(x, y, ink int) {
	if !(image.Point{X: x, Y: y}).In(c.Rect) {
		return
	}
	p := &c.Pix[c.PixOffset(x, y)]
	if int(*p)%inks < ink {
		*p += uint8(ink - int(*p)%inks)
	}
}

// line draws a line about two pixels wide whose edges are smooth. It goes down.
func (c canvas) line(x0, y0, x1, y1 int) {
	const unit = 1 << 16
	for y := y0; y < y1; y++ {
		// From where to where the line crosses this row of pixels, and one pixel more on
		// either side.
		a := x0*unit + (x1-x0)*unit/(y1-y0)*(y-y0)
		b := a + (x1-x0)*unit/(y1-y0)
		a, b = min(a, b)-unit, max(a, b)+unit
		for x := a >> 16; x <= b>>16; x++ {
			covered := min(b, (x+1)*unit) - max(a, x*unit)
			reach := max(b-a-2*unit, unit) // flat lines cover a pixel many rows long
			c.ink(x, y, covered*(inks-2)/max(unit, min(reach, 2*unit)))
		}
	}
}

// dot draws a disc.
func (c canvas) dot(x, y int) {
	const r = 3 * scale
	for dy := -r; dy <= r; dy++ {
		for dx := -r; dx <= r; dx++ {
			if d := dx*dx + dy*dy; d <= r*r {
				c.ink(x+dx, y+dy, min(inks-1, r*r-d+2))
			}
		}
	}
}

// box draws a box with its frame and texts.
func (c canvas) box(b *box) {
	x0, y0 := (b.x-b.w/2)*scale, b.y*scale
	x1, y1 := x0+b.w*scale-1, y0+b.h*scale-1
	for y := y0; y <= y1; y++ {
		for x := x0; x <= x1; x++ {
			if !(image.Point{X: x, Y: y}).In(c.Rect) {
				continue
			}
			c.Pix[c.PixOffset(x, y)] = uint8(b.fill) * inks
			if x == x0 || x == x1 || y == y0 || y == y1 {
				c.ink(x, y, inks-2)
			}
		}
	}
	for i, line := range b.lines {
		runes := []rune(line)
		x := b.x*scale - len(runes)*charWidth*scale/2
		for _, r := range runes {
			c.glyph(x, y0+(padding+i*charHeight+1)*scale, r)
			x += charWidth * scale
		}
	}
}

// glyph draws a character, the upper left corner of its cell at x, y.
func (c canvas) glyph(x, y int, r rune) {
	rows := glyphs[len(glyphs)-1]
	if r >= ' ' && r <= '~' {
		rows = glyphs[r-' ']
	}
	for dy, row := range rows {
		for dx := range glyphWidth {
			if row>>dx&1 == 0 {
				continue
			}
			for i := range scale * scale {
				c.ink(x+dx*scale+i%scale, y+dy*scale+i/scale, inks-1)
			}
		}
	}
}
