package gbdt

import (
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// digitBits returns how many bits of a value a pass of a selection fixes: as many as leave the
// counts of all groups within a few megabytes.
func digitBits(groups int) int {
	bits := 8
	for bits > 1 && groups<<bits > 1<<18 {
		bits /= 2
	}
	return bits
}

// selection finds weighted quantiles of the values of all rows in groups, such as those of
// the leaves of a tree, exactly: pass by pass the digits of the integers that have the order
// of the values, from counts of weights that are integers. So it does not depend on the order
// of rows nor on who holds them. A quantile is the smallest value down to which the weight is
// at least the share at of the group's; where it is exactly so much, the mean of that value
// and the next.
//
// A queue adds the stages of a selector behind a compute function that calls begin or skip on every subtask.
type selection struct {
	at     float64
	groups int
	value  func(row int) float64 // of rows whose group is not −1
	group  []int32               // nil: all rows are of group 0
	weight []int64               // nil: every row weighs 1
	rows   int
	active bool
	bits   int // of a pass
	pass   int

	keys   []uint64
	prefix []uint64
	goal   []float64 // weight to reach, counted from the first value with the prefix
	slack  []float64 // by which it may be missed
	state  []groupState
	found  []float64
}

// groupState tells how far the search of a group has come.
type groupState uint8

const (
	searching groupState = iota
	emptyGroup
	between // the quantile lies between the value found and the next
)

// selector adds the stages of a selection to a queue.
type selector struct {
	of    func(ctx *comqueue.ComContext) *selection
	count shared.Key[[]int64]
	next  shared.Key[[]float64]
}

func newSelector(name string, of func(ctx *comqueue.ComContext) *selection) *selector {
	return &selector{of, shared.Scratch[[]int64](name + " counts"), shared.Scratch[[]float64](name + " next")}
}

// begin starts a selection. value is called for each row once.
func (x *selector) begin(ctx *comqueue.ComContext, s *selection) {
	s.active, s.pass, s.bits = true, 0, digitBits(s.groups)
	s.keys = grown(s.keys, s.rows)
	for i := range s.keys {
		if s.group == nil || s.group[i] >= 0 {
			s.keys[i] = keyOf(s.value(i))
		}
	}
	s.prefix, s.state, s.found = grown(s.prefix, s.groups), grown(s.state, s.groups), grown(s.found, s.groups)
	s.goal, s.slack = grown(s.goal, s.groups), grown(s.slack, s.groups)
	clear(s.prefix)
	clear(s.state)
	x.put(ctx, s.groups, s.bits)
}

// skip leaves the stages without work.
func (x *selector) skip(ctx *comqueue.ComContext, s *selection) {
	s.active = false
	x.put(ctx, 0, 0)
}

func (x *selector) put(ctx *comqueue.ComContext, groups, bits int) {
	counts, _ := x.count.Lookup(ctx)
	x.count.Put(ctx, grown(counts, groups<<bits))
	next, _ := x.next.Lookup(ctx)
	x.next.Put(ctx, grown(next, groups))
}

// stages returns what a queue adds.
func (x *selector) stages() []comqueue.Stage {
	return []comqueue.Stage{
		comqueue.Repeat(64, x.done,
			comqueue.Named(x.count.Name(), comqueue.ForEachShard(x.count, x.countShard, comqueue.FoldedBy(x.countAll))),
			comqueue.AllReduce(x.count),
			comqueue.Named("narrow", comqueue.Do(x.narrow)),
		),
		comqueue.Named(x.next.Name(), comqueue.ForEachShard(x.next, x.after)),
		comqueue.AllReduce(x.next, comqueue.Min),
		comqueue.Named("finish", comqueue.Do(x.finish)),
	}
}

// done ends the passes.
func (x *selector) done(ctx *comqueue.ComContext) (bool, error) {
	s := x.of(ctx)
	return !s.active || s.last(), nil
}

// last tells whether the next pass would be one too many.
func (s *selection) last() bool { return s.bits*s.pass >= 64 }

// countAll counts the rows of the shards at once: integers have no order.
func (x *selector) countAll(ctx *comqueue.ComContext, shards sharding.Range, out []int64) (bool, error) {
	return true, ctx.ForShardsWithin(shards, func(shard int) error { return x.countShard(ctx, shard, out) })
}

func (x *selector) countShard(ctx *comqueue.ComContext, shard int, out []int64) error {
	s := x.of(ctx)
	if !s.active {
		return nil
	}
	span := trained.Get(ctx).span(shard)
	shift := 64 - s.bits*(s.pass+1)
	mask := 1<<s.bits - 1
	for i := span.First; i < span.First+span.Rows; i++ {
		g := 0
		if s.group != nil {
			if g = int(s.group[i]); g < 0 {
				continue
			}
		}
		key := s.keys[i]
		if s.pass > 0 && key>>(shift+s.bits) != s.prefix[g] {
			continue
		}
		w := int64(1)
		if s.weight != nil {
			w = s.weight[i]
		}
		out[g<<s.bits|int(key>>shift)&mask] += w
	}
	return nil
}

// narrow fixes a digit of each group.
func (x *selector) narrow(ctx *comqueue.ComContext) error {
	s := x.of(ctx)
	if !s.active {
		return nil
	}
	counts := x.count.Get(ctx)
	for g := range s.groups {
		s.digit(g, counts[g<<s.bits:(g+1)<<s.bits])
	}
	s.pass++
	return nil
}

func (s *selection) digit(g int, counts []int64) {
	if s.state[g] == emptyGroup {
		return
	}
	if s.pass == 0 {
		var total int64
		for _, c := range counts {
			total += c
		}
		if total == 0 {
			s.state[g] = emptyGroup
			return
		}
		s.goal[g], s.slack[g] = s.at*float64(total), float64(total)*0x1p-50
	}
	var sum int64
	last := 0
	for d, c := range counts {
		if c == 0 {
			continue
		}
		last = d
		if float64(sum+c) >= s.goal[g]-s.slack[g] {
			break
		}
		sum += c
	}
	if s.bits*(s.pass+1) == 64 && math.Abs(float64(sum+counts[last])-s.goal[g]) <= s.slack[g] {
		s.state[g] = between
	}
	s.goal[g] -= float64(sum)
	s.prefix[g] = s.prefix[g]<<s.bits | uint64(last)
}

// after finds the next value of the groups whose quantile lies between two.
func (x *selector) after(ctx *comqueue.ComContext, shard int, out []float64) error {
	s := x.of(ctx)
	if !s.active {
		return nil
	}
	span := trained.Get(ctx).span(shard)
	for i := span.First; i < span.First+span.Rows; i++ {
		g := 0
		if s.group != nil {
			if g = int(s.group[i]); g < 0 {
				continue
			}
		}
		if s.state[g] == between && s.keys[i] > s.prefix[g] && (s.weight == nil || s.weight[i] > 0) {
			out[g] = min(out[g], valueOf(s.keys[i]))
		}
	}
	return nil
}

// finish makes the quantiles, NaN for groups without weight.
func (x *selector) finish(ctx *comqueue.ComContext) error {
	s := x.of(ctx)
	if !s.active {
		return nil
	}
	next := x.next.Get(ctx)
	for g := range s.found {
		switch v := valueOf(s.prefix[g]); {
		case s.state[g] == emptyGroup:
			s.found[g] = math.NaN()
		case s.state[g] == between && !math.IsInf(next[g], 1):
			s.found[g] = v + float64((next[g]-v)/2)
		default:
			s.found[g] = v
		}
	}
	return nil
}

// keyOf returns the integer of a number that has its place in the order of numbers.
func keyOf(v float64) uint64 {
	b := math.Float64bits(v + 0)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// valueOf is the inverse of keyOf.
func valueOf(key uint64) float64 {
	if key>>63 != 0 {
		return math.Float64frombits(key &^ (1 << 63))
	}
	return math.Float64frombits(^key)
}

// grown returns a slice of n values, the one that is given where it has room.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// powerBelow returns the largest power of two that keeps values of at most top, n of them
// added up, below 2^62.
func powerBelow(top float64, n int64) float64 {
	if !(top > 0) {
		return 1
	}
	_, e := math.Frexp(top)
	return math.Ldexp(1, max(-1000, min(1000, 62-bits.Len64(uint64(max(n, 1)-1))-e)))
}

// scaled returns a number as an integer, rounded half to even.
func scaled(v, scale float64) int64 { return int64(math.RoundToEven(v * scale)) }
