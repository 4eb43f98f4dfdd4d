package operators

import (
	"reflect"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// FoldGroups folds the rows of each group with user functions. init returns the initial value
// of a group. add is called for each row of the group and returns the new value. finish
// computes the group's only result row from its key and final value. Key is a struct of all or
// some of the key columns. The result has the columns of Out.
//
//	type key struct{ Shop string }
//	longest := operators.FoldGroups(operators.GroupBy(sales, "shop"),
//		func() string { return "" },
//		func(longest string, s sale) string { ... },
//		func(k key, longest string) outcome { ... })
//
// All rows of a group are sent to one shard. They are ordered by source shard and keep their
// order within it. So add may depend on the order of rows, and no function that merges two
// values is needed. If Aggregate can compute the result, it is cheaper, as it sends at most one
// row per shard and group.
//
// The functions may keep rows and the key. An Acc may hold pointers, but the run's budget
// accounts only for the size of Acc itself. Rows of groups that do not fit in the budget are
// sorted on disk.
func FoldGroups[Key, In, Acc, Out any](g *Grouped, init func() Acc, add func(acc Acc, row In) Acc, finish func(key Key, acc Acc) Out) *engine.Dataset {
	const op = "FoldGroups"
	b := builderOf(op, g.of)
	if !g.ok {
		return b.Poisoned(op)
	}
	in, okIn := inputRows[In](op, g.of)
	out, okOut := outputRows[Out](op, b)
	key, okKey := keyRows[Key](op, g)
	if !okIn || !okOut || !okKey || !needFunc(op, b, init == nil || add == nil || finish == nil) {
		return b.Poisoned(op)
	}
	from := Select(g.of, columnsOfKeysAnd(in.Schema(), g.keys)...)
	columns, _ := keyColumns(op, from, g.keys)
	spec := &groupSpec{input: arrowrows.Arrow(from.Schema()), columns: columns, output: out.Schema()}
	spec.folder = func(c *engine.Context) (groupFolder, error) {
		f := &userFolder[Key, In, Acc, Out]{init: init, add: add, end: finish}
		f.in = rowReader[In]{codec: in, copies: true}
		f.key = rowReader[Key]{codec: key, copies: true}
		f.out = out.Appender(c.Allocator)
		return f, nil
	}
	return b.Add(engine.Spec{
		Op:       op,
		Schema:   arrowrows.Schema(out.Schema()),
		Inputs:   []engine.Port{{From: from, Partitioner: engine.Hash, Keys: g.keys}},
		Func:     add,
		Funcs:    []any{init, finish},
		Operator: func() engine.Operator { return &groupOperator{spec: spec} },
	})
}

// keyRows returns the codec that reads the keys of the groups. If the groups have no keys of
// this type, it records why and returns false.
func keyRows[Key any](op string, g *Grouped) (*batch.Codec[Key], bool) {
	b := g.of.Builder()
	codec, err := batch.NewCodec[Key]()
	if err == nil {
		columns, _ := keyColumns(op, g.of, g.keys)
		keys := keySchema(&groupSpec{input: arrowrows.Arrow(g.of.Schema()), columns: columns})
		codec = codec.For(keys)
		_, err = codec.Bind(keys)
	}
	if err != nil {
		b.Errorf("%s: the key: %w", op, err)
		return nil, false
	}
	return codec, true
}

// columnsOfKeysAnd returns the names of the columns to send: the keys and the columns of read.
func columnsOfKeysAnd(read *arrow.Schema, keys []string) []string {
	names := slices.Clone(keys)
	for _, f := range read.Fields() {
		if !slices.Contains(keys, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// userFolder is the groupFolder behind FoldGroups.
type userFolder[Key, In, Acc, Out any] struct {
	init func() Acc
	add  func(Acc, In) Acc
	end  func(Key, Acc) Out

	in   rowReader[In]
	key  rowReader[Key]
	out  *batch.Appender[Out]
	row  Out // the current result row; a field, as a local variable would escape to the heap
	accs []Acc
	have []bool
}

func (f *userFolder[Key, In, Acc, Out]) width() int64 {
	return 2 * (int64(reflect.TypeFor[Acc]().Size()) + 1)
}

func (f *userFolder[Key, In, Acc, Out]) grown() int64 { return 0 }

func (f *userFolder[Key, In, Acc, Out]) take(rows arrow.Record, groups []int32, index func(i int) int64) error {
	if err := f.in.reset(rows); err != nil {
		return err
	}
	n := slotsFor(groups)
	f.accs, f.have = grownTo(f.accs, n), grownTo(f.have, n)
	for i, g := range groups {
		if g < 0 {
			continue
		}
		f.in.index.first = index(i) - int64(i) // computed for each row, as rows from disk are not in sequence
		row, err := f.in.read(i)
		if err != nil {
			return err
		}
		if !f.have[g] {
			f.accs[g], f.have[g] = f.init(), true
		}
		f.accs[g] = f.add(f.accs[g], *row)
	}
	return nil
}

func (f *userFolder[Key, In, Acc, Out]) finish(_ int, groups []int32, keys arrow.Record) (arrow.Record, error) {
	if err := f.key.reset(keys); err != nil {
		return nil, err
	}
	var none Acc
	for i, g := range groups {
		key, err := f.key.read(i)
		if err != nil {
			return nil, err
		}
		f.row = f.end(*key, f.accs[g])
		f.accs[g], f.have[g] = none, false
		if err := f.out.AppendFrom(&f.row); err != nil {
			return nil, err
		}
	}
	return f.out.NewRecord(), nil
}

func (f *userFolder[Key, In, Acc, Out]) close() {
	f.out.Release()
	f.accs, f.have = nil, nil
}
