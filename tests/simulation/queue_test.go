package simulation

import (
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// queue is an iterative computation of a job. Its state is a number for each shard, and one that is
// replicated. A superstep that communicates makes each of them depend on all shards, in their order; the
// other supersteps make each depend on itself.
type queue struct {
	name        string
	max         int           // largest number of supersteps
	stopAt      int           // superstep after which the criterion stops the queue; 0 if there is none
	communicate int           // every how many supersteps shards are combined
	compute     time.Duration // about how long a superstep takes
}

// queueState is the state of a queue in one worker, after a superstep.
type queueState struct {
	step       int
	done       bool
	replicated uint64
	lo         int
	shards     []uint64 // of the worker, the first of which is lo
}

func mix(values ...uint64) uint64 {
	h := uint64(14695981039346656037)
	for _, v := range values {
		h ^= v
		h *= 0x9e3779b97f4a7c15
		h ^= h >> 29
		h *= 0xbf58476d1ce4e5b9
		h ^= h >> 32
	}
	return h
}

// begin returns the state before the first superstep. input is the result of the queue before.
func (q *queue) begin(input uint64, lo, hi int) *queueState {
	s := &queueState{replicated: mix(input, uint64(len(q.name))), lo: lo}
	for i := lo; i < hi; i++ {
		s.shards = append(s.shards, mix(input, uint64(i)))
	}
	return s
}

// talks reports whether a superstep communicates.
func (q *queue) talks(step int) bool { return step%q.communicate == 0 }

// contributions returns what each shard adds to a superstep.
func (s *queueState) contributions(step int) []uint64 {
	all := make([]uint64, len(s.shards))
	for i, v := range s.shards {
		all[i] = mix(v, uint64(step))
	}
	return all
}

// fold combines the contributions of all shards, in their order.
func fold(values []uint64) uint64 {
	h := uint64(1)
	for _, v := range values {
		h = mix(h, v)
	}
	return h
}

// advance does a superstep. sum is the combined contributions, or 0 if it does not communicate.
func (s *queueState) advance(step int, sum uint64) {
	s.step = step
	s.replicated = mix(s.replicated, sum, uint64(step))
	for i, v := range s.shards {
		s.shards[i] = mix(v, sum, uint64(step))
	}
}

// runQueue runs a queue from where it continues to its end.
func (k *worker) runQueue(f *fiber, q *queue, input uint64) (*queueState, error) {
	w, mine := k.c.w, k.d.Slots[k.d.Worker]
	p, shards := k.d.Spec.Parallelism, k.job.shards
	lo, hi := sharding.Split(shards, p, mine.Lo).Lo, sharding.Split(shards, p, mine.Hi-1).Hi
	s := q.begin(input, lo, hi)
	if cut := k.from[q.name]; cut != nil {
		if err := s.restore(cut); err != nil {
			return nil, clusterFault(fmt.Errorf("worker %s: queue %q: %w", k.name(), q.name, err))
		}
		w.checkState(k, q, s, "after it was restored")
	}
	b := task.Boundary{Several: k.sharing() > 1, Criterion: q.stopAt > 0, Saved: k.saver != nil || k.exchange != nil}
	for step := s.step + 1; !s.done; step++ {
		if err := k.superstep(f, q, s, step); err != nil {
			return nil, err
		}
		v, err := k.verdict(f, q, &b, step)
		if err != nil {
			return nil, err
		}
		s.done = v.Stop || step == q.max
		if s.done && b.Saved {
			v.Save = task.Durable | task.InMemory
		}
		if s.done {
			if err := k.barrier(f, q.name, step); err != nil {
				return nil, err
			}
		}
		if v.Save != 0 {
			k.saveState(q, s, v)
		}
	}
	return s, nil
}

// superstep does one superstep.
func (k *worker) superstep(f *fiber, q *queue, s *queueState, step int) error {
	w := k.c.w
	w.point("superstep", k.c)
	if err := f.sleep(w.between(q.compute/2, 3*q.compute/2)); err != nil {
		return err
	}
	if u := k.job.userError; u != nil && u.queue == q.name && u.step == step && s.lo <= u.shard && u.shard < s.lo+len(s.shards) {
		w.strike(k.job, incident{kind: userFails, worker: k.d.Worker, attempt: k.d.Attempt, host: k.c.machine.name})
		if u.exits {
			c := k.c
			w.after(0, func() { c.ends(exit{code: 2}) })
			return f.sleep(time.Minute)
		}
		return &failed{kind: wire.UserFailure, text: userMessage}
	}
	sum := uint64(0)
	if q.talks(step) {
		var err error
		if sum, err = k.allReduce(f, q, s, step); err != nil {
			return err
		}
	}
	s.advance(step, sum)
	w.checkState(k, q, s, "")
	return f.cause
}

// allReduce combines the contributions of all workers: worker 0 folds them.
func (k *worker) allReduce(f *fiber, q *queue, s *queueState, step int) (uint64, error) {
	mine := s.contributions(step)
	if k.sharing() == 1 {
		return fold(mine), nil
	}
	to, back := gangKey{contribution, q.name, step}, gangKey{combined, q.name, step}
	if k.d.Worker != 0 {
		k.tell(0, to, gangMessage{lo: s.lo, values: mine})
		all, err := k.await(f, back, 1)
		if err != nil {
			return 0, err
		}
		return uint64(all[0].word), nil
	}
	others, err := k.await(f, to, k.sharing()-1)
	if err != nil {
		return 0, err
	}
	values := make([]uint64, k.job.shards)
	copy(values[s.lo:], mine)
	for _, o := range others {
		copy(values[o.lo:], o.values)
	}
	sum := fold(values)
	k.tellAll(back, gangMessage{word: int64(sum)})
	return sum, nil
}

// verdict ends a superstep: worker 0 decides, and the others learn the verdict where they meet.
func (k *worker) verdict(f *fiber, q *queue, b *task.Boundary, step int) (v task.Verdict, err error) {
	v.Stop = q.stopAt > 0 && step >= q.stopAt && k.d.Worker == 0
	if !b.Meets(step, step == q.max) {
		return v, f.cause
	}
	key := gangKey{verdictWord, q.name, step}
	if k.d.Worker != 0 {
		all, err := k.await(f, key, 1)
		if err != nil {
			return v, err
		}
		v = task.VerdictOf(all[0].word)
		b.Agreed(step, v)
		return v, nil
	}
	if b.Saved {
		v.Decide(k.decide(q.name, step))
	}
	k.tellAll(key, gangMessage{word: v.Word()})
	v = task.VerdictOf(v.Word())
	b.Agreed(step, v)
	return v, nil
}

// decide says whether the state of a queue is saved after a superstep, as engine/queue_states.go does.
func (k *worker) decide(queue string, step int) (d task.Decision) {
	if k.exchange != nil {
		if !k.exchange.core.UnderWay(queue) && k.c.w.draw.IntN(4) > 0 {
			d.Purposes |= task.InMemory
		}
		d.Next = 1 + k.c.w.draw.IntN(3)
	}
	if k.saver != nil {
		if k.saver.due(queue, step) {
			d.Purposes |= task.Durable
		}
		if k.saver.steps > 0 {
			d.Next = 1
		}
	}
	return d
}

// saveState hands over the state of a queue after a superstep.
func (k *worker) saveState(q *queue, s *queueState, v task.Verdict) {
	mine := k.d.Slots[k.d.Worker]
	saved := &task.Saved{
		Cut:      task.Cut{Step: s.step, Last: s.done, Stopped: v.Stop},
		Purposes: v.Save, Here: sharding.Range{Lo: mine.Lo, Hi: mine.Hi}, Subtasks: k.d.Spec.Parallelism,
	}
	for t := mine.Lo; t < mine.Hi; t++ {
		part := task.CutPart{}
		if t == 0 {
			part.Objects = append(part.Objects, shared.Encoded{Name: "replicated", Kind: shared.KindReplicated, Shard: -1, Data: number(s.replicated)})
		}
		of := sharding.Split(k.job.shards, k.d.Spec.Parallelism, t)
		for i := of.Lo; i < of.Hi; i++ {
			part.Objects = append(part.Objects, shared.Encoded{Name: "shard", Kind: shared.KindPerShard, Shard: i, Data: number(s.shards[i-s.lo])})
		}
		saved.Parts = append(saved.Parts, part)
	}
	if k.exchange != nil && v.Save&task.InMemory != 0 {
		first, pieces := saved.Pieces()
		k.exchange.share(copies.State{Queue: q.name, Superstep: s.step, Ended: s.done, Of: 1 + saved.Subtasks}, first, collect(pieces))
	}
	if k.saver != nil && v.Save&task.Durable != 0 {
		k.saver.save(q.name, saved)
	}
}

func number(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// collect returns copies of pieces.
func collect(pieces iter.Seq2[[]byte, error]) (all [][]byte) {
	for p, err := range pieces {
		if err != nil {
			panic(err)
		}
		all = append(all, append([]byte{}, p...))
	}
	return all
}

// restore takes the state over from a cut, at any parallelism.
func (s *queueState) restore(cut *task.Cut) error {
	s.step, s.done = cut.Step, cut.Last
	found := make([]bool, len(s.shards))
	replicated := false
	for _, part := range cut.Parts {
		for _, o := range part.Objects {
			v := binary.LittleEndian.Uint64(o.Data)
			switch i := o.Shard - s.lo; {
			case o.Kind == shared.KindReplicated:
				s.replicated, replicated = v, true
			case i >= 0 && i < len(s.shards):
				s.shards[i], found[i] = v, true
			}
		}
	}
	for i, ok := range found {
		if !ok {
			return fmt.Errorf("the state after superstep %d lacks shard %d", cut.Step, s.lo+i)
		}
	}
	if !replicated {
		return fmt.Errorf("the state after superstep %d lacks the replicated number", cut.Step)
	}
	return nil
}
