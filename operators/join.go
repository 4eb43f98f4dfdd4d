package operators

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// JoinKind determines which rows without a partner a join keeps.
type JoinKind int

// These are the kinds of joins, as in SQL.
const (
	// Inner keeps only pairs of partners.
	Inner JoinKind = iota
	// Left keeps every row of the left dataset, paired with nil if it has no partner.
	Left
	// Right keeps every row of the right dataset, paired with nil if it has no partner.
	Right
	// Full keeps every row of both datasets, paired with nil if it has no partner.
	Full
)

var joinKindNames = [...]string{"inner", "left", "right", "full"}

// String returns the text that plans show, such as "inner".
func (k JoinKind) String() string {
	if k.valid() {
		return joinKindNames[k]
	}
	return fmt.Sprintf("JoinKind(%d)", int(k))
}

func (k JoinKind) valid() bool { return k >= Inner && k <= Full }

// keepsLeft and keepsRight report whether the join keeps left and right rows without a partner.
func (k JoinKind) keepsLeft() bool  { return k == Left || k == Full }
func (k JoinKind) keepsRight() bool { return k == Right || k == Full }

// Join pairs rows of two datasets that have equal keys, and calls f for each pair:
//
//	operators.Join(orders, customers, operators.On("customer_id"), operators.Left,
//		func(o *Order, c *Customer) Line {
//			if c == nil {
//				return Line{Order: o.ID, Name: "unknown"}
//			}
//			return Line{Order: o.ID, Name: c.Name}
//		})
//
// Every row is paired with each of its partners. Inner leaves out rows without a partner. For a
// left row without a partner, Left and Full call f with r nil; for a right row without a
// partner, Right and Full call f with l nil. The arguments are pointers for all kinds, so that
// a missing row differs from a row of zeros, and the kind can be changed without a change of f.
// Rows with a null in a key have no partners; see On.
//
// f may change the structs during the call. The slices and strings in them, and the targets of
// pointers in them, must not be modified, but may be returned. Use JoinErr if f can fail.
//
// A hash of the keys chooses the shard of a pair. Within a shard, pairs are in the order of the
// left rows, and pairs of the same left row are in the order of the right rows. Right rows
// without a partner come last, in their own order. Rows of either side are in the order of
// their source shards. None of this depends on parallelism, batch sizes or memory.
//
// Only the columns that L, R and the keys name are sent. The right rows of a shard are held in
// memory, within the run's budget, while the left rows are streamed, so the right dataset
// should be the smaller one. If the right rows do not fit, both sides are sorted by key on disk
// and merged, and the result is sorted into the documented order (a sort-merge join: Graefe,
// Query evaluation techniques for large databases, 1993, 5.2). If the right rows of one key do
// not fit in memory, they are read from disk once for each left row of that key. If one dataset
// fits in the memory of every process, use MapLookup, which does not send the rows of the other
// dataset to other shards.
func Join[L, R, Out any](left, right *engine.Dataset, on JoinKeys, kind JoinKind, f func(l *L, r *R) Out) *engine.Dataset {
	return addJoin("Join", left, right, on, kind, 0, f, f == nil, func(l *L, r *R) (Out, error) { return f(l, r), nil })
}

// JoinErr is Join for functions that can fail. An error fails the run, and is reported with the
// left row's index within its shard, or with the right row's index if there is no left row.
func JoinErr[L, R, Out any](left, right *engine.Dataset, on JoinKeys, kind JoinKind, f func(l *L, r *R) (Out, error)) *engine.Dataset {
	return addJoin("JoinErr", left, right, on, kind, 0, f, f == nil, f)
}

// addJoin adds a joiner. fn is the user's function, and call calls it. most has the meaning of
// joinSpec.most.
func addJoin[L, R, Out any](op string, left, right *engine.Dataset, on JoinKeys, kind JoinKind, most int, fn any, isNil bool, call func(*L, *R) (Out, error)) *engine.Dataset {
	b, ok := joinBuilder(op, left, right)
	if !ok {
		return b.Poisoned(op)
	}
	if !kind.valid() {
		b.Errorf("%s: %v is no kind of join: want Inner, Left, Right or Full", op, kind)
		ok = false
	}
	l, okLeft := inputRows[L](op, left)
	r, okRight := inputRows[R](op, right)
	out, okOut := outputRows[Out](op, b)
	okKeys := on.check(op, left, right)
	if !needFunc(op, b, isNil) || !ok || !okLeft || !okRight || !okOut || !okKeys {
		return b.Poisoned(op)
	}
	left, right, cols := on.sent(op, left, right, l.Schema(), r.Schema())
	spec := &joinSpec{kind: kind, most: most, columns: cols, left: arrowrows.Arrow(left.Schema()), right: arrowrows.Arrow(right.Schema())}
	return b.Add(engine.Spec{
		Op:     op,
		Attrs:  []engine.Attr{{Key: "kind", Value: kind.String()}, {Key: "on", Value: on.String()}},
		Schema: arrowrows.Schema(out.Schema()),
		// Rows of the second input are processed after all rows of the first.
		Inputs: []engine.Port{hashPort(right, cols.right), hashPort(left, cols.left)},
		Func:   fn,
		Operator: func() engine.Operator {
			o := &joiner[L, R, Out]{spec: spec}
			o.pairs = pairWriter[L, R, Out]{call: call, left: rowReader[L]{codec: l}, right: rowReader[R]{codec: r}, out: rowWriter[Out]{codec: out}}
			return o
		},
	})
}

// These are the ports of a join's inputs.
const (
	joinRight = iota
	joinLeft
)

// joinSpec is shared by the subtasks of a join.
type joinSpec struct {
	kind        JoinKind
	columns     joinColumns
	left, right *arrow.Schema
	// most bounds the number of rows or keys of a table in memory, and the number of rows of a
	// key in memory. It is for tests; if it is 0, only the memory bounds these numbers.
	most int
}

// joiner is the operator behind Join. It has a hash table of the right rows of a shard, or a
// lateJoin if the table does not fit in memory.
type joiner[L, R, Out any] struct {
	engine.BaseOperator
	spec    *joinSpec
	pairs   pairWriter[L, R, Out]
	table   joinTable
	keys    joinKeyReader // reads the keys of left rows
	indices [2]rowIndex   // indexed by port
	print   string        // fingerprint of the table's rows, if the run checks whether they change
	spilled *spilledJoin[L, R, Out]
}

func (o *joiner[L, R, Out]) Open(c *engine.Context) error {
	o.pairs.context = c
	o.pairs.out.open(c)
	o.table.open(c, o.spec)
	o.keys.columns = o.spec.columns.left
	return nil
}

func (o *joiner[L, R, Out]) Process(c *engine.Context, port, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	first := o.indices[port].batch(rows.NumRows())
	switch {
	case o.spilled != nil && port == joinRight:
		return o.spilled.addRight(rows, first)
	case o.spilled != nil:
		return o.spilled.addLeft(rows, first)
	case port == joinRight:
		return o.addRight(c, rows, first)
	}
	if err := o.seal(c); err != nil {
		return err
	}
	return o.probe(c, shard, rows, first, out)
}

// addRight adds rows to the table. If they do not fit, it moves all rows to a lateJoin.
func (o *joiner[L, R, Out]) addRight(c *engine.Context, rows arrow.Record, first int64) error {
	fits, err := o.table.add(rows)
	if fits || err != nil {
		return err
	}
	o.spilled = newSpilledJoin(c, o.spec, &o.pairs)
	at := int64(0)
	for _, held := range o.table.held {
		if err := o.spilled.addRight(held, at); err != nil {
			return err
		}
		at += held.NumRows()
	}
	o.table.clear()
	return o.spilled.addRight(rows, first)
}

// seal is called after the last right row and makes the rows of the table readable.
func (o *joiner[L, R, Out]) seal(c *engine.Context) error {
	if o.table.rows != nil {
		return nil
	}
	if err := o.table.seal(); err != nil || o.table.rows == nil {
		return err
	}
	if c.ChecksRows() {
		var err error
		if o.print, err = contentOf(o.table.rows); err != nil {
			return err
		}
	}
	return nil
}

// contentOf returns a fingerprint of the content of rows.
func contentOf(rows arrow.Record) (string, error) {
	var h contentHash
	err := h.add(rows)
	return h.String(), err
}

// errLentChanged says that the function of a join has changed rows that several of its calls
// share.
var errLentChanged = errors.New("the function changed the rows it was given, which other calls and operators read as well: a slice in a row is not a copy, so make one before you change it (slices.Clone)")

// probe pairs left rows with the rows in the table.
func (o *joiner[L, R, Out]) probe(c *engine.Context, shard int, rows arrow.Record, first int64, out engine.Output) error {
	if err := o.keys.reset(rows); err != nil {
		return err
	}
	p := &o.pairs
	p.begin(shard, out, nil)
	for i := range int(rows.NumRows()) {
		partner := int32(-1)
		if !o.keys.null(i) {
			partner = o.table.first(o.keys.key(i))
		}
		if partner < 0 && !o.spec.kind.keepsLeft() {
			continue
		}
		if err := p.readLeft(rows, i, first+int64(i)); err != nil {
			return err
		}
		if partner < 0 {
			if err := p.pair(true, false); err != nil {
				return err
			}
			continue
		}
		for ; partner >= 0; partner = o.table.next[partner] {
			o.table.matched[partner] = true
			if err := p.readRight(o.table.rows, int(partner), int64(partner)); err != nil {
				return err
			}
			if err := p.pair(true, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *joiner[L, R, Out]) EndShard(c *engine.Context, shard int, out engine.Output) error {
	var err error
	if o.spilled != nil {
		err = o.spilled.emit(shard, out)
		if closed := o.spilled.close(); err == nil {
			err = closed
		}
		o.spilled = nil
	} else {
		err = o.endTable(c, shard, out)
	}
	if err != nil {
		return err
	}
	o.pairs.endShard()
	o.table.clear()
	o.indices = [2]rowIndex{}
	return nil
}

// endTable emits those rows of the table that have no partner, if the join keeps them, and
// flushes the writer.
func (o *joiner[L, R, Out]) endTable(c *engine.Context, shard int, out engine.Output) error {
	if err := o.seal(c); err != nil {
		return err
	}
	o.pairs.begin(shard, out, nil)
	if o.spec.kind.keepsRight() {
		for i, matched := range o.table.matched {
			if matched {
				continue
			}
			err := o.pairs.readRight(o.table.rows, i, int64(i))
			if err == nil {
				err = o.pairs.pair(false, true)
			}
			if err != nil {
				return err
			}
		}
	}
	if c.ChecksRows() && o.table.rows != nil {
		if now, err := contentOf(o.table.rows); err != nil || now != o.print {
			return errors.Join(err, errLentChanged)
		}
	}
	return o.pairs.out.flush(shard, out)
}

func (o *joiner[L, R, Out]) Close() error {
	o.table.clear()
	o.pairs.out.close()
	if o.spilled == nil {
		return nil
	}
	return o.spilled.close()
}

// pairWriter calls the function of a join for pairs of rows and writes the rows that it
// returns.
type pairWriter[L, R, Out any] struct {
	context *engine.Context
	pairs   uint64 // number of pairs so far

	call  func(*L, *R) (Out, error)
	left  rowReader[L]
	right rowReader[R]
	out   rowWriter[Out]

	l                     L // l and r are the arguments of a call, copied so that its changes do not affect other calls
	r                     R
	leftIndex, rightIndex int64 // indices of the current rows within the shard

	shard  int
	to     engine.Output
	placed *placedRows // sorts the result; nil if pairs are written in the order of the result
}

// begin sets the shard and the receiver of the results: placed, or the output to if placed is
// nil.
func (p *pairWriter[L, R, Out]) begin(shard int, to engine.Output, placed *placedRows) {
	p.shard, p.to, p.placed = shard, to, placed
}

// endShard ends a shard.
func (p *pairWriter[L, R, Out]) endShard() {
	p.left.endShard()
	p.right.endShard()
	p.to, p.placed = nil, nil
}

// readLeft reads row i of a batch, which is the left row of the next pairs. index is the row's
// index within the shard.
func (p *pairWriter[L, R, Out]) readLeft(rows arrow.Record, i int, index int64) error {
	p.leftIndex = index
	return p.failed(joinLeft, index, readRow(&p.left, rows, i))
}

// readRight reads row i of a batch, which is the right row of the next pairs.
func (p *pairWriter[L, R, Out]) readRight(rows arrow.Record, i int, index int64) error {
	p.rightIndex = index
	return p.failed(joinRight, index, readRow(&p.right, rows, i))
}

// readRow reads a row of a batch, which may differ from the batch of the previous call.
func readRow[T any](r *rowReader[T], rows arrow.Record, i int) error {
	if r.rows != rows {
		if err := r.reset(rows); err != nil {
			return err
		}
	}
	if err := r.reader.Read(i, &r.row); err != nil {
		return r.explain(i, err)
	}
	return nil
}

// failed adds to err the input, shard and row at which it occurred.
func (p *pairWriter[L, R, Out]) failed(port int, index int64, err error) error {
	if err == nil {
		return nil
	}
	return inShard(p.shard, sideRowError(port, index, err))
}

// sideRowError adds to err the input of a join and the index of the row at which it occurred.
func sideRowError(port int, index int64, err error) error {
	side := "right"
	if port == joinLeft {
		side = "left"
	}
	return &engine.RowError{Row: index, Of: &engine.RowsOf{Input: port}, Err: fmt.Errorf("of the %s dataset: %w", side, err)}
}

// inShard adds the shard to an error that sideRowError has returned.
func inShard(shard int, err error) error {
	if row := new(engine.RowError); errors.As(err, &row) && row.Of != nil {
		row.Of.Shard = shard
	}
	return err
}

// pair calls the user's function and writes the result. It passes the left row that was read
// last if withLeft is set, otherwise nil, and likewise for the right row.
func (p *pairWriter[L, R, Out]) pair(withLeft, withRight bool) (err error) {
	// Cancellation is checked here too, as one batch can have very many pairs if a key is
	// frequent.
	const pairsBetweenLooks = 4096
	if p.pairs++; p.pairs%pairsBetweenLooks == 0 {
		if err := p.context.Err(); err != nil {
			return err
		}
	}
	var l *L
	var r *R
	port, index := joinRight, p.rightIndex
	if withRight {
		p.r = p.right.row
		r = &p.r
	}
	if withLeft {
		p.l = p.left.row
		l = &p.l
		port, index = joinLeft, p.leftIndex
	}
	if p.out.row, err = p.call(l, r); err != nil {
		return p.failed(port, index, err)
	}
	if p.placed != nil {
		place := p.leftIndex
		if !withLeft {
			place = afterLeft + p.rightIndex
		}
		p.placed.places = append(p.placed.places, place)
		return p.failed(port, index, p.out.push(p.shard, p.placed))
	}
	return p.failed(port, index, p.out.push(p.shard, p.to))
}
