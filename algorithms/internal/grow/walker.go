package grow

import (
	"fmt"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// A Walker routes binned rows through trees that are not in a State, such as the trees of
// earlier batches. Rows end in the same leaves as during the growth of the trees. Only one
// goroutine may use a Walker. A Walker reuses its memory from tree to tree.
type Walker struct {
	// Columns[i] has the bins of the sparse feature Layout.Features[i], one byte per row. If
	// Columns[i] or Columns is nil, the bins are searched in the sparse rows.
	Columns [][]byte

	layout *bins.Layout
	places map[int32]int32 // number of a feature -> index in Layout.Features
	grown  grown
	router router
}

// NewWalker returns a Walker for trees that grew on rows with layout l.
func NewWalker(l *bins.Layout) *Walker {
	w := &Walker{layout: l, places: make(map[int32]int32, len(l.Features))}
	for i := range l.Features {
		w.places[int32(l.Features[i].Number)] = int32(i)
	}
	return w
}

// Open sets the tree for Route and RouteRows. The tree must not change while it is set. Open
// returns an error for a tree that cannot have grown on rows of the layout.
func (w *Walker) Open(t *tree.Tree) error {
	if len(t.Nodes) == 0 {
		return fmt.Errorf("grow: a tree has no nodes")
	}
	w.grown.Tree = *t
	w.grown.rules = kernel.Sized(w.grown.rules, len(t.Nodes))
	for i := range t.Nodes {
		var err error
		if w.grown.rules[i], err = w.rule(t, i); err != nil {
			return fmt.Errorf("grow: node %d of a tree %w", i, err)
		}
	}
	return nil
}

// Route writes to out[r] the leaf in which row r of d ends. It returns out, which it
// reallocates if it is too short. d must have been binned by the cuts of the training data.
func (w *Walker) Route(d *bins.Data, out []int32) []int32 {
	w.router.columns = w.Columns
	return w.router.route(&w.grown, d, out)
}

// RouteRows does what Route does, for some of the rows of d. It reorders rows, and does not
// change the elements of out for other rows.
func (w *Walker) RouteRows(d *bins.Data, rows, out []int32) []int32 {
	r := &w.router
	r.columns = w.Columns
	r.begin(&w.grown, d, out)
	for len(rows) > 0 {
		n := min(routeRows, len(rows))
		r.send(0, rows[:n])
		rows = rows[n:]
	}
	return r.out
}

// rule returns the rule of a node of t. It is the inverse of State.describe. It returns an
// error if the node does not match the layout.
func (w *Walker) rule(t *tree.Tree, node int) (r rule, err error) {
	n := &t.Nodes[node]
	if n.Leaf() {
		return r, nil
	}
	for _, child := range [2]int32{n.Left, n.Right} {
		if int(child) <= node || int(child) >= len(t.Nodes) {
			return r, fmt.Errorf("has the child %d: want one after it, of %d nodes", child, len(t.Nodes))
		}
	}
	at, known := w.places[n.Feature]
	if !known {
		return r, fmt.Errorf("splits on feature %d, which the rows do not have", n.Feature)
	}
	f := &w.layout.Features[at]
	r = rule{feature: at, place: -1, missingLeft: n.Flags&tree.DefaultLeft != 0, categorical: f.Categorical}
	switch {
	case f.Categorical != (n.Flags&tree.Categorical != 0):
		return r, fmt.Errorf("reads feature %q as another kind than the rows have", f.Name)
	case f.Categorical:
		if n.Set < 0 || n.SetWords < 0 || int64(n.Set)+int64(n.SetWords) > int64(len(t.Sets)) {
			return r, fmt.Errorf("has a set of %d words from word %d of %d", n.SetWords, n.Set, len(t.Sets))
		}
		r.set = make(binSet, (f.Bins+63)/64)
		for bin, code := range f.Codes {
			if t.Has(int32(node), code) != (n.Flags&tree.SetRight != 0) {
				r.set[bin>>6] |= 1 << (bin & 63)
			}
		}
	case !math.IsInf(n.Threshold, -1):
		place, found := slices.BinarySearch(f.Cuts, float32(n.Threshold))
		if !found {
			return r, fmt.Errorf("splits feature %q at %v, which is no cut of the rows: it grew on other rows", f.Name, n.Threshold)
		}
		r.place = int32(place)
	}
	return r, nil
}
