package comqueue

import "github.com/superstep-ml/superstep/shared/sharding"

// rounds computes the seed of a queue's random numbers. The seed depends on the queue and,
// within inner loops, on the round, so that different queues, and different rounds of a
// superstep, draw different numbers.
type rounds struct {
	queue uint64
	loops []int // current round of each inner loop in the order of the stages; 0 outside of the loop
}

// open computes the queue's seed from the job's seed and the queue's name, which is unique in
// the job.
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

// seed returns the seed for the current rounds.
func (r *rounds) seed() uint64 {
	seed := r.queue
	for i, round := range r.loops {
		if round > 0 {
			seed = sharding.NewRandom(seed, "round of an inner loop", i, round).At(0)
		}
	}
	return seed
}
