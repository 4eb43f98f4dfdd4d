package forest

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/grow"
	"github.com/superstep-ml/superstep/algorithms/internal/treecode"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// appendRows encodes entries for another subtask: their number, and for each entry the bins of
// the columns, the weight, g and the label.
func (t *table) appendRows(dst []uint8, e []entry) []uint8 {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(len(e)))
	for i := range e {
		row := int(e[i].row)
		for j := range t.cols {
			c := &t.cols[j]
			if c.wide != nil {
				dst = le.AppendUint16(dst, c.wide[row])
			} else {
				dst = append(dst, c.decode[c.bins[row*c.stride]])
			}
		}
		dst = le.AppendUint32(dst, e[i].w)
		dst = le.AppendUint64(dst, uint64(e[i].g))
		dst = le.AppendUint64(dst, math.Float64bits(t.label[row]))
	}
	return dst
}

// grow grows the subtrees of this subtask's share of the open nodes in l.sent. Its share is
// every n-th node, where n is the number of subtasks. rows has the rows that all subtasks sent.
func (l *levels) grow(ctx context.Context, rows []uint8) error {
	parts := make([][][]uint8, len(l.sent))
	for range l.tasks {
		if len(l.sent) == 0 {
			break
		}
		for i := range l.sent {
			if len(rows) < 4 || len(rows)-4 < int(binary.LittleEndian.Uint32(rows))*l.rowSize {
				return errRows
			}
			size := int(binary.LittleEndian.Uint32(rows)) * l.rowSize
			if i%l.tasks == l.task {
				parts[i] = append(parts[i], rows[4:4+size])
			}
			rows = rows[4+size:]
		}
	}
	if len(rows) > 0 {
		return errRows
	}
	l.grown = l.grown[:0]
	for i, b := range l.sent {
		if i%l.tasks != l.task {
			continue
		}
		t := l.growSubtree(ctx, b, parts[i])
		l.grown = treecode.Append(binary.LittleEndian.AppendUint32(l.grown, uint32(i)), &t)
	}
	return ctx.Err()
}

// growSubtree grows the subtree below an open node from the node's rows. The builder owns the
// memory of the result.
func (l *levels) growSubtree(ctx context.Context, b *openNode, parts [][]uint8) tree.Tree {
	var all []uint8
	for _, p := range parts {
		all = append(all, p...)
	}
	n := len(all) / l.rowSize
	t := &table{rows: n, layout: l.t.layout, scaled: l.t.scaled, classes: l.t.classes, label: make([]float64, n)}
	same, at := identity(), 0
	for j := range l.t.cols {
		c := column{feature: l.t.cols[j].feature, stride: l.rowSize, decode: same, missing: l.t.cols[j].missing}
		if l.t.cols[j].wide != nil {
			c.wide = make([]uint16, n)
			for i := range c.wide {
				c.wide[i] = binary.LittleEndian.Uint16(all[i*l.rowSize+at:])
			}
		} else if n > 0 {
			c.bins = all[at:]
		}
		at += c.bytes()
		t.cols = append(t.cols, c)
	}
	if l.builder == nil {
		r := l.rules
		r.leaves = 0 // inBuilderOrder applies the limit when the whole tree is complete
		l.builder = newBuilder(t, r, l.sampler)
	}
	w := l.builder
	w.t, w.finder.t, w.total = t, t, b.of.weight
	w.entries = w.entries[:0]
	for i := range n {
		rest := all[i*l.rowSize+l.rowBins:]
		w.entries = append(w.entries, entry{uint32(i), binary.LittleEndian.Uint32(rest), int64(binary.LittleEndian.Uint64(rest[4:]))})
		t.label[i] = math.Float64frombits(binary.LittleEndian.Uint64(rest[12:]))
	}
	if len(w.spare) < n {
		w.spare = make([]entry, n)
	}
	return w.run(ctx, b.of.number, waiting{hi: n, depth: int32(b.depth), key: b.key, sums: b.sums})
}

// attach replaces open nodes by the subtrees that all subtasks have grown.
func (l *levels) attach(all []uint8) error {
	for len(all) > 0 {
		if len(all) < 4 || int(binary.LittleEndian.Uint32(all)) >= len(l.sent) {
			return treecode.ErrCut
		}
		b := l.sent[binary.LittleEndian.Uint32(all)]
		var err error
		if all, err = treecode.Read(all[4:], &l.subtree); err != nil {
			return err
		}
		b.of.attach(b.node, &l.subtree, l.t.classes)
		l.close(b)
	}
	return nil
}

// attach replaces a node by a subtree.
func (s *growingTree) attach(node int32, subtree *tree.Tree, classes int) {
	t := &s.t
	first, words := int32(len(t.Nodes))-1, int32(len(t.Sets))
	for i := range subtree.Nodes {
		n := subtree.Nodes[i]
		if !n.Leaf() {
			n.Left += first
			n.Right += first
		}
		if n.Flags&tree.Categorical != 0 {
			n.Set += words
		}
		if i == 0 {
			t.Nodes[node] = n
		} else {
			t.Nodes = append(t.Nodes, n)
		}
	}
	t.Sets = append(t.Sets, subtree.Sets...)
	if classes > 0 {
		copy(t.Values[int(node)*classes:], subtree.Values[:classes])
		t.Values = append(t.Values, subtree.Values[classes:]...)
	}
}

// inBuilderOrder returns a copy of the given tree whose nodes are in the order in which a
// builder makes them. If leaves is not 0, it is the largest number of leaves, and the result is
// cut to the leaves that a builder's tree would have.
func inBuilderOrder(from *tree.Tree, classes, leaves int) tree.Tree {
	o := ordering{from: from, t: tree.Tree{Weight: 1}}
	if leaves > 0 {
		o.open.Before = func(a, b *place) bool { // like waiting.before
			x, y := from.Nodes[a.old].Gain, from.Nodes[b.old].Gain
			return x > y || x == y && a.node < b.node
		}
	}
	o.add(0, classes)
	o.place(0, 0)
	for count := 1; len(o.open.Nodes) > 0 && (leaves == 0 || count < leaves); count++ {
		x := o.open.Pop()
		n, old := &o.t.Nodes[x.node], &from.Nodes[x.old]
		value, cover, rows := n.Value, n.Cover, n.Count
		*n = *old
		n.Value, n.Cover, n.Count = value, cover, rows
		n.Left = int32(len(o.t.Nodes))
		n.Right = n.Left + 1
		if n.Flags&tree.Categorical != 0 {
			n.Set = int32(len(o.t.Sets))
			o.t.Sets = append(o.t.Sets, from.Sets[old.Set:old.Set+old.SetWords]...)
		}
		left := n.Left
		o.add(old.Left, classes)
		o.add(old.Right, classes)
		// The left child is split first, because a node that is pushed last is popped first.
		o.place(old.Right, left+1)
		o.place(old.Left, left)
	}
	return o.t
}

// ordering has the nodes that may be split next, and the tree made so far.
type ordering struct {
	from *tree.Tree
	open grow.Queue[place]
	t    tree.Tree
}

// place has the number of a node in the old order and in the new order.
type place struct{ old, node int32 }

// add appends the old node to the new tree as a leaf.
func (o *ordering) add(old int32, classes int) {
	n := &o.from.Nodes[old]
	o.t.Nodes = append(o.t.Nodes, tree.Node{Value: n.Value, Cover: n.Cover, Count: n.Count})
	if classes > 0 {
		o.t.Values = append(o.t.Values, o.from.Values[int(old)*classes:(int(old)+1)*classes]...)
	}
}

// place queues an old node if it is split. node is its number in the new tree.
func (o *ordering) place(old, node int32) {
	if !o.from.Nodes[old].Leaf() {
		o.open.Push(place{old, node})
	}
}
