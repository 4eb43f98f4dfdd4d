package gbdt

import (
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// digitBits returns the number of bits of a value that each pass of a selection determines. It
// is chosen so that the counts of all groups take no more than a few megabytes.
func digitBits(groups int) int {
	bits := 8
	for bits > 1 && groups<<bits > 1<<18 {
		bits /= 2
	}
	return bits
}

// selection finds exact weighted quantiles of the values of all rows, for each group of rows,
// such as the rows in each leaf of a tree. It is a radix selection: values are mapped to
// integers in the same order, and each pass determines a digit of the result from sums of
// integer weights. The result does not depend on the order of rows, nor on which subtask holds
// them. The quantile of a group is the smallest value v such that the rows with values up to v
// have at least a given share of the group's weight; field at is this share. If they have
// exactly this share, the quantile is the mean of v and the next larger value.
//
// In the queue, the stages of a selector come after a compute function that calls begin or skip
// on every subtask.
type selection struct {
	at     float64
	groups int
	value  func(row int) float64 // called for rows whose group is not −1
	group  []int32               // the group of each row; nil means that all rows are in group 0
	weight []int64               // the weight of each row; nil means that every row has the weight 1
	rows   int
	active bool
	bits   int // number of bits that a pass determines
	pass   int

	keys   []uint64
	prefix []uint64
	goal   []float64 // weight still to reach, counted from the first value with the prefix
	slack  []float64 // tolerance of goal
	state  []groupState
	found  []float64
}

// groupState is the state of the search for the quantile of a group.
type groupState uint8

const (
	searching groupState = iota
	emptyGroup
	between // the quantile lies between the value found and the next larger value
)

// selector has the stages of a selection for a queue. Field of is a function that returns the
// selection.
type selector struct {
	of    func(ctx *comqueue.ComContext) *selection
	count shared.Key[[]int64]
	next  shared.Key[[]float64]
}

func newSelector(name string, of func(ctx *comqueue.ComContext) *selection) *selector {
	return &selector{of, shared.Scratch[[]int64](name + " counts"), shared.Scratch[[]float64](name + " next")}
}

// begin starts a selection. It calls s.value once for each row that belongs to a group.
func (x *selector) begin(ctx *comqueue.ComContext, s *selection) {
	s.active, s.pass, s.bits = true, 0, digitBits(s.groups)
	s.keys = kernel.Sized(s.keys, s.rows)
	for i := range s.keys {
		if s.group == nil || s.group[i] >= 0 {
			s.keys[i] = kernel.OrderKey(s.value(i))
		}
	}
	s.prefix, s.state, s.found = kernel.Sized(s.prefix, s.groups), kernel.Sized(s.state, s.groups), kernel.Sized(s.found, s.groups)
	s.goal, s.slack = kernel.Sized(s.goal, s.groups), kernel.Sized(s.slack, s.groups)
	clear(s.prefix)
	clear(s.state)
	x.put(ctx, s.groups, s.bits)
}

// skip makes the stages do nothing in this superstep.
func (x *selector) skip(ctx *comqueue.ComContext, s *selection) {
	s.active = false
	x.put(ctx, 0, 0)
}

func (x *selector) put(ctx *comqueue.ComContext, groups, bits int) {
	counts, _ := x.count.Lookup(ctx)
	x.count.Put(ctx, kernel.Sized(counts, groups<<bits))
	next, _ := x.next.Lookup(ctx)
	x.next.Put(ctx, kernel.Sized(next, groups))
}

// stages returns the stages that the queue runs for the selection.
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

// done reports whether no further pass is needed.
func (x *selector) done(ctx *comqueue.ComContext) (bool, error) {
	s := x.of(ctx)
	return !s.active || s.last(), nil
}

// last reports whether all passes have been made: all 64 bits are determined.
func (s *selection) last() bool { return s.bits*s.pass >= 64 }

// countAll adds the counts of all shards in one buffer. This is allowed because sums of
// integers do not depend on the order.
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

// narrow determines the next digit of each group's quantile.
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

// after finds the smallest value above the found one, for groups whose quantile lies between
// two values.
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
			out[g] = min(out[g], kernel.OrderValue(s.keys[i]))
		}
	}
	return nil
}

// finish computes the quantiles. The quantile of a group without weight is NaN.
func (x *selector) finish(ctx *comqueue.ComContext) error {
	s := x.of(ctx)
	if !s.active {
		return nil
	}
	next := x.next.Get(ctx)
	for g := range s.found {
		switch v := kernel.OrderValue(s.prefix[g]); {
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

// powerBelow returns a power of two p such that the sum of n values of at most top, each
// multiplied by p, stays below 2^62. It is at most a factor of 4 below the largest such power,
// and between 2^-1000 and 2^1000.
func powerBelow(top float64, n int64) float64 {
	if !(top > 0) {
		return 1
	}
	_, e := math.Frexp(top)
	return math.Ldexp(1, max(-1000, min(1000, 62-bits.Len64(uint64(max(n, 1)-1))-e)))
}

// scaled returns v·scale as an integer, rounded half to even.
func scaled(v, scale float64) int64 { return int64(math.RoundToEven(v * scale)) }
