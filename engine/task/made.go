package task

import (
	"maps"
	"slices"

	"github.com/superstep-ml/superstep/engine/plan"
)

// madeShard is what an operator has counted and accumulated for a shard.
type madeShard struct {
	RowsIn   int64              `msgpack:"i,omitempty"`
	RowsOut  int64              `msgpack:"o,omitempty"`
	Counters map[string]int64   `msgpack:"c,omitempty"`
	Sums     map[string]float64 `msgpack:"s,omitempty"`
}

// madeShards are shards that operators have made.
type madeShards map[plan.NodeID]map[int]madeShard

func (all madeShards) put(node plan.NodeID, shard int, made madeShard) {
	if all[node] == nil {
		all[node] = make(map[int]madeShard)
	}
	all[node][shard] = made
}

// madeBefore is what operators have made in earlier runs.
type madeBefore struct {
	p    *plan.Plan
	held []holding
	// first has, by operator and then by shard, the first worker that has made it, or -1; counted has the
	// first worker that has said what it has counted for it.
	first, counted map[plan.NodeID][]int
}

// newMadeBefore finds out what workers have made, of which the first running ones run subtasks. The others
// report nothing.
func newMadeBefore(p *plan.Plan, held []holding, running int) *madeBefore {
	b := &madeBefore{p: p, held: held, first: make(map[plan.NodeID][]int), counted: make(map[plan.NodeID][]int)}
	note := func(in map[plan.NodeID][]int, node plan.NodeID, shard, worker int) {
		if in[node] == nil {
			in[node] = slices.Repeat([]int{-1}, p.Shards)
		}
		if in[node][shard] < 0 {
			in[node][shard] = worker
		}
	}
	for i := range held {
		for _, n := range held[i].Made {
			for _, shards := range n.Shards {
				for shard := shards.Lo; shard < shards.Hi; shard++ {
					if i < running || n.Counts != nil {
						note(b.first, n.Node, shard, i)
					}
					if n.Counts != nil {
						note(b.counted, n.Node, shard, i)
					}
				}
			}
		}
	}
	return b
}

// has reports whether a worker knows what an operator has counted for a shard.
func (b *madeBefore) has(node plan.NodeID, shard int) bool {
	return b.first[node] != nil && b.first[node][shard] >= 0
}

// reporter returns the worker that reports what an operator has counted for a shard that is not made again:
// owner, the worker with the shard's subtask, if it is known to all workers, and otherwise the first that
// has made it. It returns -1 if no worker has.
func (b *madeBefore) reporter(node plan.NodeID, shard, owner int) int {
	switch {
	case !b.has(node, shard):
		return -1
	case b.counted[node] != nil && b.counted[node][shard] >= 0:
		return owner
	}
	return b.first[node][shard]
}

// counts returns what a worker has said that an operator has counted for a shard, if one has.
func (b *madeBefore) counts(node plan.NodeID, shard int) (made madeShard, ok bool) {
	if b.counted[node] == nil || b.counted[node][shard] < 0 {
		return made, false
	}
	for _, n := range b.held[b.counted[node][shard]].Made {
		if n.Node != node {
			continue
		}
		at := 0
		for _, shards := range n.Shards {
			if shards.Contains(shard) {
				return n.Counts[at+shard-shards.Lo], true
			}
			at += shards.Len()
		}
	}
	return made, false
}

// report chooses what the run reports of what earlier runs have made: the shards of operators that it does
// not make again, if this worker is the one that reports them. What other workers have counted for them is
// kept from then on. hosts has the worker of each subtask index.
func (k *Retained) report(p *plan.Plan, toMake [][]bool, before *madeBefore, hosts []int, worker int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep = make(madeShards)
	for i := range p.Vertices {
		v := &p.Vertices[i]
		for _, c := range v.Chain {
			for t, owned := range v.Ranges {
				for shard := owned.Lo; shard < owned.Hi; shard++ {
					if !toMake[i][shard] && before.reporter(c.Node, shard, hosts[t]) == worker {
						k.reportShard(c.Node, shard, before)
					}
				}
			}
		}
	}
}

// reportShard makes the run report a shard of an operator. mu is held.
func (k *Retained) reportShard(node plan.NodeID, shard int, before *madeBefore) {
	made, own := k.made[node][shard]
	if !own {
		made, _ = before.counts(node, shard)
	}
	k.made.put(node, shard, made)
	k.keep.put(node, shard, made)
}

// holdMade keeps what operators have counted for the shards that they have made. mu is held.
func (k *Retained) holdMade(r *run) {
	for _, t := range r.subtasks {
		k.noteMade(t)
	}
}

// noteMade keeps what the operators of a subtask have counted. mu is held.
func (k *Retained) noteMade(t *subtask) {
	for _, m := range t.marks {
		for i, l := range t.links {
			made := m.links[i]
			made.Sums = sumsOf(l.context.sums, m.shard)
			k.made.put(l.node.ID, m.shard, made)
		}
	}
}

// sumsOf returns the sums of a shard by name.
func sumsOf(all map[string]*shardSums, shard int) map[string]float64 {
	sums := make(map[string]float64)
	for name, s := range all {
		if at := shard - s.within.Lo; s.present[at] {
			sums[name] = s.sums[at]
		}
	}
	return sums
}

// markShard notes what the operators of the chain have counted for a shard that they have made, if
// the process may keep it.
func (t *subtask) markShard(shard int) {
	if t.run.env.Retained == nil || t.vertex.Queue != "" {
		return
	}
	mark := shardMark{shard: shard, links: make([]madeShard, len(t.links))}
	if t.counted == nil {
		t.counted = make([]madeShard, len(t.links))
	}
	for i, l := range t.links {
		before := &t.counted[i]
		m := madeShard{RowsIn: l.rowsIn - before.RowsIn, RowsOut: l.rowsOut - before.RowsOut}
		for name, n := range l.context.counters {
			if added := n - before.Counters[name]; added != 0 {
				if m.Counters == nil {
					m.Counters = make(map[string]int64)
				}
				m.Counters[name] = added
			}
		}
		*before = madeShard{RowsIn: l.rowsIn, RowsOut: l.rowsOut, Counters: maps.Clone(l.context.counters)}
		mark.links[i] = m
	}
	t.marks = append(t.marks, mark)
}

// shardMark is what the operators of a chain have counted for a shard, in chain order.
type shardMark struct {
	shard int
	links []madeShard
}

// reportInto adds the counts of shards that earlier runs have made to the first subtask of their
// vertex in this process, if there is one.
func (k *Retained) reportInto(r *run, rows [][]SubtaskReport) {
	if k == nil {
		return
	}
	for i := range r.plan.Vertices {
		v := &r.plan.Vertices[i]
		if len(rows[i]) == 0 {
			continue
		}
		to := &rows[i][0]
		for at, c := range v.Chain {
			sum := SubtaskReport{Operators: make([]OperatorReport, len(v.Chain))}
			own := &sum.Operators[at]
			for _, m := range k.keep[c.Node] {
				own.RowsIn, own.RowsOut = own.RowsIn+m.RowsIn, own.RowsOut+m.RowsOut
				for name, n := range m.Counters {
					own.Counters = append(own.Counters, Counter{Name: name, Value: n})
				}
			}
			sum.RowsOut = own.RowsOut * int64(len(r.receivers.out[c.Node]))
			if at == 0 {
				sum.RowsIn = own.RowsIn
			}
			to.add(sum)
		}
	}
}

// sums returns what operators have accumulated for shards that earlier runs have made.
func (k *Retained) sums() (parts []sumPart) {
	if k == nil {
		return nil
	}
	for _, node := range slices.Sorted(maps.Keys(k.keep)) {
		byName := make(map[string]*sumPart)
		for _, shard := range slices.Sorted(maps.Keys(k.keep[node])) {
			for name, v := range k.keep[node][shard].Sums {
				if byName[name] == nil {
					byName[name] = &sumPart{Node: node, Name: name}
				}
				byName[name].Shards, byName[name].Values = append(byName[name].Shards, shard), append(byName[name].Values, v)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			parts = append(parts, *byName[name])
		}
	}
	return parts
}
