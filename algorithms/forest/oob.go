package forest

import (
	"fmt"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Parts of the sums over rows that an OutOfBag is made of. Labels of a regression are taken
// less the mean of all rows, so that their squares lose nothing.
const (
	oobWeight  = iota // of rows that some tree did not draw
	oobRight          // of those that are predicted right
	oobError          // weighted −log of shares, or squared errors
	oobLabel          // weighted labels
	oobSquares        // weighted squares of labels
	oobRows
	oobParts
)

// bag is what a subtask keeps of its rows to predict them by trees that did not draw them.
type bag struct {
	data    *bins.Data
	sampler *sampler
	outputs int
	sums    [][]float64 // by span of the rows, of each row and output, over the trees so far
	trees   []int32     // that did not draw the row
	times   []uint8
	route   router
}

func newBag(d *bins.Data, loose [][]byte, s *sampler, outputs int, sums [][]float64) *bag {
	return &bag{
		data: d, sampler: s, outputs: outputs, sums: sums, trees: make([]int32, d.Rows),
		times: make([]uint8, d.Rows), route: router{data: d, columns: loose},
	}
}

// count counts the trees that did not draw the rows, of the first so many, whose sums are known.
func (b *bag) count(trees int) {
	for _, s := range b.data.Shards {
		times := b.times[:s.Rows]
		for number := range trees {
			b.sampler.draw(number, s.Shard, times)
			for i, k := range times {
				if k == 0 {
					b.trees[s.First+i]++
				}
			}
		}
	}
}

// add adds a tree, by its number. Trees are added in order, so that sums are the same
// whoever holds the rows.
func (b *bag) add(number int, t *tree.Tree) error {
	if err := b.route.open(t); err != nil {
		return err
	}
	for at, s := range b.data.Shards {
		times, sums := b.times[:s.Rows], b.sums[at]
		b.sampler.draw(number, s.Shard, times)
		for i, k := range times {
			if k > 0 {
				continue
			}
			leaf := b.route.leaf(s.First + i)
			b.trees[s.First+i]++
			if b.outputs == 1 && t.Values == nil {
				sums[i] += t.Nodes[leaf].Value
				continue
			}
			kernel.AddTo(sums[i*b.outputs:(i+1)*b.outputs], t.Values[leaf*b.outputs:(leaf+1)*b.outputs])
		}
	}
	return nil
}

// measure adds the rows of a shard to the sums of an OutOfBag.
func (b *bag) measure(shard int, mean float64, task Task, out []float64) {
	at := slices.IndexFunc(b.data.Shards, func(s bins.Span) bool { return s.Shard == shard })
	if at < 0 {
		return
	}
	s, sums := b.data.Shards[at], b.sums[at]
	for i := range s.Rows {
		row := s.First + i
		if b.trees[row] == 0 {
			continue
		}
		w, y := 1.0, b.data.Label[row]
		if b.data.Weight != nil {
			w = b.data.Weight[row]
		}
		n := float64(b.trees[row])
		out[oobRows]++
		out[oobWeight] += w
		if task == Classification {
			shares := sums[i*b.outputs : (i+1)*b.outputs]
			if argmax(shares) == int(y) {
				out[oobRight] += w
			}
			out[oobError] -= float64(w * kernel.Log(max(shares[int(y)]/n, 0x1p-52)))
			continue
		}
		e, t := sums[i]/n-y, y-mean
		out[oobError] += float64(w * float64(e*e))
		out[oobLabel] += float64(w * t)
		out[oobSquares] += float64(w * float64(t*t))
	}
}

// argmax returns the number of the largest value, the first of equals.
func argmax(values []float64) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}

// outOfBag makes the measures of the sums over all rows. Those that the rows do not define,
// or that exceed float64, are 0.
func outOfBag(task Task, sums []float64) *OutOfBag {
	o := &OutOfBag{Rows: int64(sums[oobRows])}
	w := sums[oobWeight]
	if !(w > 0) || !finite(sums[oobError]) || !finite(sums[oobSquares]) {
		return o
	}
	if task == Classification {
		o.Score, o.Loss = sums[oobRight]/w, sums[oobError]/w
		return o
	}
	o.Loss = math.Sqrt(sums[oobError] / w)
	if spread := sums[oobSquares] - float64(sums[oobLabel]*sums[oobLabel])/w; spread > 0 {
		o.Score = 1 - sums[oobError]/spread
	}
	return o
}

// router brings binned rows to the leaves of a tree.
type router struct {
	data    *bins.Data
	columns [][]byte // of features without one
	byName  map[int]int
	at      []step
}

// step is a node for binned rows: those go left whose bin is in the set.
type step struct {
	bins        []byte
	stride      int
	decode      *[256]byte
	set         [4]uint64
	left, right int32
	// wide has the bins of a feature that take two bytes, nil for others; the node then asks
	// the tree, by the codes of bins.
	wide  []uint16
	codes []int32
	tree  *tree.Tree
	node  int32
}

// goes tells whether a row goes left by a feature whose bins take two bytes.
func (s *step) goes(row int) bool {
	if bin := int(s.wide[row]); bin < len(s.codes) {
		return s.tree.Left(s.node, float64(s.codes[bin]), true)
	}
	return s.tree.Nodes[s.node].Flags&tree.DefaultLeft != 0
}

// open makes the steps of a tree. A threshold that no cut of the rows is, is an error: then
// the tree was grown on other rows.
func (r *router) open(t *tree.Tree) error {
	l := r.data.Layout
	if r.byName == nil {
		r.byName = map[int]int{}
		for i := range l.Features {
			r.byName[l.Features[i].Number] = i
		}
	}
	r.at = r.at[:0]
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Leaf() {
			r.at = append(r.at, step{})
			continue
		}
		at, ok := r.byName[int(n.Feature)]
		if !ok {
			return fmt.Errorf("a tree looks at feature %d, which the rows have not", n.Feature)
		}
		s, err := r.step(t, int32(i), at)
		if err != nil {
			return err
		}
		r.at = append(r.at, s)
	}
	return nil
}

// step makes the step of a node that looks at a feature of the layout.
func (r *router) step(t *tree.Tree, node int32, feature int) (step, error) {
	n, f := &t.Nodes[node], &r.data.Layout.Features[feature]
	s := step{left: n.Left, right: n.Right, stride: 1}
	switch wide := r.data.Layout.WideColumn(feature); {
	case wide >= 0:
		s.wide, s.codes, s.tree, s.node = r.data.Wide[wide], f.Codes, t, node
		return s, nil
	case f.Column >= 0:
		c := &r.data.Layout.Columns[f.Column]
		b := &r.data.Blocks[c.Block]
		s.bins, s.stride = b.Bins, b.Stride
		if len(s.bins) > 0 {
			s.bins = s.bins[c.Offset:]
		}
		if len(c.Features) > 1 || f.Implicit >= 0 {
			s.decode = decoding(c, f)
		}
	case f.Slot >= 0:
		s.bins = r.columns[feature]
	default:
		// The feature is the same in all rows: they have one bin, or miss it all.
		s.bins, s.stride = constant(f), 0
	}
	last := -1 // of the bins that go left by a threshold
	if n.Flags&tree.Categorical == 0 && !math.IsInf(n.Threshold, -1) {
		at, found := slices.BinarySearch(f.Cuts, float32(n.Threshold))
		if !found {
			return s, fmt.Errorf("a tree parts feature %q at %v, which is no cut of these rows: it was grown on others", f.Name, n.Threshold)
		}
		last = at
	}
	for bin := range f.Bins + 1 {
		left := bin <= last
		switch {
		case bin == f.Bins:
			left = n.Flags&tree.DefaultLeft != 0
		case n.Flags&tree.Categorical != 0:
			left = t.Left(node, float64(f.Codes[bin]), true)
		}
		if left {
			s.set[bin>>6] |= 1 << (bin & 63)
		}
	}
	return s, nil
}

// constant returns the bin of a feature that cannot part rows.
func constant(f *bins.Feature) []byte { return []byte{uint8(max(f.Implicit, 0))} }

// leaf returns the leaf of a row.
func (r *router) leaf(row int) int {
	at := 0
	for {
		s := &r.at[at]
		if s.left == 0 {
			return at
		}
		if s.wide != nil {
			if at = int(s.right); s.goes(row) {
				at = int(s.left)
			}
			continue
		}
		bin := s.bins[row*s.stride]
		if s.decode != nil {
			bin = s.decode[bin]
		}
		if s.set[bin>>6]>>(bin&63)&1 != 0 {
			at = int(s.left)
		} else {
			at = int(s.right)
		}
	}
}
