package check

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// terms interns expressions, so that trees are equal if and only if their ids are equal. The id
// of a term is its index in nodes.
type terms struct {
	nodes     []term
	known     map[term]int
	schedules map[int][]sharding.FoldStep // number of operands -> RankSchedule
}

// term is a leaf or the operator applied to the two terms with the ids left and right. It is a
// leaf if left < 0: the contribution of source −1−left to chunk right.
type term struct{ left, right int }

func (t *terms) init() {
	t.known = map[term]int{}
	t.schedules = map[int][]sharding.FoldStep{}
}

func (t *terms) intern(x term) int {
	if id, ok := t.known[x]; ok {
		return id
	}
	t.nodes = append(t.nodes, x)
	t.known[x] = len(t.nodes) - 1
	return len(t.nodes) - 1
}

func (t *terms) leaf(source, chunk int) int { return t.intern(term{-1 - source, chunk}) }

func (t *terms) join(a, b int) int { return t.intern(term{a, b}) }

// fold returns the id of the term that folds the leaves of sources 0..m−1 in the order of
// steps, or -1 if that term does not exist.
func (t *terms) fold(m, chunk int, steps []sharding.FoldStep) int {
	value := make([]int, m)
	for s := range value {
		value[s] = t.leaf(s, chunk)
	}
	for _, s := range steps {
		id, ok := t.known[term{value[s.Left], value[s.Right]}]
		if !ok {
			return -1
		}
		value[s.Left] = id
	}
	return value[0]
}

// rankSchedule returns the steps of the canonical fold of m operands.
func (t *terms) rankSchedule(m int) []sharding.FoldStep {
	steps, ok := t.schedules[m]
	if !ok {
		steps = sharding.RankSchedule(m, nil)
		t.schedules[m] = steps
	}
	return steps
}

// leaves calls f with the leaves of a term from left to right, until it returns
// false.
func (t *terms) leaves(id int, f func(source, chunk int) bool) {
	stack := []int{id}
	for len(stack) > 0 {
		x := t.nodes[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		if x.left < 0 {
			if !f(-1-x.left, x.right) {
				return
			}
			continue
		}
		stack = append(stack, x.right, x.left)
	}
}

// text returns a term as nested pairs of leaves, shortened if it is long.
func (c *checker) text(id int) string {
	const maxLeaves = 400
	var b strings.Builder
	var write func(id int)
	write = func(id int) {
		x := c.terms.nodes[id]
		switch {
		case b.Len() > maxLeaves:
		case x.left < 0:
			fmt.Fprintf(&b, "%s[%d]", c.sources[-1-x.left], x.right)
		default:
			b.WriteByte('(')
			write(x.left)
			b.WriteByte(' ')
			write(x.right)
			b.WriteByte(')')
		}
	}
	write(id)
	if b.Len() > maxLeaves {
		return b.String()[:maxLeaves] + "…"
	}
	return b.String()
}
