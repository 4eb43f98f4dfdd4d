package bins

import "slices"

// blockColumns is the largest number of columns of a block. A row of a block then takes at most
// half a cache line.
const blockColumns = 32

// layout assigns each feature its place in the rows and its slots in histograms.
func (b *bundler) layout() Layout {
	l := Layout{Features: b.features}
	if b.plan.kind != sparseRows {
		for i := range l.Features {
			switch {
			case !b.splits(i):
			case b.wide(i):
				l.Wide = append(l.Wide, i)
			default:
				l.column(i)
			}
		}
		l.blocks()
		l.widen()
		l.Slots = l.ColumnSlots
		return l
	}
	var loose []int // features that stay in Sparse
	slices.SortFunc(b.bundles, func(x, y []int) int { return slices.Min(x) - slices.Min(y) })
	for _, members := range b.bundles {
		var stored int64
		for _, i := range members {
			stored += b.stored[i]
		}
		switch {
		case b.wide(members[0]):
			l.Wide = append(l.Wide, members[0])
		case stored*denseShare < b.rows:
			loose = append(loose, members...)
		case len(members) == 1:
			l.Features[members[0]].Implicit = -1
			l.column(members[0])
		default:
			l.bundle(members)
		}
	}
	l.blocks()
	l.widen()
	l.Slots = l.ColumnSlots
	slices.Sort(loose)
	for _, i := range loose {
		f := &l.Features[i]
		f.Slot = l.Slots
		l.Slots += f.Stored()
	}
	return l
}

// column adds a column for feature i alone.
func (l *Layout) column(i int) {
	f := &l.Features[i]
	f.Column, f.Slot = len(l.Columns), l.ColumnSlots
	l.add(Column{Width: f.Bins + 1, Features: []int{i}})
}

// widen assigns slots to the wide features, after the slots of the columns of bytes.
func (l *Layout) widen() {
	slices.Sort(l.Wide)
	for _, i := range l.Wide {
		f := &l.Features[i]
		f.Implicit, f.Slot = -1, l.ColumnSlots
		l.ColumnSlots += f.Stored()
	}
}

// WideColumn returns the index in Wide of a feature, or −1 if the feature has no column of two
// bytes.
func (l *Layout) WideColumn(feature int) int {
	if at, ok := slices.BinarySearch(l.Wide, feature); ok {
		return at
	}
	return -1
}

// bundle adds a column that several features share.
func (l *Layout) bundle(members []int) {
	slices.Sort(members)
	c := Column{Width: 1, Features: members}
	for _, i := range members {
		f := &l.Features[i]
		f.Column, f.Slot = len(l.Columns), l.ColumnSlots+c.Width
		c.Width += f.Stored()
	}
	l.add(c)
}

func (l *Layout) add(c Column) {
	c.Slot = l.ColumnSlots
	l.ColumnSlots += c.Width
	l.Columns = append(l.Columns, c)
}

// blocks distributes the columns over blocks of about the same width.
func (l *Layout) blocks() {
	for b, width := range l.Strides() {
		first := 0
		for _, w := range l.Strides()[:b] {
			first += w
		}
		for o := range width {
			l.Columns[first+o].Block, l.Columns[first+o].Offset = b, o
		}
	}
}

// Strides returns the number of columns of each block.
func (l *Layout) Strides() []int {
	n := len(l.Columns)
	blocks := (n + blockColumns - 1) / blockColumns
	strides := make([]int, blocks)
	for b := range strides {
		strides[b] = n / blocks
		if b < n%blocks {
			strides[b]++
		}
	}
	return strides
}
