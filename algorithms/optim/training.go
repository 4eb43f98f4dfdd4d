package optim

import (
	"fmt"

	"github.com/superstep-ml/superstep/comqueue"
)

// training is the state of a minimisation on a subtask that all methods share. It is the same
// on every subtask, except for the rows of the evaluator and split parameters.
type training struct {
	Evaluator
	settings    Settings
	penalty     penalty
	space       blocks
	state       *state
	v           []float64 // parameters; if they are split, only the parameters of the blocks kept on this subtask
	joined      bool      // whether the subtask joined a minimisation that had begun before
	split       bool
	gathered    []float64 // if parameters are split, the vector that was gathered last
	information []float64 // buffer for second derivatives, if Settings.Information is set
}

// begin opens the objective on a subtask. It puts the shared objects that all methods use,
// except the parameters. If the minimisation has begun in an earlier superstep, it continues
// from the kept objects.
func (p Problem) begin(ctx *comqueue.ComContext) (*training, error) {
	ev, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	t := &training{Evaluator: ev, settings: p.Settings, space: newBlocks(ev.Dim, ctx.TotalShards())}
	if t.state, t.joined = progress.Lookup(ctx); !t.joined {
		unit, huge := ev.unit()
		t.state = &state{Method: p.Settings.Method, Unit: unit, Huge: huge}
		t.v = make([]float64, t.Dim)
		if err := p.start(ctx, t); err != nil {
			return nil, err
		}
	}
	t.Initial = nil // frees the memory, as there may be very many parameters
	t.state.Record = withCapacity(t.state.Record, min(p.Settings.MaxIter+1, 1<<12))
	if err := t.keepRows(ctx); err != nil {
		return nil, err
	}
	t.penalty = penalty{l1: p.Settings.L1, l2: p.Settings.L2, factors: t.PenaltyFactors, space: &t.space}
	if p.Settings.Information {
		if err := p.allowMatrix(ctx.Shards().Len(), t.Dim); err != nil {
			return nil, err
		}
		t.information = make([]float64, 1+t.Dim+triangle(t.Dim))
		curvatures.Put(ctx, nil)
	}
	trained.Put(ctx, t)
	progress.Put(ctx, t.state)
	return t, nil
}

// start sets t.v to the first parameters.
func (p Problem) start(ctx *comqueue.ComContext, t *training) error {
	switch {
	case p.Start != nil:
		v, err := p.Start(ctx)
		if err != nil {
			return fmt.Errorf("parameters to start from: %w", err)
		}
		if err := t.startable(v); err != nil {
			return err
		}
		copy(t.v, v)
	case p.Settings.Start != nil:
		copy(t.v, p.Settings.Start)
	default:
		copy(t.v, t.Initial)
	}
	return nil
}

// report reports the last entry of the record to clients that follow the job. If training has
// ended and Settings.Information is set, it also requests the read of second derivatives.
func (t *training) report(ctx *comqueue.ComContext) {
	last := t.state.Record[len(t.state.Record)-1]
	ctx.Report("loss", last.Loss)
	ctx.Report("gradient norm", last.GradientNorm)
	ctx.Report("step", last.Step)
	ctx.Report("reads", last.Reads)
	if t.state.Done && t.settings.Information {
		curvatures.Put(ctx, t.information)
	}
}

// addInformation adds the stages that read second derivatives in the last superstep, if
// Settings.Information is set.
func (p Problem) addInformation(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
	if !p.Settings.Information {
		return q
	}
	return q.
		Add(comqueue.Named("read information", comqueue.ForEachShard(curvatures, readInformation))).
		Add(comqueue.AllReduce(curvatures))
}

// readInformation evaluates the second derivatives of a shard after training has ended.
func readInformation(ctx *comqueue.ComContext, shard int, out []float64) error {
	t := trained.Get(ctx)
	if !t.state.Done {
		return nil
	}
	return wrap(ctx, t.Hessian(shard, t.v, out))
}

// done reports whether training has ended. It is the stop criterion of the queue.
func done(ctx *comqueue.ComContext) (bool, error) { return trained.Get(ctx).state.Done, nil }

// result returns the result. It shares the memory of t.
func (t *training) result(ctx *comqueue.ComContext) *Result {
	r := t.state.result(t.full(t.v))
	if t.settings.Information {
		r.Information = make([]float64, triangle(t.Dim))
		for i, h := range curvatures.Get(ctx)[1+t.Dim:] {
			r.Information[i] = h / t.Weight
		}
		r.Reads++
	}
	return r
}

// wrap adds to err the method and the superstep in which it occurred.
func wrap(ctx *comqueue.ComContext, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%v, superstep %d: %w", trained.Get(ctx).state.Method, ctx.StepNo(), err)
}
