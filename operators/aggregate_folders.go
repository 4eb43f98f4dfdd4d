package operators

import (
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// aggregateStates holds the states of all aggregations of a plan.
type aggregateStates struct {
	plan    *aggregatePlan
	states  []aggregateState
	outcome *batch.RecordBuilder // builder of the result columns, which follow the keys
	schema  *arrow.Schema        // schema of the key columns and the result columns
}

func newAggregateStates(c *engine.Context, p *aggregatePlan, schema *arrow.Schema) (aggregateStates, error) {
	s := aggregateStates{plan: p, schema: schema}
	for _, a := range p.aggs {
		s.states = append(s.states, a.state())
	}
	var err error
	s.outcome, err = batch.NewRecordBuilder(c.Allocator, arrow.NewSchema(schema.Fields()[len(p.total.columns):], nil))
	return s, err
}

func (s *aggregateStates) grow(n int) {
	for _, st := range s.states {
		st.grow(n)
	}
}

func (s *aggregateStates) clear(slot int32) {
	for _, st := range s.states {
		st.clear(slot)
	}
}

func (s *aggregateStates) width() (n int64) {
	for _, st := range s.states {
		n += st.width()
	}
	return 2 * n // includes the space for the growth of slices
}

func (s *aggregateStates) grown() (n int64) {
	for _, st := range s.states {
		n += st.grown()
	}
	return n
}

// record returns a record of the key columns and the columns that were appended to outcome.
func (s *aggregateStates) record(keys arrow.Record) (arrow.Record, error) {
	values, err := s.outcome.NewRecord()
	if err != nil {
		return nil, err
	}
	defer values.Release()
	cols := append(keys.Columns()[:keys.NumCols():keys.NumCols()], values.Columns()...)
	return array.NewRecord(s.schema, cols, keys.NumRows()), nil
}

// partialBuilders returns the builders of the partial columns, by aggregation.
func (s *aggregateStates) partialBuilders() [][]array.Builder {
	to, at := make([][]array.Builder, len(s.states)), 0
	for i, a := range s.plan.aggs {
		for range a.partial {
			to[i] = append(to[i], s.outcome.Field(at))
			at++
		}
	}
	return to
}

func (s *aggregateStates) close() { s.outcome.Release() }

// combiner folds the rows of one shard in their order. The number of a group is also its slot.
type combiner struct {
	aggregateStates
	to    [][]array.Builder
	shard *array.Int32Builder
}

func newCombiner(c *engine.Context, p *aggregatePlan) (groupFolder, error) {
	states, err := newAggregateStates(c, p, p.partial.output)
	if err != nil {
		return nil, err
	}
	f := &combiner{aggregateStates: states}
	f.to = f.partialBuilders()
	f.shard = f.outcome.Field(len(p.partial.output.Fields()) - 1 - len(p.total.columns)).(*array.Int32Builder)
	return f, nil
}

func (f *combiner) take(rows arrow.Record, groups []int32, _ func(i int) int64) error {
	f.grow(slotsFor(groups))
	for i, a := range f.plan.aggs {
		var col arrow.Array
		if a.from >= 0 {
			col = rows.Column(a.from)
		}
		f.states[i].add(col, groups)
	}
	return nil
}

// slotsFor returns how many slots the groups need if the number of a group is also its slot.
func slotsFor(groups []int32) int {
	most := int32(-1)
	for _, g := range groups {
		most = max(most, g)
	}
	return int(most) + 1
}

func (f *combiner) finish(shard int, groups []int32, keys arrow.Record) (arrow.Record, error) {
	for _, g := range groups {
		for i, st := range f.states {
			st.partial(f.to[i], g)
		}
		f.clear(g)
		f.shard.Append(int32(shard))
	}
	return f.record(keys)
}

// shardMerger folds the partial values of each group up the aligned tree over the source
// shards. Each group has a chain of slots whose values have not been merged yet with the values
// to their right. As in sharding.Folder, the levels at which adjacent slots will be merged
// decrease towards the end of the chain, so a chain has at most as many slots as the tree has
// levels.
type shardMerger struct {
	aggregateStates
	last  []int32 // group -> last slot of its chain; -1 if the chain is empty
	left  []int32 // slot -> its left neighbour in the chain; -1 for the first slot
	first []int32 // slot -> first of the shards whose values are in it
	free  []int32 // slots that can be reused
	known int     // largest number of slots in use that grown has reported

	slots []int32 // slots of the current rows
	cols  []arrow.Array
}

func newShardMerger(c *engine.Context, p *aggregatePlan) (groupFolder, error) {
	states, err := newAggregateStates(c, p, p.total.output)
	if err != nil {
		return nil, err
	}
	return &shardMerger{aggregateStates: states}, nil
}

// width returns the number of bytes of a group without its slots, which grown accounts for.
func (f *shardMerger) width() int64 { return 8 }

func (f *shardMerger) grown() int64 {
	used := max(len(f.left)-len(f.free), f.known)
	n := int64(used-f.known) * (f.aggregateStates.width() + 24)
	f.known = used
	return n + f.aggregateStates.grown()
}

func (f *shardMerger) take(rows arrow.Record, groups []int32, _ func(i int) int64) error {
	f.room(slotsFor(groups))
	f.slots = f.slots[:0]
	for _, g := range groups {
		slot := int32(-1)
		if g >= 0 {
			slot = f.slot()
		}
		f.slots = append(f.slots, slot)
	}
	f.grow(len(f.left))
	at := len(f.plan.total.columns)
	for i, a := range f.plan.aggs {
		f.cols = f.cols[:0]
		for range a.partial {
			f.cols = append(f.cols, rows.Column(at))
			at++
		}
		f.states[i].load(f.cols, f.slots)
	}
	shards := rows.Column(at).(*array.Int32).Int32Values()
	for i, g := range groups {
		if g >= 0 {
			f.push(g, f.slots[i], shards[i])
		}
	}
	return nil
}

// room makes room for the given number of groups.
func (f *shardMerger) room(groups int) {
	for len(f.last) < groups {
		f.last = append(f.last, -1)
	}
}

// slot returns an empty slot.
func (f *shardMerger) slot() int32 {
	if n := len(f.free); n > 0 {
		slot := f.free[n-1]
		f.free = f.free[:n-1]
		return slot
	}
	f.left, f.first = append(f.left, -1), append(f.first, 0)
	return int32(len(f.left) - 1)
}

// push appends the slot of a shard to a group's chain. Before that it merges the last two slots
// of the chain while their lowest common node in the tree is below the lowest common node of
// the last slot and shard.
func (f *shardMerger) push(g, slot, shard int32) {
	for {
		right := f.last[g]
		if right < 0 || f.left[right] < 0 || meeting(f.first[f.left[right]], f.first[right]) >= meeting(f.first[right], shard) {
			break
		}
		f.join(g)
	}
	f.left[slot], f.first[slot] = f.last[g], shard
	f.last[g] = slot
}

// meeting returns the level of the lowest common node of shards a and b in the tree.
func meeting(a, b int32) int { return bits.Len32(uint32(a ^ b)) }

// join merges the last two slots of the chain of group g.
func (f *shardMerger) join(g int32) {
	right := f.last[g]
	left := f.left[right]
	for _, st := range f.states {
		st.merge(left, right)
	}
	f.freeSlot(right)
	f.last[g] = left
}

// freeSlot clears slot and adds it to free, so that it can be reused.
func (f *shardMerger) freeSlot(slot int32) {
	f.clear(slot)
	f.free = append(f.free, slot)
}

func (f *shardMerger) finish(_ int, groups []int32, keys arrow.Record) (arrow.Record, error) {
	f.room(slotsFor(groups))
	for _, g := range groups {
		if f.last[g] < 0 { // the group has no rows
			f.last[g] = f.slot()
			f.grow(len(f.left))
		}
		for f.left[f.last[g]] >= 0 {
			f.join(g)
		}
		for i, st := range f.states {
			if err := st.result(f.outcome.Field(i), f.last[g]); err != nil {
				return nil, err
			}
		}
		f.freeSlot(f.last[g])
		f.last[g] = -1
	}
	return f.record(keys)
}
