package comqueue

import "github.com/superstep-ml/superstep/shared/sharding"

// rounds computes the seed of a queue's draws. It differs by queue and, within inner loops, by
// round, so that neither another queue nor another round of a superstep draws the same numbers.
type rounds struct {
	queue uint64
	loops []int // the round of each inner loop in the order of the stages, 0 outside of it
}

// open takes the job's seed. No two queues of a job have the same name.
func (r *rounds) open(seed uint64, queue string) {
	draws := sharding.NewRandom(seed, "queue "+queue, -1, 0)
	r.queue = draws.At(0)
}

// loop adds an inner loop, and returns the function to call at each of its rounds.
func (r *rounds) loop() func(round int) {
	i := len(r.loops)
	r.loops = append(r.loops, 0)
	return func(round int) { r.loops[i] = round }
}

// seed returns the current seed of draws.
func (r *rounds) seed() uint64 {
	seed := r.queue
	for i, round := range r.loops {
		if round > 0 {
			seed = sharding.NewRandom(seed, "round of an inner loop", i, round).At(0)
		}
	}
	return seed
}
