package check

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/collective/program"
)

// terms interns expressions, so that equal numbers mean equal trees.
type terms struct {
	nodes []term
	known map[term]int
}

// term is a leaf (left < 0: the contribution of rank −1−left to chunk right) or
// the operator applied to two terms.
type term struct{ left, right int }

func (t *terms) init() { t.known = map[term]int{} }

func (t *terms) intern(x term) int {
	if id, ok := t.known[x]; ok {
		return id
	}
	t.nodes = append(t.nodes, x)
	t.known[x] = len(t.nodes) - 1
	return len(t.nodes) - 1
}

func (t *terms) leaf(rank, chunk int) int { return t.intern(term{-1 - rank, chunk}) }

func (t *terms) join(a, b int) int { return t.intern(term{a, b}) }

// text writes a term as nested pairs of ranks.
func (t *terms) text(id int) string {
	x := t.nodes[id]
	if x.left < 0 {
		return fmt.Sprintf("%d[%d]", -1-x.left, x.right)
	}
	return "(" + t.text(x.left) + " " + t.text(x.right) + ")"
}

// onceEach checks that a term has the contribution of each of p ranks to the
// chunk exactly once, and nothing else.
func (t *terms) onceEach(id, p, chunk int) error {
	count := make([]int, p)
	var foreign []string
	var walk func(id, budget int) int
	walk = func(id, budget int) int {
		if budget <= 0 {
			return 0
		}
		x := t.nodes[id]
		if x.left >= 0 {
			return walk(x.right, walk(x.left, budget))
		}
		if x.right != chunk {
			foreign = append(foreign, t.text(id))
		}
		count[-1-x.left]++
		return budget - 1
	}
	walk(id, 2*p+2) // more leaves than that are wrong in any case
	var b strings.Builder
	for r, n := range count {
		if n != 1 {
			fmt.Fprintf(&b, " rank %d counts %d times;", r, n)
		}
	}
	for _, f := range foreign {
		fmt.Fprintf(&b, " %s is of another chunk;", f)
	}
	if b.Len() > 0 {
		return fmt.Errorf("wrong contributions:%s", strings.TrimSuffix(b.String(), ";"))
	}
	return nil
}

// read returns what the cells of a reference hold, and notes the reading.
func (c *checker) read(h *half, r program.Ref) ([]int, error) {
	k := &c.ranks[h.rank]
	values := make([]int, 0, r.Chunks.Len())
	for i := r.Chunks.Lo; i < r.Chunks.Hi; i++ {
		x := k.cells[cell{r.Buffer, r.Slot, i}]
		if x == nil || !x.defined {
			return nil, fmt.Errorf("%s reads %s, which is not written yet", h.where(), program.Chunk(r.Buffer, r.Slot, i))
		}
		if w := x.written; w != nil && !w.before(h.clock) {
			return nil, fmt.Errorf("race: %s reads %s, which lane %d step %d writes", h.where(), program.Chunk(r.Buffer, r.Slot, i), w.lane, w.step)
		}
		x.reads = append(x.reads, h.access())
		if alias := k.alias(r, i); alias != nil && alias.written != nil && r.Buffer == program.In {
			return nil, fmt.Errorf("%s reads %s after out[%d] was written, which may be the same memory", h.where(), program.Chunk(r.Buffer, r.Slot, i), i)
		}
		values = append(values, x.term)
	}
	return values, nil
}

// write changes the cells of a reference.
func (c *checker) write(h *half, r program.Ref, values []int) error {
	k := &c.ranks[h.rank]
	for n, i := 0, r.Chunks.Lo; i < r.Chunks.Hi; n, i = n+1, i+1 {
		x := k.cells[cell{r.Buffer, r.Slot, i}]
		if x == nil {
			x = &content{}
			k.cells[cell{r.Buffer, r.Slot, i}] = x
		}
		if w := x.written; w != nil && !w.before(h.clock) {
			return fmt.Errorf("race: %s writes %s, which lane %d step %d writes too", h.where(), program.Chunk(r.Buffer, r.Slot, i), w.lane, w.step)
		}
		reads := x.reads
		if alias := k.alias(r, i); alias != nil {
			reads = append(reads[:len(reads):len(reads)], alias.reads...)
		}
		now := h.access()
		for _, a := range reads {
			if a != now && !a.before(h.clock) {
				return fmt.Errorf("race: %s writes %s, which lane %d step %d reads (or reads as input, which may be the same memory)",
					h.where(), program.Chunk(r.Buffer, r.Slot, i), a.lane, a.step)
			}
		}
		x.term, x.defined, x.written, x.reads = values[n], true, &now, x.reads[:0]
	}
	return nil
}

// alias is the cell that may share memory with a chunk of input or output.
func (k *checkedRank) alias(r program.Ref, chunk int) *content {
	switch r.Buffer {
	case program.In:
		return k.cells[cell{program.Out, 0, chunk}]
	case program.Out:
		return k.cells[cell{program.In, 0, chunk}]
	default:
		return nil
	}
}

func (h *half) access() access {
	return access{half: h.index, pos: h.pos, lane: h.lane, step: h.steps[h.pos]}
}
