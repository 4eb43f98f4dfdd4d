package simulation

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/internal/wire"
)

// executable is the hash of the executable of all jobs and task managers.
const executable = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// userMessage is the error of user code.
const userMessage = "row 17 is not a number"

// work is a job: what its client submits, what it computes, and where it writes.
type work struct {
	name      string
	spec      wire.JobSpec
	shards    int
	queues    []*queue
	overlaps  bool
	resolves  bool // a worker must resolve its graph
	userError *userError
	store     *store
	places    map[string]*store // of savepoints
	sinks     *sinks

	id        jobID // once it is accepted
	final     *wire.JobInfo
	ends      map[jobID]wire.JobInfo // of submissions that are not accepted yet
	lockedOut bool                   // a commit could not get the lock
	moved     bool                   // an attempt was ended so that the job goes on with other slots
	cancelled bool                   // its client has asked for that
	crashes   int                    // of its workers

	survives map[string]int // queue -> superstep after which it must continue, after the only fault

	steps   map[string][]queueState // undisturbed, by superstep; index 0 is before the first
	origins map[int]map[string]int  // attempt -> queue -> superstep from which it continues
}

// userError is an error of user code, which comes whenever a shard comes to a superstep.
type userError struct {
	queue string
	step  int
	shard int
	exits bool // the process ends in place of an error
}

// message is a part of the failure of the job.
func (u *userError) message() string {
	if u.exits {
		return "user code ended the process (os.Exit) with code 2"
	}
	return userMessage
}

func (k *work) hasQueue(name string) bool {
	return slices.ContainsFunc(k.queues, func(q *queue) bool { return q.name == name })
}

// run identifies the job in its checkpoints.
func (k *work) run() checkpoint.Run {
	return checkpoint.Run{Job: k.name, Program: executable, Shards: k.shards, Seed: 1, Graph: "f"}
}

// savepoint returns the place of a savepoint.
func (k *work) savepoint(place string) *store {
	if k.places[place] == nil {
		k.places[place] = k.store.w.newStore(k.store.name + " " + place)
	}
	return k.places[place]
}

// compute computes the undisturbed run.
func (k *work) compute() {
	k.steps = make(map[string][]queueState)
	input := uint64(0)
	for _, q := range k.queues {
		s := q.begin(input, 0, k.shards)
		all := []queueState{s.copy()}
		for step := 1; step <= q.max; step++ {
			sum := uint64(0)
			if q.talks(step) {
				sum = fold(s.contributions(step))
			}
			s.advance(step, sum)
			all = append(all, s.copy())
			if q.stopAt > 0 && step >= q.stopAt {
				break
			}
		}
		k.steps[q.name], input = all, s.replicated
	}
}

func (s *queueState) copy() queueState {
	c := *s
	c.shards = slices.Clone(s.shards)
	return c
}

// wants returns the outputs of the undisturbed run.
func (k *work) wants() []uint64 {
	all := k.steps[k.queues[len(k.queues)-1].name]
	last := all[len(all)-1]
	return append(slices.Clone(last.shards), last.replicated)
}

// checkState requires that a state is that of the undisturbed run.
func (w *world) checkState(k *worker, q *queue, s *queueState, when string) {
	all := k.job.steps[q.name]
	if s.step >= len(all) {
		w.violated("worker %s did superstep %d of queue %s, which has %d", k.name(), s.step, q.name, len(all)-1)
		return
	}
	want := all[s.step]
	if s.replicated != want.replicated || !slices.Equal(s.shards, want.shards[s.lo:s.lo+len(s.shards)]) {
		w.violated("worker %s: the state of queue %s after superstep %d differs from that of the undisturbed run %s", k.name(), q.name, s.step, when)
	}
}

// checkOrigin requires that all workers of an attempt continue their queues from the same supersteps.
func (w *world) checkOrigin(k *worker) {
	mine := make(map[string]int)
	for queue, cut := range k.from {
		mine[queue] = cut.Step
	}
	w.say("worker %s continues from %v", k.name(), mine)
	w.markOrigin(k)
	if len(w.incidents) == 1 && k.d.Attempt > 1 && !k.job.moved {
		for queue, step := range k.job.survives {
			w.marks["a queue must continue from copies"]++
			if mine[queue] < step {
				w.violated("worker %s continues queue %s after superstep %d, and the one worker that was lost leaves copies of the state after %d", k.name(), queue, mine[queue], step)
			}
		}
	}
	first, known := k.job.origins[k.d.Attempt]
	if !known {
		k.job.origins[k.d.Attempt] = mine
		return
	}
	for _, q := range k.job.queues {
		if first[q.name] != mine[q.name] {
			w.violated("worker %s continues queue %s after superstep %d, and another worker of the attempt after %d", k.name(), q.name, mine[q.name], first[q.name])
		}
	}
}

// markOrigin counts from where attempts continue.
func (w *world) markOrigin(k *worker) {
	if k.d.Worker != 0 || k.origin == nil {
		return
	}
	for _, q := range k.origin.Queues {
		from := "a checkpoint"
		if q.InMemory {
			from = "memory"
		}
		if q.Ended {
			from += ", ended"
		}
		w.marks["continues from "+from]++
		if cut := k.from[q.Name]; cut != nil && cut.Subtasks() != k.d.Spec.Parallelism {
			w.marks["continues at another parallelism"]++
		}
	}
}

func (k *work) String() string { return fmt.Sprintf("%s (%s)", k.name, k.id) }
