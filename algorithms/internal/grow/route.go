package grow

import (
	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Route writes to out[r] the leaf of tree k in which row r of d ends. It returns out, which it
// reallocates if it is too short. d must have been binned by the cuts of the training data.
func (s *State) Route(k int, d *bins.Data, out []int32) []int32 {
	return s.router.route(&s.active()[k].grown, d, out)
}

const (
	// routeRows is the number of rows that are routed through a tree together. Their indices
	// fit in the cache.
	routeRows = 1 << 14
	// For at most fewRouted rows, computing a node's table takes longer than routing the rows
	// without it.
	fewRouted = 32
)

// router routes rows through a tree. It partitions all rows by one split at a time, which is
// faster than routing row by row. It reuses its memory from tree to tree.
type router struct {
	g           *grown
	data        *bins.Data
	columns     [][]byte    // see Walker.Columns
	numbers     []int32     // node -> 1 + index of the node's table in tables; 0 if there is no table yet
	tables      [][256]byte // see rule.table and rule.binTable
	rows, spare []int32
	out         []int32
}

// begin prepares the router for a tree and a dataset.
func (r *router) begin(g *grown, d *bins.Data, out []int32) {
	r.g, r.data, r.out = g, d, kernel.Sized(out, d.Rows)
	r.numbers, r.tables = kernel.Sized(r.numbers, len(g.rules)), r.tables[:0]
	clear(r.numbers)
	r.rows, r.spare = kernel.Sized(r.rows, min(d.Rows, routeRows)), kernel.Sized(r.spare, min(d.Rows, routeRows))
}

// route does what State.Route does, for the tree g.
func (r *router) route(g *grown, d *bins.Data, out []int32) []int32 {
	r.begin(g, d, out)
	for first := 0; first < d.Rows; first += routeRows {
		part := r.rows[:min(routeRows, d.Rows-first)]
		for i := range part {
			part[i] = int32(first + i)
		}
		r.send(0, part)
	}
	return r.out
}

// send routes rows from node at down to the leaves, and reorders rows.
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
	} else if bytes, stride := r.column(where.feature, f); bytes != nil && len(rows) > fewRouted {
		left = kernel.PartitionRows(rows, bytes, stride, r.table(at, f), rows, r.spare)
	} else {
		left = where.partition(rows, f, r.data, r.spare)
	}
	copy(rows[left:], r.spare[:len(rows)-left])
	r.send(node.Left, rows[:left])
	r.send(node.Right, rows[left:])
}

// column returns the bytes of a feature and their stride, or nil if the feature is not in a
// column of bytes.
func (r *router) column(feature int32, f *bins.Feature) (bytes []byte, stride int) {
	if f.Column >= 0 {
		c := &r.data.Layout.Columns[f.Column]
		block := &r.data.Blocks[c.Block]
		return block.Bins[c.Offset:], block.Stride
	}
	if r.columns == nil {
		return nil, 0
	}
	return r.columns[feature], 1
}

// table returns the table of a node. The first call computes it.
func (r *router) table(at int32, f *bins.Feature) *[256]byte {
	if r.numbers[at] == 0 {
		if f.Column >= 0 {
			r.tables = append(r.tables, r.g.rules[at].table(r.data.Layout))
		} else {
			r.tables = append(r.tables, r.g.rules[at].binTable(f.Bins))
		}
		r.numbers[at] = int32(len(r.tables))
	}
	return &r.tables[r.numbers[at]-1]
}

// partition moves the rows that go left to the front of the slice rows, and copies the other
// rows to spare. It returns how many rows go left. It works for every kind of storage, but is
// slow.
func (r *rule) partition(rows []int32, f *bins.Feature, d *bins.Data, spare []int32) (left int) {
	right := spare[:0]
	for _, row := range rows {
		if r.left(d.Bin(int(row), int(r.feature)), f.Bins) {
			rows[left] = row
			left++
		} else {
			right = append(right, row)
		}
	}
	return left
}
