package tree

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// fills has the fill colours in SVG.
var fills = [...]string{white: "#ffffff", grey: "#e8e8e8", blue: "#d6e6f7", amber: "#fae3c6"}

// WriteSVG draws one tree. Each node is a box with its condition, gain and cover, or with its
// value if it is a leaf. Rows that satisfy the condition go left. A dot marks the edge that
// missing values follow.
func (e *Ensemble) WriteSVG(w io.Writer, tree int, o DrawOptions) error {
	d, err := e.drawing(tree, o)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n", d.w, d.h, d.w, d.h)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", d.w, d.h)
	fmt.Fprintf(b, `<g font-family="monospace" font-size="10" text-anchor="middle" stroke-width="1">`+"\n")
	d.edges(func(x0, y0, x1, y1 int, missing bool) {
		fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#555555"/>`+"\n", x0, y0, x1, y1)
		if missing {
			fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="3" fill="#555555"/>`+"\n", (x0+x1)/2, (y0+y1)/2)
		}
	})
	for i := range d.boxes {
		box := &d.boxes[i]
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="3" fill="%s" stroke="#555555"/>`+"\n", box.x-box.w/2, box.y, box.w, box.h, fills[box.fill])
		for j, line := range box.lines {
			fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", box.x, box.y+padding+(j+1)*charHeight-3, escape(line))
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Flush()
}

// edges calls f with each line between two boxes.
func (d *drawing) edges(f func(x0, y0, x1, y1 int, missing bool)) {
	for i := range d.boxes {
		b := &d.boxes[i]
		if b.left > 0 {
			l, r := &d.boxes[b.left], &d.boxes[b.right]
			f(b.x, b.y+b.h, l.x, l.y, b.missing < 0)
			f(b.x, b.y+b.h, r.x, r.y, b.missing > 0)
		}
	}
}

// escape returns s with special characters escaped for XML.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
