package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// Measures that need all rows sorted by a value, such as a score or an error, are computed in a
// sweep over the distinct values. Each distinct value has two weights, for example the weight
// of its positive rows and the weight of its negative rows. On datasets, a sweep has these
// operators:
//
//	group     rows of a shard with equal values become one, with the sums of the weights
//	range     groups move to the shard of their range of values
//	totals    every subtask gets the sums of the weights of each shard
//	sweep     goes over the groups shard by shard, starting from the totals of the shards before
//
// Weights are added exactly, and each step of the sweep gets the sums rounded once. The steps
// therefore get the same numbers for slices and for any distribution over shards.

// weighted is a value with its two weights.
type weighted struct{ value, a, b float64 }

// group is a distinct value with the sums of the two weights of its rows.
type group struct {
	value float64
	a, b  sum
}

// groups sorts values in place and calls each for every distinct value, in ascending or
// descending order. g is valid only during the call.
func groups(values []weighted, descending bool, each func(g *group) error) error {
	slices.SortFunc(values, func(x, y weighted) int {
		if descending {
			return cmp.Compare(y.value, x.value)
		}
		return cmp.Compare(x.value, y.value)
	})
	for i := 0; i < len(values); {
		g := group{value: values[i].value}
		for ; i < len(values) && values[i].value == g.value; i++ {
			g.a.add(values[i].a)
			g.b.add(values[i].b)
		}
		if err := each(&g); err != nil {
			return err
		}
	}
	return nil
}

// step describes a distinct value in a sweep. It has the weights of the value, the sums of the
// weights before it, and the sums including it.
type step struct {
	value            float64
	a, b             float64
	beforeA, beforeB float64
	afterA, afterB   float64
	total            *totals
}

// totals has the sums of the weights of all values.
type totals struct {
	A, B sum
	a, b float64 // the sums, rounded
}

func (t *totals) merge(o *totals) {
	t.A.merge(&o.A)
	t.B.merge(&o.B)
}

func (t *totals) round() { t.a, t.b = t.A.value(), t.B.value() }

// sweeping is the state of a sweep over groups in order.
type sweeping struct {
	seen  totals
	total *totals
}

// next returns the step of the next group.
func (s *sweeping) next(g *group) step {
	t := step{value: g.value, a: g.a.value(), b: g.b.value(), beforeA: s.seen.a, beforeB: s.seen.b, total: s.total}
	s.seen.A.merge(&g.a)
	s.seen.B.merge(&g.b)
	s.seen.round()
	t.afterA, t.afterB = s.seen.a, s.seen.b
	return t
}

// sweepSlice sweeps over values in memory, which it sorts in place.
func sweepSlice(values []weighted, descending bool, visit func(t *step)) *totals {
	all := new(totals)
	for _, v := range values {
		all.A.add(v.a)
		all.B.add(v.b)
	}
	all.round()
	s := sweeping{total: all}
	_ = groups(values, descending, func(g *group) error {
		t := s.next(g)
		visit(&t)
		return nil
	})
	return all
}

// groupRow is the row by which operators exchange a group. A group is written as several rows
// with equal values if the sum of a weight cannot be represented by one float64.
type groupRow struct {
	Value float64 `column:"value"`
	A     float64 `column:"a"`
	B     float64 `column:"b"`
}

// components appends to dst float64 values that add up to exactly s.
func (s *sum) components(dst []float64) []float64 {
	switch {
	case !s.finite() || s.Big == nil && s.Lo == 0:
		return append(dst, s.value())
	case s.Big == nil:
		return append(dst, s.Hi, s.Lo)
	}
	rest := s.exact()
	for rest.Sign() != 0 {
		f, _ := rest.Float64()
		f = min(max(f, -math.MaxFloat64), math.MaxFloat64) // a sum may exceed float64
		dst = append(dst, f)
		rest.Sub(rest, newExact().SetFloat64(f))
	}
	return dst
}

// grouper adds the operator that groups the rows of each shard. extract appends the values of a
// cleaned batch to dst.
func grouper(rows *engine.Dataset, op string, in table, extract func(dst []weighted, rows arrow.Record) ([]weighted, error)) *engine.Dataset {
	return rows.Builder().Add(engine.Spec{
		Op:       op,
		Attrs:    in.attrs(),
		Schema:   arrowrows.SchemaOf[groupRow](),
		Inputs:   []engine.Port{{From: rows}},
		Operator: func() engine.Operator { return &groupOperator{in: in, extract: extract} },
	})
}

// groupOperator executes grouper on one subtask.
type groupOperator struct {
	engine.BaseOperator
	in      table
	extract func([]weighted, arrow.Record) ([]weighted, error)
	row     int
	held    shardValues
}

func (o *groupOperator) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	clean, err := o.in.validRows(c, rows, o.row)
	if err != nil {
		return err
	}
	defer clean.Release()
	before := o.row
	o.row += int(rows.NumRows())
	if err := o.held.grow(c, int(clean.NumRows())); err != nil {
		return err
	}
	o.held.values, err = o.extract(o.held.values, clean)
	return o.in.place(err, before)
}

func (o *groupOperator) EndShard(c *engine.Context, shard int, out engine.Output) error {
	o.row = 0
	rows := make([]groupRow, 0, min(len(o.held.values), c.BatchRows))
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		defer func() { rows = rows[:0] }()
		return arrowrows.Emit(c.Allocator, out, shard, rows)
	}
	var a, b []float64
	err := groups(o.held.values, false, func(g *group) error {
		a, b = g.a.components(a[:0]), g.b.components(b[:0])
		for i := range max(len(a), len(b)) {
			r := groupRow{Value: g.value}
			if i < len(a) {
				r.A = a[i]
			}
			if i < len(b) {
				r.B = b[i]
			}
			rows = append(rows, r)
		}
		if len(rows) < c.BatchRows {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	o.held.drop(c)
	return flush()
}

func (o *groupOperator) Close() error {
	o.held.drop(nil)
	return nil
}

// shardValues has the values of a shard. Their memory is reserved from the memory budget of the
// run.
type shardValues struct {
	values   []weighted
	memory   interface{ Release(int64) }
	reserved int64
}

const weightedBytes = 24

// grow reserves memory for n more values.
func (h *shardValues) grow(c *engine.Context, n int) error {
	if len(h.values)+n > cap(h.values) {
		h.values = slices.Grow(h.values, max(n, cap(h.values)/2))
	}
	if want := int64(cap(h.values)) * weightedBytes; want > h.reserved {
		if err := c.Memory.Reserve(want - h.reserved); err != nil {
			return fmt.Errorf("hold the values of a shard: %w, or cut the data into more shards", err)
		}
		h.memory, h.reserved = c.Memory, want
	}
	return nil
}

// drop discards the values of the shard. It keeps the reserved memory for the next shard,
// unless c is nil.
func (h *shardValues) drop(c *engine.Context) {
	h.values = h.values[:0]
	if c == nil && h.memory != nil {
		h.memory.Release(h.reserved)
		h.reserved = 0
	}
}

// sweepGroups adds the operators that sweep over groups. They call visit for each distinct
// value, with its step and the state of the shard. sweepGroups returns the dataset of the
// states.
func sweepGroups[S any](parts *engine.Dataset, op string, descending bool, attrs []engine.Attr, visit func(s *S, t *step)) *engine.Dataset {
	by := operators.Asc("value")
	if descending {
		by = operators.Desc("value")
	}
	ranges := operators.PartitionByRange(parts, by)
	total := foldSpec[totals]{
		op: op + "Totals",
		in: groupTable(),
		add: func(s *totals, rows arrow.Record) error {
			a, b := rows.Column(1).(*array.Float64).Float64Values(), rows.Column(2).(*array.Float64).Float64Values()
			for i := range a {
				s.A.add(a[i])
				s.B.add(b[i])
			}
			return nil
		},
		perShard: true,
	}
	if err := total.in.bind(arrowrows.Arrow(ranges.Schema())); err != nil {
		panic(err) // cannot happen: this package made the schema
	}
	return parts.Builder().Add(engine.Spec{
		Op:     op,
		Attrs:  attrs,
		Schema: arrowrows.SchemaOf[stateRow](),
		Inputs: []engine.Port{{From: ranges}, {From: total.fold(ranges), Partitioner: engine.Broadcast, Side: true}},
		Operator: func() engine.Operator {
			return &sweepOperator[S]{descending: descending, visit: visit}
		},
	})
}

// groupTable returns the table that describes the columns of groups. These need no
// checks; foldSpec reads batches through a table.
func groupTable() table {
	var t table
	for _, name := range []string{"value", "a", "b"} {
		t.readNumber(name, name)
	}
	return t
}

// sweepOperator executes sweepGroups on one subtask.
type sweepOperator[S any] struct {
	engine.BaseOperator
	descending bool
	visit      func(s *S, t *step)
	all        totals
	shards     []*totals // shards[i] has the totals of shard i; nil if it has no groups
	held       shardValues
}

func (o *sweepOperator[S]) Open(c *engine.Context) error {
	o.shards = make([]*totals, c.Shards)
	for _, rec := range c.Side(1) {
		err := readStates(arrowrows.Record(rec), func(shard int, t *totals) {
			o.shards[shard] = t
			o.all.merge(t)
		})
		if err != nil {
			return err
		}
	}
	o.all.round()
	return nil
}

func (o *sweepOperator[S]) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.held.grow(c, int(rows.NumRows())); err != nil {
		return err
	}
	value, a, b := rows.Column(0).(*array.Float64), rows.Column(1).(*array.Float64), rows.Column(2).(*array.Float64)
	for i := range value.Len() {
		o.held.values = append(o.held.values, weighted{value.Value(i), a.Value(i), b.Value(i)})
	}
	return nil
}

func (o *sweepOperator[S]) EndShard(c *engine.Context, shard int, out engine.Output) error {
	if len(o.held.values) == 0 {
		return nil
	}
	s := sweeping{total: &o.all}
	for _, before := range o.shards[:shard] {
		if before != nil {
			s.seen.merge(before)
		}
	}
	s.seen.round()
	state := new(S)
	err := groups(o.held.values, o.descending, func(g *group) error {
		t := s.next(g)
		o.visit(state, &t)
		return nil
	})
	if err != nil {
		return err
	}
	o.held.drop(c)
	return emitState(c, shard, state, out)
}

func (o *sweepOperator[S]) Close() error {
	o.held.drop(nil)
	return nil
}
