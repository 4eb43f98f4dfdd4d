package task

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// RunParts runs a plan with several workers within this process, connected by memory, as a
// cluster runs it in several processes. It is for tests of operators and queues, which must
// give the same bits as in a run in one part.
//
// bind returns the bindings and the environment of a worker. Each worker needs bindings of its
// own, as if its process had built the job by itself, so that workers do not share what the
// subtasks of one build share. The field Network of the environments is not used. RunParts
// returns a worker's failure that does not follow from another worker. Among several such
// failures it returns the failure of the lowest shard, as Run does.
func RunParts(ctx context.Context, p *plan.Plan, g *plan.Graph, slots []sharding.Range, bind func(worker int) (Bindings, Env, error)) (*Report, error) {
	t := &partsRun{groups: make(map[string]*collective.LocalGroup)}
	mem := transport.NewMem(0)
	defer mem.Close() // workers close it too, but perhaps none is made
	t.join = func(int) joinFunc { return t.joinLocal }
	t.network = func(int) (transport.Network, error) { return mem, nil }
	return t.runParts(ctx, p, g, slots, bind)
}

// runParts is like RunParts, with the network and the groups of t.
func (t *partsRun) runParts(ctx context.Context, p *plan.Plan, g *plan.Graph, slots []sharding.Range, bind func(worker int) (Bindings, Env, error)) (*Report, error) {
	t.parts = make([]*partWorker, len(slots))
	defer t.close()
	for i := range slots {
		b, env, err := bind(i)
		if err != nil {
			return nil, err
		}
		if env.Retained != nil {
			env.Closed = t.copyReport(i)
		}
		if env.Network, err = t.network(i); err != nil {
			return nil, err
		}
		w, err := NewWorker(p, g, b, env, Part{Worker: i, Slots: slots, Join: t.join(i)})
		if err != nil {
			return nil, err
		}
		t.parts[i] = &partWorker{Worker: w}
	}
	if err := t.continueRun(); err != nil {
		return nil, err
	}
	if err := t.parts[0].Prepare(); err != nil {
		return nil, err
	}
	if err := t.run(ctx); err != nil {
		for _, w := range slices.Backward(t.parts) { // worker 0 is last, as it removes what all workers have written
			err = joinError(err, w.Abort())
		}
		return nil, err
	}
	outcomes := make([][]byte, Running(slots))
	for i, w := range t.parts[:len(outcomes)] {
		outcomes[i] = w.outcome
	}
	if err := t.parts[0].decodeAndCommit(outcomes, false); err != nil {
		return nil, err
	}
	return MergeOutcomes(p, outcomes)
}

// copyReport returns the Closed of a worker, which gives the next worker a copy of the report.
func (t *partsRun) copyReport(worker int) func(queue string, report []byte) {
	return func(queue string, report []byte) {
		next := t.parts[(worker+1)%len(t.parts)]
		if report == nil {
			return
		}
		if err := next.run.env.Retained.AddReport(queue, report); err != nil {
			next.Fail(err)
		}
	}
}

// continueRun tells the workers what they have retained of an earlier run, if they retain anything.
func (t *partsRun) continueRun() error {
	held := make([][]byte, len(t.parts))
	for i, w := range t.parts {
		k := w.run.env.Retained
		if k == nil {
			return nil
		}
		var err error
		if held[i], err = k.Held(math.MaxInt); err != nil {
			return err
		}
	}
	var ended []string
	for i := range t.parts[0].run.plan.Queues {
		q := &t.parts[0].run.plan.Queues[i]
		if from, err := t.parts[0].run.env.from(q); err == nil && from != nil && from.Last {
			ended = append(ended, q.Name)
		}
	}
	for _, w := range t.parts {
		if err := w.Continue(held, ended); err != nil {
			return err
		}
	}
	return nil
}

// joinFunc is the Join of a part.
type joinFunc = func(ctx context.Context, queue string, ranks [][]int) (Group, error)

// partsRun holds the workers of RunParts.
type partsRun struct {
	parts   []*partWorker
	join    func(worker int) joinFunc
	network func(worker int) (transport.Network, error)

	mu     sync.Mutex
	groups map[string]*collective.LocalGroup
}

// partWorker is a worker and its result.
type partWorker struct {
	*Worker
	outcome []byte
	err     error
}

// peerWorkerError is the cause that ends the runs of workers after another worker has failed.
type peerWorkerError struct{}

func (peerWorkerError) Error() string  { return "another worker failed" }
func (peerWorkerError) PeerLost() bool { return true }

// run runs all workers at once and returns the failure that RunParts reports.
func (t *partsRun) run(ctx context.Context) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, w := range t.parts {
		running.Go(func() {
			if w.outcome, w.err = w.Run(within); w.err != nil {
				cancel(peerWorkerError{})
			}
		})
	}
	running.Wait()
	var own failures
	var first error
	for _, w := range t.parts {
		var te *TaskError
		switch {
		case w.err == nil || FollowsPeer(w.err):
			if first == nil {
				first = w.err
			}
			continue
		case errors.As(w.err, &te) && error(te) == w.err:
			own.errs = append(own.errs, te)
		case len(own.errs) == 0:
			return w.err
		}
	}
	if te := own.choose(); te != nil {
		return te
	}
	return first
}

// joinLocal connects the ranks of a queue in a group that all workers share.
func (t *partsRun) joinLocal(_ context.Context, queue string, ranks [][]int) (Group, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.groups[queue] == nil {
		t.groups[queue] = collective.NewLocalGroup(len(slices.Concat(ranks...)))
	}
	return localGroup{t.groups[queue]}, nil
}

// close closes the workers that were made. No worker runs any more, so the first worker that is
// closed may close the network that all share.
func (t *partsRun) close() {
	for _, w := range slices.Backward(t.parts) {
		if w != nil {
			w.Close()
		}
	}
}
