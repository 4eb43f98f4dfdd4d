package kmeans

import (
	"cmp"
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// grouping divides centres into groups whose sizes differ by at most one. The centres of a
// group are near each other, so that they can often be skipped together and move in a similar
// way. To make groups, the centres are divided into two halves by their positions along the
// line through two centres that are far apart. Each half is then divided in the same way, until
// there are as many parts as groups. The division into groups affects only speed.
type grouping[T kernel.Float] struct {
	d      int
	groups int
	of     []int32 // the group of each centre
	member []int32 // the centres, ordered by group and then by number
	sides  []side
}

// side is a centre, and the difference between its squared distances to two other centres.
type side struct {
	much   float64
	center int32
}

func (s side) compare(o side) int {
	return cmp.Or(cmp.Compare(s.much, o.much), cmp.Compare(s.center, o.center))
}

func newGrouping[T kernel.Float](k, d, groups int) grouping[T] {
	return grouping[T]{d: d, groups: groups, of: make([]int32, k), member: make([]int32, k), sides: make([]side, k)}
}

// span returns the range [from, to) of indices in member that has the centres of the groups
// [lo, hi).
func (g *grouping[T]) span(lo, hi int) (from, to int) {
	k := len(g.member)
	return lo * k / g.groups, hi * k / g.groups
}

// divide makes new groups for the given centres.
func (g *grouping[T]) divide(centers []T) {
	for a := range g.member {
		g.member[a] = int32(a)
	}
	g.cut(centers, 0, g.groups)
	for i := range g.groups {
		from, to := g.span(i, i+1)
		slices.Sort(g.member[from:to])
		for _, a := range g.member[from:to] {
			g.of[a] = int32(i)
		}
	}
}

// cut reorders the centres of the groups [lo, hi) in member, so that the centres of each group
// are adjacent.
func (g *grouping[T]) cut(centers []T, lo, hi int) {
	if hi-lo < 2 {
		return
	}
	from, to := g.span(lo, hi)
	own := g.member[from:to]
	one := g.farthest(centers, own, own[0])
	two := g.farthest(centers, own, one)
	sides := g.sides[:len(own)]
	for i, a := range own {
		sides[i] = side{g.distance(centers, a, one) - g.distance(centers, a, two), a}
	}
	slices.SortFunc(sides, side.compare)
	for i, s := range sides {
		own[i] = s.center
	}
	mid := (lo + hi) / 2
	g.cut(centers, lo, mid)
	g.cut(centers, mid, hi)
}

// farthest returns the number of the centre in own that is farthest from the centre whose
// number is the parameter from.
func (g *grouping[T]) farthest(centers []T, own []int32, from int32) int32 {
	at, most := from, -1.0
	for _, a := range own {
		if v := g.distance(centers, a, from); v > most {
			at, most = a, v
		}
	}
	return at
}

func (g *grouping[T]) distance(centers []T, a, b int32) float64 {
	x, y := centers[int(a)*g.d:int(a+1)*g.d], centers[int(b)*g.d:int(b+1)*g.d]
	return float64(squared(x, y))
}

// squared returns the squared distance of x and y, computed in the type T. For float64 the
// result has the same bits as the result of kernel.SquaredDistance.
func squared[T kernel.Float](x, y []T) T {
	y = y[:len(x)]
	var sum T
	for j, v := range x {
		t := v - y[j]
		sum += T(t * t)
	}
	return sum
}
