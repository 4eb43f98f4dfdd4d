package task

import (
	"slices"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// AheadOf says that a process needs shards of a queue, which a worker of this run has.
type AheadOf struct {
	Queue  string
	From   int // worker of this run
	Shards []int
}

// AheadFor returns the shards of queues that a process needs if the next run of the plan's graph has so many
// slots, of which the process has a range, and that other workers of this run have. worker is the number of the
// process in this run. Queues whose number of subtasks is the number of slots get another number. The result is in
// the order of the plan's queues and of the workers.
func (p *Part) AheadFor(pl *plan.Plan, slots int, worker int, have sharding.Range) (all []AheadOf) {
	hosts := p.hosts()
	for i := range pl.Queues {
		_, v := queueInputs(pl, pl.Queues[i].Name)
		if v == nil {
			continue
		}
		next := v.Parallelism
		if next == max(pl.Slots, 1) && !single(pl, v) {
			next = min(slots, pl.Shards)
		}
		from := make(map[int][]int)
		for t := have.Lo; t < min(have.Hi, next); t++ {
			owned := sharding.Split(pl.Shards, next, t)
			for shard := owned.Lo; shard < owned.Hi; shard++ {
				if w := hosts[sharding.Owner(pl.Shards, v.Parallelism, shard)]; w != worker {
					from[w] = append(from[w], shard)
				}
			}
		}
		for w := range p.Slots {
			if len(from[w]) > 0 {
				all = append(all, AheadOf{pl.Queues[i].Name, w, slices.Clip(from[w])})
			}
		}
	}
	return all
}
