package collective

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// combiner folds buffers into the nodes that this rank or process must give to a program as
// input. It keeps the plans of its latest call, since the next call usually has the same nodes.
type combiner struct {
	entries []sharding.Node
	targets []sharding.Node
	parts   []combinePart
	scratch [][]byte
	leaves  [][]byte
	out     [][]byte
}

// combinePart has the indices of the entries that are folded into one target node, and the plan
// for folding them.
type combinePart struct {
	leaves []int
	plan   *program.FoldPlan
}

// prepare makes the plans for entries that lie within targets. The entries are disjoint nodes.
// The targets are disjoint nodes in ascending order of shards.
func (b *combiner) prepare(entries, targets []sharding.Node) error {
	if b.parts != nil && slices.Equal(b.entries, entries) && slices.Equal(b.targets, targets) {
		return nil
	}
	parts := make([]combinePart, len(targets))
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return entries[i].Range().Lo - entries[j].Range().Lo })
	for k, i := range order {
		if k > 0 && entries[order[k-1]].Range().Hi > entries[i].Range().Lo {
			return fmt.Errorf("nodes %v and %v overlap", entries[order[k-1]], entries[i])
		}
		t := slices.IndexFunc(targets, func(t sharding.Node) bool { return t.Contains(entries[i]) })
		if t < 0 {
			return fmt.Errorf("node %v (shards %v) is not of the shards that this rank owns: %v", entries[i], entries[i].Range(), targets)
		}
		parts[t].leaves = append(parts[t].leaves, i)
	}
	for t := range parts {
		nodes := make([]sharding.Node, len(parts[t].leaves))
		for k, i := range parts[t].leaves {
			nodes[k] = entries[i]
		}
		steps, err := sharding.FoldSchedule(nodes, nil)
		if err != nil {
			return err
		}
		if parts[t].plan, err = program.CompileFold(len(nodes), steps); err != nil {
			return err
		}
	}
	b.entries, b.targets, b.parts = slices.Clone(entries), slices.Clone(targets), parts
	return nil
}

// combine returns a buffer of size bytes for each target. The buffer is nil if no entry lies
// within the target. If exactly one entry lies within the target, the buffer is the buffer of
// that entry. If several do, it is the fold of these entries. If the buffer of a single entry
// is the memory of out, it is copied, except for the first target: only the first input of a
// program may be the memory of its output. elem is the number of bytes of an element. The
// result is valid until the next call.
func (b *combiner) combine(values [][]byte, out []byte, size, elem int, arith arithmetic) [][]byte {
	b.out = b.out[:0]
	for t := range b.parts {
		p := &b.parts[t]
		switch {
		case len(p.leaves) == 0:
			b.out = append(b.out, nil)
			continue
		case len(p.leaves) == 1:
			v := values[p.leaves[0]]
			if v == nil {
				v = noBytes
			}
			if t == 0 || !overlap(v, out) {
				b.out = append(b.out, v)
				continue
			}
		}
		dst := b.room(t, size)
		b.leaves = b.leaves[:0]
		for _, i := range p.leaves {
			b.leaves = append(b.leaves, values[i])
		}
		arith.foldLeaves(p.plan, b.leaves, dst, 0, size/elem)
		clear(b.leaves)
		b.out = append(b.out, dst)
	}
	return b.out
}

// room returns size bytes of scratch memory for a target, aligned for elements of any type.
func (b *combiner) room(target, size int) []byte {
	for len(b.scratch) <= target {
		b.scratch = append(b.scratch, nil)
	}
	if cap(b.scratch[target]) < size {
		b.scratch[target] = bytesOf(make([]int64, (size+7)/8))
	}
	if size == 0 {
		return noBytes
	}
	return b.scratch[target][:size]
}
