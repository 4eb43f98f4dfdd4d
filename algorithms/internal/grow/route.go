package grow

import (
	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Route writes to out, which it grows as needed, the node of tree k where each row of a
// dataset ends, which was binned as the training data.
func (s *State) Route(k int, d *bins.Data, out []int32) []int32 {
	return s.router.route(&s.active()[k].grown, d, out)
}

// routeRows is how many rows go down a tree together, so that they stay in the cache.
const routeRows = 1 << 14

// router sends rows down a tree, all of them split by split: faster than each by itself. Its
// memory is used again tree by tree.
type router struct {
	g           *grown
	data        *bins.Data
	tables      [][256]byte // of the nodes that split by a column
	rows, spare []int32
	out         []int32
}

// route is Route for a tree.
func (r *router) route(g *grown, d *bins.Data, out []int32) []int32 {
	r.g, r.data, r.out = g, d, sized(out, d.Rows)
	r.tables = sized(r.tables, len(g.rules))
	for i := range g.rules {
		if node := &g.Tree.Nodes[i]; node.Left != 0 && d.Layout.Features[g.rules[i].feature].Column >= 0 {
			r.tables[i] = g.rules[i].table(d.Layout)
		}
	}
	r.rows, r.spare = sized(r.rows, min(d.Rows, routeRows)), sized(r.spare, min(d.Rows, routeRows))
	for first := 0; first < d.Rows; first += routeRows {
		part := r.rows[:min(routeRows, d.Rows-first)]
		for i := range part {
			part[i] = int32(first + i)
		}
		r.send(0, part)
	}
	return r.out
}

// send sends rows, which it puts in another order, down from a node.
func (r *router) send(at int32, rows []int32) {
	node := &r.g.Tree.Nodes[at]
	if node.Left == 0 || len(rows) == 0 {
		for _, row := range rows {
			r.out[row] = at
		}
		return
	}
	where := &r.g.rules[at]
	f, left := &r.data.Layout.Features[where.feature], 0
	if wide := r.data.Layout.WideColumn(int(where.feature)); wide >= 0 {
		left = where.partitionWide(rows, r.data.Wide[wide], f.Bins, r.spare)
	} else if f.Column >= 0 {
		c := &r.data.Layout.Columns[f.Column]
		block := &r.data.Blocks[c.Block]
		left = kernel.PartitionRows(rows, block.Bins[c.Offset:], block.Stride, &r.tables[at], rows, r.spare)
	} else {
		left = where.partition(rows, f, r.data, r.spare)
	}
	copy(rows[left:], r.spare[:len(rows)-left])
	r.send(node.Left, rows[:left])
	r.send(node.Right, rows[left:])
}

// partition puts the rows that go left, by a feature that rows hold as sparse, before those
// that go right, which spare has then, and returns how many go left.
func (r *rule) partition(rows []int32, f *bins.Feature, d *bins.Data, spare []int32) (left int) {
	right := spare[:0]
	for _, row := range rows {
		if r.sends(row, f, d) {
			rows[left] = row
			left++
		} else {
			right = append(right, row)
		}
	}
	return left
}
