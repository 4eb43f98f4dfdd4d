package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// This file has the pieces of work of a worker; see engine/worker_job.go.

// build builds the job and opens the port for the other workers.
func (k *worker) build(f *fiber) (*wire.FromWorker, error) {
	if err := f.sleep(k.c.w.between(2*time.Millisecond, 40*time.Millisecond)); err != nil {
		return nil, err
	}
	if k.d.Mode == wire.ResolveMode {
		return &wire.FromWorker{Resolved: &wire.Resolved{Graph: []byte("{}")}}, nil
	}
	ready := &wire.Ready{Fingerprint: "f", Overlaps: k.job.overlaps}
	if k.d.Mode == wire.RunMode {
		k.c.w.number++
		ready.Address = fmt.Sprint("port ", k.c.w.number)
		k.c.w.addresses[ready.Address] = k
		k.readFiles()
		held := origin.Held{}
		if states := k.c.store.Held(); len(states) > 0 {
			held.Copies = copies.AppendHeld(nil, states)
		}
		var err error
		if ready.Held, err = origin.Encode(held); err != nil {
			return nil, clusterFault(err)
		}
	}
	return &wire.FromWorker{Ready: ready}, nil
}

// prepareSinks opens the checkpoints, chooses from where the queues continue, and begins the sinks.
func (k *worker) prepareSinks(f *fiber) (*wire.FromWorker, error) {
	k.inbox, k.from = make(map[gangKey][]gangMessage), make(map[string]*task.Cut)
	k.c.w.point("prepare", k.c)
	from, err := k.lead(f)
	if err != nil {
		return nil, err
	}
	if k.copying() {
		choices, err := origin.Choices(k.prepare.Held)
		if err != nil {
			return nil, clusterFault(err)
		}
		from = origin.Choose(choices, k.job.hasQueue, from)
		k.c.w.checkNewest(k, k.prepare.Held, from)
	}
	if err := k.job.sinks.prepare(f, k); err != nil {
		return nil, err
	}
	return &wire.FromWorker{Prepared: &wire.Prepared{Origin: from}}, nil
}

// sharing returns how many workers of the attempt have slots. They are the first.
func (k *worker) sharing() (n int) {
	for _, s := range k.d.Slots {
		if s.Hi > s.Lo {
			n++
		}
	}
	return n
}

// gives reports whether the worker has no slots, and only gives what its process has kept.
func (k *worker) gives() bool { return k.d != nil && k.d.Worker >= k.sharing() }

// copying reports whether the worker copies states, to others or to files.
func (k *worker) copying() bool {
	return k.d.Mode == wire.RunMode && k.d.Keep && k.d.Spec.Run.NumberOfCopies() > 0
}

// run runs the subtasks of the worker.
func (k *worker) run(f *fiber) (*wire.FromWorker, error) {
	if k.inbox == nil {
		k.inbox, k.from = make(map[gangKey][]gangMessage), make(map[string]*task.Cut)
	}
	k.origin = k.start.Origin
	if err := k.connect(f); err != nil {
		return nil, err
	}
	if err := k.joinCheckpoints(f); err != nil {
		return nil, err
	}
	if err := k.startCopies(f); err != nil {
		return nil, err
	}
	k.reportProgress(k.turn)
	if k.gives() {
		k.leftGang, k.gave = true, true
		k.c.w.marks["a worker without slots gives what it has kept"]++
		return &wire.FromWorker{Finished: &wire.Finished{}}, nil
	}
	if k.saver != nil {
		k.saver.start()
	}
	k.c.w.checkOrigin(k)
	input := uint64(0)
	var last *queueState
	for _, q := range k.job.queues {
		state, err := k.runQueue(f, q, input)
		if err != nil {
			return nil, err
		}
		last, input = state, state.replicated
	}
	k.leftGang = true
	p, err := k.job.sinks.write(f, k, last)
	if err != nil {
		return nil, err
	}
	if k.d.Worker != 0 && k.saver != nil {
		k.saver.close()
	}
	k.c.w.point("finished", k.c)
	return &wire.FromWorker{Finished: &wire.Finished{Outcome: encoded(p)}}, nil
}

// reportProgress reports progress now and then.
func (k *worker) reportProgress(turn int) {
	k.c.after(k.c.w.between(300*time.Millisecond, 900*time.Millisecond), func() {
		if k.turn == turn && k.work != nil && !k.closed {
			k.c.post(&wire.FromWorker{Progress: &wire.Progress{}})
			k.reportProgress(turn)
		}
	})
}

const (
	refusedFor = 500 * time.Millisecond
	joinLimit  = 10 * time.Second
)

// connect connects the worker with the others.
func (k *worker) connect(f *fiber) error {
	w := k.c.w
	if len(k.start.Addresses) != len(k.d.Slots) {
		return clusterFault(fmt.Errorf("%d addresses of %d workers", len(k.start.Addresses), len(k.d.Slots)))
	}
	g := w.groupOf(k.d.WorkerRef, len(k.d.Slots))
	g.join(k)
	began, refused := w.now, time.Duration(-1)
	for {
		gone := -1
		for i, address := range k.start.Addresses {
			if o := w.addresses[address]; i != k.d.Worker && (g.left[i] || o.closed || o.c.dead) && !o.c.machine.off && w.net.reaches(k.c.machine, o.c.machine) {
				gone = i
			}
		}
		switch {
		case gone < 0:
			refused = -1
		case refused < 0:
			refused = w.now
		case w.now-refused >= refusedFor:
			return peerFailed("worker %d refuses connections", gone)
		}
		if gone < 0 && g.complete() {
			return f.cause
		}
		if w.now-began >= joinLimit {
			return peerFailed("not all workers could be reached within %v", joinLimit)
		}
		if err := f.wait(50 * time.Millisecond); err != nil {
			return err
		}
	}
}

// lead opens the checkpoints in worker 0, and loads the newest; see engine/continue.go. It returns nil if
// the job has none.
func (k *worker) lead(f *fiber) (*wire.Origin, error) {
	s := k.d.Spec.Run.Checkpoints
	if s == nil {
		return nil, nil
	}
	lost := func(err error) error {
		if errors.Is(err, errDead) || f.cause != nil || !k.d.Resume {
			return err
		}
		return &failed{kind: wire.ClusterFailure, retry: true, text: err.Error()}
	}
	h, err := k.job.store.open(f, k)
	if err != nil {
		return nil, lost(err)
	}
	ctx := context.Background()
	j, err := checkpoint.Open(ctx, h, k.job.run())
	if err != nil {
		return nil, lost(err)
	}
	j.Pause = func(_ context.Context, d time.Duration) error { return h.f.sleep(d) }
	from := &wire.Origin{}
	if s.Resume || k.d.Resume {
		found, _, err := j.Load(ctx, k.needed)
		if err != nil {
			return nil, err
		}
		if found != nil {
			from.Number, from.Written = found.Number, found.Written
			if err := k.continueFrom(found, from); err != nil {
				return nil, err
			}
		}
	} else if !j.Empty() {
		return nil, fmt.Errorf("the store has checkpoints of an earlier run")
	}
	if err := j.Announce(ctx, k.key()); err != nil {
		return nil, lost(err)
	}
	from.Generation = j.Generation()
	k.saver = newSaver(k, h)
	k.saver.journal = j
	for queue, cut := range k.from {
		k.saver.dueStep[queue] = cut.Step
	}
	return from, nil
}

func (k *worker) key() string { return fmt.Sprintf("job %s, attempt %d", k.d.Job, k.d.Attempt) }

// joinCheckpoints opens the checkpoints in the other workers.
func (k *worker) joinCheckpoints(f *fiber) error {
	if k.d.Spec.Run.Checkpoints == nil || k.d.Worker == 0 || k.gives() {
		return nil
	}
	from := k.origin
	if from == nil {
		return clusterFault(errors.New("worker 0 did not say where the checkpoints begin"))
	}
	h := k.job.store.join(f, k)
	k.saver = newSaver(k, h)
	ctx := context.Background()
	var err error
	k.saver.parts, err = checkpoint.Join(ctx, h, from.Generation, k.d.Worker, k.key())
	if err == nil && from.Number > 0 {
		var found *checkpoint.Checkpoint
		if found, err = checkpoint.LoadNumber(ctx, h, from.Number, k.needed); err == nil {
			err = k.continueFrom(found, nil)
		}
	}
	if err != nil && k.d.Resume && !errors.Is(err, errDead) && f.cause == nil {
		return &failed{kind: wire.ClusterFailure, retry: true, text: err.Error()}
	}
	return err
}

// continueFrom decodes the states from which queues continue.
func (k *worker) continueFrom(found *checkpoint.Checkpoint, into *wire.Origin) error {
	for i, q := range found.Queues {
		if !k.needed(q.Name, 0, len(q.Blobs)) {
			continue
		}
		cut, err := task.CutOfPieces(found.Pieces[i])
		if err == nil && cut.Step != q.Superstep {
			err = fmt.Errorf("its superstep is %d, not %d", cut.Step, q.Superstep)
		}
		if err != nil {
			return err
		}
		k.from[q.Name] = cut
		if k.saver != nil {
			k.saver.dueStep[q.Name] = q.Superstep
		}
		if into != nil {
			into.Queues = append(into.Queues, wire.OriginQueue{Name: q.Name, Superstep: q.Superstep, Ended: q.Ended})
		}
	}
	return nil
}

// needed implements checkpoint.Needed.
func (k *worker) needed(queue string, piece, pieces int) bool {
	parts := k.part().NeededParts(k.planOf(), queue, pieces-1)
	if piece > 0 {
		return parts[piece-1]
	}
	for _, n := range parts {
		if n {
			return true
		}
	}
	return false
}

// part describes the part of the plan that the worker runs.
func (k *worker) part() task.Part {
	p := task.Part{Worker: k.d.Worker}
	for _, s := range k.d.Slots {
		p.Slots = append(p.Slots, sharding.Range{Lo: s.Lo, Hi: s.Hi})
	}
	return p
}

// planOf returns as much of the plan of the job as the choice of pieces needs.
func (k *worker) planOf() *plan.Plan {
	p := k.d.Spec.Parallelism
	all := &plan.Plan{Shards: k.job.shards, Parallelism: p, Slots: p}
	for _, q := range k.job.queues {
		v := plan.Vertex{Queue: q.name, Parallelism: p}
		for t := range p {
			v.Ranges = append(v.Ranges, sharding.Split(k.job.shards, p, t))
		}
		all.Vertices = append(all.Vertices, v)
		all.Queues = append(all.Queues, plan.Queue{Name: q.name})
	}
	return all
}

// makeVisible makes the results visible.
func (k *worker) makeVisible(f *fiber) (*wire.FromWorker, error) {
	if err := k.job.sinks.commit(f, k); err != nil {
		return nil, err
	}
	if err := k.removeCheckpoints(f); err != nil {
		return nil, err
	}
	return &wire.FromWorker{Committed: &wire.Committed{}}, nil
}

// removeCheckpoints removes the checkpoints of the job after its commit. Errors change nothing.
func (k *worker) removeCheckpoints(f *fiber) error {
	if k.d.Spec.Run.Checkpoints == nil {
		return nil
	}
	ctx := context.Background()
	if k.d.Mode == wire.RunMode {
		if k.saver != nil {
			k.saver.close()
			k.saver.h.f = f
			_ = k.saver.journal.Remove(ctx)
		}
		return f.cause
	}
	h, err := k.job.store.open(f, k)
	if err != nil {
		h = k.job.store.join(f, k)
	}
	if j, err := checkpoint.Open(ctx, h, checkpoint.Run{}); err == nil {
		_ = j.Remove(ctx)
	}
	return f.cause
}

// abort removes what the worker has written.
func (k *worker) abort(f *fiber) (*wire.FromWorker, error) {
	return nil, k.job.sinks.abort(f, k)
}
