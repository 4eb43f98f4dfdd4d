package core

import (
	"cmp"
	"slices"

	"github.com/superstep-ml/superstep/internal/wire"
)

// maxExact is the largest number of shares for which arrange tries all orders, in time 2^n n.
const maxExact = 10

// arrange returns the order of the shares of a job in which processes of its former attempt keep as much
// of their data as possible. Share i has counts[i] slots. If a process of the former attempt is on its
// task manager, former[i] is the range of slots that the process had, of was slots; else it is empty.
//
// Subtask t of p owns the shards sharding.Split(S, p, t). So a range of slots stands for the part
// [Lo/p, Hi/p) of the shards. arrange maximises the sum over the shares of what the former part and the
// new one have in common. Of several such orders it returns the first in the order of indices. For more
// than maxExact shares the order is only a good one. But if it is possible that every process keeps
// exactly its range as other shares take the places of lost ones of the same size, it is such an order.
func arrange(counts []int, former []wire.SlotRange, was int) []int {
	a := arrangement{counts: counts, former: former, was: was}
	for _, n := range counts {
		a.now += n
	}
	if len(counts) <= maxExact {
		return a.best()
	}
	return a.improve(a.greedy())
}

// arrangement is the input of arrange. Parts of shards are measured in units of 1/(was·now).
type arrangement struct {
	counts   []int
	former   []wire.SlotRange
	was, now int
}

// common returns what the former part of share i and its new one have in common if its first slot is lo.
func (a *arrangement) common(i, lo int) int {
	f := a.former[i]
	return max(0, min((lo+a.counts[i])*a.was, f.Hi*a.now)-max(lo*a.was, f.Lo*a.now))
}

// best returns the best order. For each set of shares that come first, from the largest set to the
// smallest, it computes how much the others can have in common.
func (a *arrangement) best() []int {
	n := len(a.counts)
	most := make([]int, 1<<n) // by the set of the shares that come first
	first := make([]int, 1<<n)
	for set := len(most) - 2; set >= 0; set-- {
		lo := 0
		for i := range n {
			lo += set >> i & 1 * a.counts[i]
		}
		most[set] = -1
		for i := range n {
			if set>>i&1 == 1 {
				continue
			}
			if m := a.common(i, lo) + most[set|1<<i]; m > most[set] {
				most[set], first[set] = m, i
			}
		}
	}
	order := make([]int, 0, n)
	for set := 0; len(order) < n; set |= 1 << order[len(order)-1] {
		order = append(order, first[set])
	}
	return order
}

// greedy returns an order in which the processes of the former attempt follow each other as before. Before
// each of them come the largest other shares that fit between it and the share before it.
func (a *arrangement) greedy() []int {
	var stay, others []int
	for i, f := range a.former {
		if f.Hi > f.Lo {
			stay = append(stay, i)
		} else {
			others = append(others, i)
		}
	}
	slices.SortStableFunc(stay, func(i, k int) int { return cmp.Compare(a.former[i].Lo, a.former[k].Lo) })
	slices.SortStableFunc(others, func(i, k int) int { return cmp.Compare(a.counts[k], a.counts[i]) })
	var order []int
	lo := 0
	add := func(i int) {
		order = append(order, i)
		lo += a.counts[i]
	}
	for _, i := range stay {
		for {
			gap := a.former[i].Lo*a.now - lo*a.was
			k := slices.IndexFunc(others, func(o int) bool { return a.counts[o]*a.was <= gap })
			if k < 0 {
				break
			}
			add(others[k])
			others = slices.Delete(others, k, k+1)
		}
		add(i)
	}
	for _, i := range others {
		add(i)
	}
	return order
}

// improve exchanges neighbours in an order as long as that makes it better.
func (a *arrangement) improve(order []int) []int {
	for better, rounds := true, 0; better && rounds < len(order); rounds++ {
		better = false
		lo := 0
		for k := range len(order) - 1 {
			i, m := order[k], order[k+1]
			if a.common(m, lo)+a.common(i, lo+a.counts[m]) > a.common(i, lo)+a.common(m, lo+a.counts[i]) {
				order[k], order[k+1], better = m, i, true
			}
			lo += a.counts[order[k]]
		}
	}
	return order
}
