package algorithm

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Hierarchical AllReduce in three phases. Ranks form groups of k neighbours; the last group may
// be smaller, and the first rank of a group is its master. A ring within each group does a
// reduce-scatter, and the master collects the parts. A ring of the masters does an AllReduce.
// The master distributes the parts again, and the group's ring does an all-gather. Dims has the
// one element k. Without Dims, k is the square root of p, rounded up. With m = ⌈p/k⌉ groups:
//
//	steps            2·k + 2·(m − 1) messages in a row (the term 2·k is 3 if k = 2, and
//	                 0 if k = 1)
//	sent by rank r   (2 − 1/k)·n elements; only n by the last rank of a group;
//	                 (3·(k−1)/k + 2·(m−1)/m)·n by a master
//	scratch          none
//	order            different for every chunk, as in a ring (rank order and
//	                 canonical for p ≤ 2 only)
//
// Use it for a slow network between hosts that have k ranks each: only masters send over that
// network, and each master sends 2·n·(m−1)/m elements. If every rank has a link to other
// groups, a torus is better, since each link then carries only 1/k of these elements.
//
// Reference: Jia et al., "Highly Scalable Deep Learning Training System with Mixed-Precision:
// Training ImageNet in Four Minutes" (2018). In the reference, the parts travel around the ring
// to the master. This implementation sends them to the master directly, in one step, and the
// ring of its all-gather has no link to the master, which already has all parts.
func hierarchical() *Algorithm {
	return &Algorithm{
		Name: "hierarchical", Collective: program.AllReduce,
		TakesDims: true,
		Summary:   "rings within groups and a ring of their masters: slow links between hosts",
		Canonical: atMostTwo, RankOrder: atMostTwo,
		Check:    checkHierarchical,
		Generate: generateHierarchical, Cost: hierarchicalCost,
	}
}

func checkHierarchical(pr Params) error {
	if pr.Dims != nil && (len(pr.Dims) != 1 || pr.Dims[0] < 1 || pr.Dims[0] > pr.P) {
		return fmt.Errorf("dimensions %v: want one, the size of a group, from 1 to %d", pr.Dims, pr.P)
	}
	return nil
}

// groups is an arrangement of p ranks in groups.
type groups struct {
	p, size, count int
	chunks         int // a multiple of size and of count, so that the parts of members and of masters are even
}

func groupsOf(pr Params) groups {
	g := groups{p: pr.P, size: 1}
	if pr.Dims != nil {
		g.size = pr.Dims[0]
	} else {
		for g.size*g.size < g.p {
			g.size++
		}
	}
	g.count = (g.p + g.size - 1) / g.size
	a, b := g.size, g.count
	for b > 0 {
		a, b = b, a%b
	}
	g.chunks = g.size / a * g.count
	return g
}

// generateHierarchical makes the program of rank in time O(k + m). Messages to and from the
// master outside the rings use channel 1.
func generateHierarchical(pr Params, rank int) *program.Program {
	g := groupsOf(pr)
	b := build(program.AllReduce, "hierarchical", pr, rank, g.chunks)
	b.claim(atMostTwo(pr.P), atMostTwo(pr.P))
	b.Dims = []int{g.size}
	if pr.P == 1 {
		return b.alone()
	}
	master := rank - rank%g.size
	size := min(g.size, g.p-master)
	in := ring{size: size, index: rank - master, part: func(i int) sharding.Range { return sharding.Split(g.chunks, size, i) }}
	from := program.Ref{Buffer: program.In}
	if size > 1 {
		in.lane = b.lane(master+(in.index+1)%size, master+(in.index+size-1)%size, 0)
		b.scatterRing(in, from)
		from = program.Ref{Buffer: program.Out}
	}
	part := func(i int) program.Ref { return spanOf(program.Out, 0, in.part(i)) }
	deal := func(i int) int { return b.lane(master+i, master+i, 1) }
	if rank == master {
		for i := 1; i < size; i++ {
			b.recv(deal(i), part(i))
		}
		b.amongMasters(g, from)
		for i := 1; i < size; i++ {
			b.send(deal(i), part(i))
		}
	} else {
		b.send(deal(0), part(in.index))
		b.recv(deal(0), part(in.index))
	}
	if size > 1 {
		b.gatherOpen(in)
	}
	return b.finish()
}

// amongMasters adds the AllReduce in the ring of masters. Its input is at from.
func (b *builder) amongMasters(g groups, from program.Ref) {
	if g.count == 1 {
		return
	}
	at := b.Rank / g.size
	master := func(i int) int { return (i + g.count) % g.count * g.size }
	r := ring{size: g.count, index: at, lane: b.lane(master(at+1), master(at-1), 0),
		part: func(i int) sharding.Range { return sharding.Split(g.chunks, g.count, i) }}
	b.scatterRing(r, from)
	b.gatherRing(r)
}

// gatherOpen is gatherRing without the link to member 0, which already has all parts.
func (b *builder) gatherOpen(r ring) {
	part := func(places int) program.Ref { return spanOf(program.Out, 0, r.back(places)) }
	switch r.index {
	case 0:
		for places := range r.size - 1 {
			b.send(r.lane, part(places))
		}
	case r.size - 1:
		for places := 1; places < r.size; places++ {
			b.recv(r.lane, part(places))
		}
	default:
		b.gatherRing(r)
	}
}

// hierarchicalCost returns the cost of the hierarchical AllReduce. Every rank sends all parts
// except its own around the group's ring. A rank that is not a master then sends its part to
// the master. In the all-gather it sends all parts except the part of the next rank; the last
// rank of the group sends nothing in the all-gather. The master instead distributes all parts
// except its own, and sends all parts except the part of the next rank in the all-gather. In
// each of the two passes of the ring of masters, it sends all parts except one.
func hierarchicalCost(pr Params) program.Cost {
	g := groupsOf(pr)
	steps := 2 * (g.count - 1)
	switch {
	case g.size > 2:
		steps += 2 * g.size
	case g.size == 2:
		steps += 3 // with two ranks, the second rank passes no part on
	}
	return program.Cost{Steps: steps, Sent: func(rank int, l program.Layout) int {
		n := l.Out[g.chunks]
		without := func(of, i int) int { return n - length(l, sharding.Split(g.chunks, of, i%of)) }
		master := rank - rank%g.size
		size, at := min(g.size, g.p-master), rank-master
		sent := 0
		if size > 1 {
			sent = without(size, at)
			if at > 0 {
				sent += n - without(size, at)
			} else {
				sent += without(size, 0)
			}
			if at < size-1 {
				sent += without(size, at+1)
			}
		}
		if at == 0 && g.count > 1 {
			sent += without(g.count, rank/g.size) + without(g.count, rank/g.size+1)
		}
		return sent
	}}
}
