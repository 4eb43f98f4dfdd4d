package tree

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// DrawOptions has options for drawing a tree.
type DrawOptions struct {
	// Depth is the number of levels of splits that are drawn; 0 means all. A split that is left
	// out is replaced by a box with the number of leaves below it.
	Depth int
}

// maxDrawn is the largest number of boxes in a drawing.
const maxDrawn = 2000

// These are sizes in an SVG, in points: the size of a character, and the spaces around texts,
// between neighbouring boxes and between levels.
const (
	charWidth, charHeight = 6, 11
	padding               = 4
	boxGap                = 10
	levelGap              = 34
	margin                = 12
	maxChars              = 28
)

// colour is the fill colour of a box.
type colour uint8

const (
	white colour = iota
	grey         // splits whose children are not drawn
	blue         // leaves with positive values
	amber        // leaves with negative values
)

// box is a node of a drawing.
type box struct {
	lines       []string
	fill        colour
	x, y        int // middle of the upper edge
	w, h        int
	left, right int // indices of the boxes below; 0 means none
	// missing is the side of the dot for missing values: -1 left, 1 right, 0 no dot.
	missing int
}

// drawing is a tree with the positions of its boxes.
type drawing struct {
	boxes []box
	w, h  int
}

// drawing returns a tree with positions. The boxes of a level are side by side. Each parent is
// above the middle of its children, and subtrees are as close to each other as their outlines
// allow (after Reingold and Tilford, Tidier Drawings of Trees, 1981).
func (e *Ensemble) drawing(tree int, o DrawOptions) (*drawing, error) {
	if tree < 0 || tree >= len(e.Trees) {
		return nil, fmt.Errorf("tree: there is no tree %d among %d", tree, len(e.Trees))
	}
	d := &drawing{}
	t := &e.Trees[tree]
	type open struct {
		node   int32
		depth  int
		parent int
	}
	for pending := []open{{}}; len(pending) > 0; {
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		i := len(d.boxes)
		if i == maxDrawn {
			return nil, fmt.Errorf("tree: tree %d has more than %d boxes to draw: set DrawOptions.Depth", tree, maxDrawn)
		}
		n := &t.Nodes[next.node]
		cut := !n.Leaf() && o.Depth > 0 && next.depth == o.Depth
		d.boxes = append(d.boxes, e.box(tree, next.node, cut, next.depth))
		if i > 0 {
			if p := &d.boxes[next.parent]; p.left == 0 {
				p.left = i
			} else {
				p.right = i
			}
		}
		if !n.Leaf() && !cut {
			pending = append(pending, open{n.Right, next.depth + 1, i}, open{n.Left, next.depth + 1, i})
		}
	}
	d.place()
	return d, nil
}

// box returns the box of a node. Its y is the level of the node, not yet a coordinate.
func (e *Ensemble) box(tree int, node int32, cut bool, depth int) box {
	t := &e.Trees[tree]
	n := &t.Nodes[node]
	b := box{y: depth}
	switch {
	case n.Leaf():
		var texts []string
		for _, v := range e.values(t, node) {
			texts = append(texts, short(v))
		}
		b.lines = []string{strings.Join(texts, " ")}
		if b.fill = blue; t.Values == nil && n.Value < 0 {
			b.fill = amber
		}
	case cut:
		b.lines, b.fill = []string{e.Condition(tree, node), fmt.Sprintf("... %d leaves", t.leavesBelow(node))}, grey
	default:
		b.lines = []string{e.Condition(tree, node), "gain " + short(n.Gain)}
		switch {
		case n.Flags&(NaNIsZero|ZeroMissing) == NaNIsZero:
		case n.Flags&DefaultLeft != 0:
			b.missing = -1
		default:
			b.missing = 1
		}
	}
	b.lines = append(b.lines, "cover "+short(n.Cover))
	if !n.Leaf() && n.Flags&Categorical == 0 { // shorten the name, not the threshold
		than := " < " + number(n.Threshold)
		b.lines[0] = shorten(e.Features[n.Feature], maxChars-len(than)) + than
	}
	for i, line := range b.lines {
		b.lines[i] = shorten(line, maxChars)
		b.w = max(b.w, utf8.RuneCountInString(b.lines[i])*charWidth+2*padding)
	}
	b.w += b.w & 1
	b.h = len(b.lines)*charHeight + 2*padding
	return b
}

// shorten cuts s to chars characters, but to no fewer than three.
func shorten(s string, chars int) string {
	if utf8.RuneCountInString(s) <= chars {
		return s
	}
	return string([]rune(s)[:max(chars-3, 0)]) + "..."
}

// leavesBelow returns the number of leaves below a node.
func (t *Tree) leavesBelow(node int32) int {
	leaves := 0
	for open := []int32{node}; len(open) > 0; {
		n := &t.Nodes[open[len(open)-1]]
		open = open[:len(open)-1]
		if n.Leaf() {
			leaves++
		} else {
			open = append(open, n.Left, n.Right)
		}
	}
	return leaves
}

// outline has, for each level of a subtree from its root down, how far the boxes of the level
// extend to the left and to the right of the middle of the root.
type outline struct{ left, right []int }

// place sets the positions of the boxes. Boxes are stored after their parents, so a backward
// pass visits children before parents.
func (d *drawing) place() {
	outlines := make([]outline, len(d.boxes))
	half := make([]int, len(d.boxes)) // half[i] is the distance from the middle of box i to the middle of each of its children
	tall := 0
	for i := len(d.boxes) - 1; i >= 0; i-- {
		b := &d.boxes[i]
		tall = max(tall, b.h)
		own := outline{[]int{-b.w / 2}, []int{b.w / 2}}
		if b.left > 0 {
			l, r := outlines[b.left], outlines[b.right]
			apart := 0
			for level := range min(len(l.left), len(r.left)) {
				apart = max(apart, l.right[level]-r.left[level]+boxGap)
			}
			half[i] = (apart + 1) / 2
			for level := range max(len(l.left), len(r.left)) {
				own.left = append(own.left, side(l.left, r.left, level, half[i], -1))
				own.right = append(own.right, side(r.right, l.right, level, half[i], 1))
			}
			outlines[b.left], outlines[b.right] = outline{}, outline{}
		}
		outlines[i] = own
	}
	low, high := 0, 0
	for level := range outlines[0].left {
		low, high = min(low, outlines[0].left[level]), max(high, outlines[0].right[level])
	}
	d.boxes[0].x = margin - low
	levels := 0
	for i := range d.boxes {
		b := &d.boxes[i]
		levels = max(levels, b.y)
		b.y = margin + b.y*(tall+levelGap)
		if b.left > 0 {
			d.boxes[b.left].x, d.boxes[b.right].x = b.x-half[i], b.x+half[i]
		}
	}
	d.w = high - low + 2*margin
	d.h = (levels+1)*tall + levels*levelGap + 2*margin
}

// side returns how far two neighbouring subtrees together extend to one side of the middle
// between their roots, at a level. near has the extents of the subtree on that side by level,
// and far has those of the other subtree. If near has the level, the result is its extent,
// moved by half to that side. Otherwise the result is the extent in far, moved by half to the
// other side.
func side(near, far []int, level, half, sign int) int {
	if level < len(near) {
		return near[level] + sign*half
	}
	return far[level] - sign*half
}
