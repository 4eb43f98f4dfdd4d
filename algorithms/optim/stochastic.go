package optim

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// stochastic is the queue of SGD. A superstep is a step along the gradient of a few rows of
// each shard. An epoch takes each row once, in a random order that depends only on seed, shard
// and epoch. The first superstep evaluates the start and counts the rows, and the last
// superstep evaluates the result, both on all rows. The stages of a superstep are:
//
//	draw       at the beginning of an epoch: the order of rows
//	read rows  per shard: loss and gradient of the rows of the step
//	AllReduce
//	step       move; at the end of an epoch: record, test
type stochastic struct{ problem Problem }

// sgd is the state of a minimisation by SGD on a subtask. sgdState and all vectors except
// gradient are kept between supersteps, see kept.go.
type sgd struct {
	*training
	*sgdState
	update

	first int       // first shard of the subtask
	order [][]int32 // for each shard of the subtask: its rows in the order of the epoch
	spans []span    // for each shard of the subtask: the part of order that the step takes

	stepShards []int     // numbers of the shards that have rows for the step
	stepRows   [][]int32 // the rows of each of these shards

	gradient    []float64
	epochBefore []float64 // parameters at the end of the last epoch, if StepTol needs them
	mean        []float64 // mean of the parameters, if Average is set
}

// sgdState is the progress of SGD. It is the same on every subtask.
type sgdState struct {
	Phase   phase
	First   float64 // the first rate: Rate of the settings, or the default for the number of rows in a step
	Rows    int     // number of rows of all shards
	Steps   int     // number of steps in an epoch
	Epoch   int     // number of the current epoch, counted from 0
	Done    int     // number of completed steps of this epoch
	Total   int     // number of completed steps of all epochs
	Means   int     // number of steps over which sgd.mean is the mean
	Losses  float64 // loss summed over the rows read in this epoch
	Seen    float64 // number of rows read in this epoch
	Norm    float64 // norm of the latest gradient
	Scalars updateScalars
}

var sgdKey = shared.Replicated("optim SGD", shared.Msgpack[*sgdState]())

// phase is the phase of training to which a superstep of SGD belongs.
type phase int

const (
	atStart phase = iota
	inSteps
	atEnd
)

// addTo adds the stages to q and returns the dataset of the rows that the Closer returns.
func (d stochastic) addTo(q *comqueue.IterativeComQueue) *engine.Dataset {
	q = q.
		Add(comqueue.Named("draw", comqueue.Do(d.draw))).
		Add(comqueue.Named("read rows", comqueue.ForEachShard(reading, d.readRows, comqueue.FoldedBy(d.foldRows)))).
		Add(comqueue.AllReduce(reading)).
		Add(comqueue.Named("step", comqueue.Do(d.step)))
	return d.problem.addInformation(q).
		Add(keepResult(func(_ *comqueue.ComContext, t *training) bool { return t.state.Done })).
		SetCompareCriterionOfNode0(done).
		CloseOnNode0(d.problem.Closer).
		Exec()
}

// Offsets of further sums in the buffer of a superstep, counted from the end of loss and
// gradient.
const (
	weightOffset = iota // weight of the rows read
	countOffset         // number of the rows read
	shardsOffset        // number of shards that have rows
	numOffsets
)

// draw opens the objective in the first superstep, and when a subtask joins later. It shuffles
// the rows at the beginning of an epoch, and determines the rows that the step takes.
func (d stochastic) draw(ctx *comqueue.ComContext) error {
	joined := !sgdOf.Has(ctx)
	if joined {
		if err := d.prepare(ctx); err != nil {
			return err
		}
	}
	s := sgdOf.Get(ctx)
	if s.Phase != inSteps {
		return nil
	}
	if s.Done == 0 || joined {
		s.setSpans(ctx.TotalShards())
	}
	s.advance()
	if s.Done > 0 && !joined {
		return nil
	}
	return ctx.ForShards(func(shard int) error {
		order := s.order[shard-s.first]
		for i := range order {
			order[i] = int32(i)
		}
		r := sharding.NewRandom(s.settings.Seed, "rows of an epoch", shard, s.Epoch)
		sharding.Shuffle(&r, order)
		return nil
	})
}

func (d stochastic) prepare(ctx *comqueue.ComContext) error {
	base, err := d.problem.begin(ctx)
	if err != nil {
		return err
	}
	if base.Minibatch.Rows == nil {
		return fmt.Errorf("the objective has no Minibatch, which SGD needs: use another method")
	}
	s := &sgd{training: base, first: ctx.Shards().Lo, order: make([][]int32, ctx.Shards().Len()), gradient: make([]float64, base.Dim)}
	s.spans = make([]span, len(s.order))
	if s.joined {
		s.v = recall(ctx, parameters.whole, s.Dim)
		s.sgdState = sgdKey.Get(ctx)
		s.settings.Stochastic.Rate = s.First
	} else {
		parameters.whole.Put(ctx, s.v)
		s.sgdState = &sgdState{First: s.settings.Stochastic.Rate, Scalars: updateScalars{Decay1: 1, Decay2: 1, Factor: 1}}
		sgdKey.Put(ctx, s.sgdState)
	}
	s.update = newUpdate(ctx, &s.settings, s.Dim, &s.Scalars)
	if s.settings.StepTol > 0 {
		if s.epochBefore = recall(ctx, epochBefore, s.Dim); !s.joined {
			copy(s.epochBefore, s.v)
		}
	}
	if s.settings.Stochastic.Average {
		s.mean = recall(ctx, meanOfPoints, s.Dim)
	}
	if err := ctx.ForShards(func(shard int) error {
		s.order[shard-s.first] = make([]int32, s.Minibatch.Rows(shard))
		return nil
	}); err != nil {
		return err
	}
	sgdOf.Put(ctx, s)
	reading.Put(ctx, make([]float64, 1+base.Dim+numOffsets))
	return nil
}

// readRows evaluates those rows of a shard that belong to the step of the superstep, or all
// rows in the first and the last superstep.
func (d stochastic) readRows(ctx *comqueue.ComContext, shard int, out []float64) error {
	s := sgdOf.Get(ctx)
	order := s.order[shard-s.first]
	sums, rest := out[:1+s.Dim], out[1+s.Dim:]
	if s.Phase != inSteps {
		rest[countOffset], rest[shardsOffset] = float64(len(order)), 1
		return wrap(ctx, s.Evaluate(shard, s.v, sums))
	}
	rows := s.stepRowsOf(shard)
	if len(rows) == 0 {
		return nil
	}
	rest[countOffset] = float64(len(rows))
	return wrap(ctx, s.Minibatch.Evaluate(shard, rows, s.v, out[:1+s.Dim+countOffset]))
}

// span is the part of a shard's order that one step takes.
type span struct {
	lo, hi    int32
	remainder int // numerator of the fraction of a row that is carried to the next step; the denominator is Steps
	perStep   int // number of rows that every step takes
	extra     int // number of further rows in an epoch, which are distributed over the steps of the epoch
}

// setSpans sets the span of each shard according to the number of completed steps of the epoch.
// Before step t, (t·rows + offset) / steps rows of a shard have been taken, so that each shard
// contributes its share to every step. The offsets differ between shards, so that shards with
// fewer rows than steps do not all skip the same steps.
func (s *sgd) setSpans(shards int) {
	steps := int64(s.Steps)
	for i, order := range s.order {
		offset := int64(s.first+i) * steps / int64(shards) // less than steps
		given := int64(s.Done)*int64(len(order)) + offset
		s.spans[i] = span{
			hi: int32(given / steps), remainder: int(given % steps),
			perStep: len(order) / s.Steps, extra: len(order) % s.Steps,
		}
	}
}

// advance moves the span of each shard to the rows that the next step takes.
func (s *sgd) advance() {
	for i := range s.spans {
		sp := &s.spans[i]
		n := sp.perStep
		if sp.remainder += sp.extra; sp.remainder >= s.Steps {
			sp.remainder -= s.Steps
			n++
		}
		sp.lo, sp.hi = sp.hi, sp.hi+int32(n)
	}
}

// stepRowsOf returns the rows of a shard that the step takes.
func (s *sgd) stepRowsOf(shard int) []int32 {
	sp := s.spans[shard-s.first]
	return s.order[shard-s.first][sp.lo:sp.hi]
}

// foldRows does what readRows does, for all shards of a node of the tree, if the evaluator
// folds them itself.
func (d stochastic) foldRows(ctx *comqueue.ComContext, shards sharding.Range, out []float64) (bool, error) {
	s := sgdOf.Get(ctx)
	if s.Phase != inSteps || s.Minibatch.Fold == nil {
		return false, nil
	}
	s.stepShards, s.stepRows = s.stepShards[:0], s.stepRows[:0]
	count := 0
	for shard := shards.Lo; shard < shards.Hi; shard++ {
		if rows := s.stepRowsOf(shard); len(rows) > 0 {
			s.stepShards, s.stepRows = append(s.stepShards, shard), append(s.stepRows, rows)
			count += len(rows)
		}
	}
	done, err := s.Minibatch.Fold(s.stepShards, s.stepRows, s.v, out[:1+s.Dim+countOffset])
	if done {
		out[1+s.Dim+countOffset] = float64(count)
	}
	return done, wrap(ctx, err)
}

// step takes the result of a read.
func (d stochastic) step(ctx *comqueue.ComContext) error {
	s, sums := sgdOf.Get(ctx), reading.Get(ctx)
	switch s.Phase {
	case atStart:
		counts := sums[1+s.Dim:]
		s.Rows = int(counts[countOffset])
		batch := s.settings.Stochastic.Batch
		if batch == 0 {
			batch = int(counts[shardsOffset])
		}
		s.Steps = max(1, (s.Rows+batch-1)/max(batch, 1))
		if s.settings.Stochastic.Rate == 0 {
			s.First = s.settings.Stochastic.rate(batch)
			s.settings.Stochastic.Rate = s.First
		}
		s.Phase = inSteps
		end, err := s.evaluateAll(sums, "at the start: check features and offsets, or give other parameters to start from")
		if err != nil {
			return wrap(ctx, err)
		}
		s.state.endIteration(end, &s.settings)
	case inSteps:
		if err := s.takeStep(sums); err != nil {
			return wrap(ctx, err)
		}
		ctx.Report("loss", float64(s.Losses/max(s.Seen, 1)*(float64(s.Rows)/s.Weight))+s.penalty.value(s.v))
		ctx.Report("gradient norm", s.Norm)
		ctx.Report("step", s.Rate)
		ctx.Report("reads", sums[1+s.Dim+countOffset]/float64(s.Rows))
		if s.Done == s.Steps {
			s.endEpoch()
		}
		return nil
	case atEnd:
		end, err := s.evaluateAll(sums, "at the end: "+s.rateAdvice())
		if err != nil {
			return wrap(ctx, err)
		}
		s.finish(end)
	}
	s.report(ctx)
	return nil
}

// takeStep moves along the gradient of the rows of a step. The gradient is divided by the mean
// weight of all rows, and not by the mean weight of the step's rows, so that it is unbiased for
// any weights.
func (s *sgd) takeStep(sums []float64) error {
	count := sums[1+s.Dim+countOffset]
	s.Done++
	s.Total++
	if count > 0 {
		if !kernel.Finite(sums[0]) {
			return fmt.Errorf("epoch %d, step %d: the loss is %v: %s", s.Epoch+1, s.Done, sums[0], s.rateAdvice())
		}
		s.Losses += sums[0]
		s.Seen += count
		s.penalty.gradient(sums[1:1+s.Dim], s.Weight*(count/float64(s.Rows)), s.v, nil, 0, s.gradient)
		s.Norm = 0
		for _, g := range s.gradient {
			s.Norm = max(s.Norm, math.Abs(g))
		}
		s.move(&s.settings, s.Total-1, s.Epoch, s.gradient, s.v, &s.penalty)
		if !kernel.Finite(s.Norm) || !kernel.Finite(maxAbs(s.v)) {
			return fmt.Errorf("epoch %d, step %d: parameters are no longer finite numbers: %s", s.Epoch+1, s.Done, s.rateAdvice())
		}
	}
	if s.mean != nil && s.averaging() {
		s.Means++
		for i, v := range s.v {
			s.mean[i] += (v - s.mean[i]) / float64(s.Means)
		}
	}
	return nil
}

// rateAdvice returns the advice in the error that is returned if steps were so long that the
// loss or the parameters are no longer finite. In most cases the cause is features with large
// or very different spreads.
func (s *sgd) rateAdvice() string {
	other := ""
	if s.settings.Stochastic.Update != Adam {
		other = "; the adam update bounds the length of steps, but does not make up for features of very different spreads"
	}
	return fmt.Sprintf("steps with the learning rate %.3g are too long: standardise the features, or lower the rate%s", s.Rate, other)
}

// averaging reports whether training is in the last half of its steps.
func (s *sgd) averaging() bool { return 2*s.Total > s.Steps*s.settings.MaxIter }

// endEpoch records an epoch and decides whether it is the last one. The recorded loss is the
// mean over the steps of the epoch, each computed at the parameters of its step. The loss of
// all rows at the same parameters would need another read.
func (s *sgd) endEpoch() {
	previousLoss := s.state.Loss
	it := Iteration{
		Loss:         float64(s.Losses/s.Weight*(float64(s.Rows)/max(s.Seen, 1))) + s.penalty.value(s.v),
		GradientNorm: s.Norm, Step: s.Rate, Reads: s.Seen / float64(s.Rows),
	}
	s.state.Loss, s.state.GradientNorm = it.Loss, it.GradientNorm
	s.state.Reads += it.Reads
	s.state.Record = append(s.state.Record, it)
	s.Epoch++
	s.state.Iteration = s.Epoch
	s.Losses, s.Seen, s.Done = 0, 0, 0
	var moved float64
	for i := range s.epochBefore {
		moved = max(moved, math.Abs(s.v[i]-s.epochBefore[i])/max(1, math.Abs(s.v[i])))
	}
	copy(s.epochBefore, s.v)
	mayEnd := s.mean == nil || s.averaging()
	switch {
	case mayEnd && s.settings.LossTol > 0 && math.Abs(previousLoss-it.Loss) <= s.settings.LossTol*max(math.Abs(previousLoss), math.Abs(it.Loss)):
		s.state.Reason = LossSettled
	case mayEnd && s.epochBefore != nil && moved <= s.settings.StepTol:
		s.state.Reason = StepSmall
	case s.Epoch >= s.settings.MaxIter:
		s.state.Reason = MaxIterations
	default:
		return
	}
	s.Phase = atEnd
	if s.mean != nil {
		copy(s.v, s.mean)
	}
}

// evaluateAll takes the sums of loss and gradient over all rows, and returns the values for the
// record. where is the end of the text of errors: it names the point and gives advice.
func (s *sgd) evaluateAll(sums []float64, where string) (iterationEnd, error) {
	end := iterationEnd{loss: sums[0]/s.Weight + s.penalty.value(s.v), reads: 1}
	s.penalty.gradient(sums[1:1+s.Dim], s.Weight, s.v, nil, 0, s.gradient)
	if s.settings.L1 > 0 {
		s.penalty.pseudoGradient(s.v, s.gradient, s.gradient)
	}
	bad := !kernel.Finite(end.loss)
	for i, g := range s.gradient {
		end.norm, end.size = max(end.norm, math.Abs(g)), max(end.size, math.Abs(s.v[i]))
		bad = bad || !kernel.Finite(g)
	}
	if bad {
		return end, fmt.Errorf("the loss is %v and the largest derivative %v %s", end.loss, end.norm, where)
	}
	end.radialSlope = s.space.dot(s.gradient, s.v)
	return end, nil
}

// finish ends training. In the record of the last epoch, it replaces the mean loss of the steps
// by the objective over all rows.
func (s *sgd) finish(end iterationEnd) {
	last := &s.state.Record[len(s.state.Record)-1]
	last.Loss, last.GradientNorm = end.loss, end.norm
	last.Reads++
	s.state.Reads++
	s.state.Loss, s.state.GradientNorm = end.loss, end.norm
	switch first := s.state.FirstLoss; {
	case s.settings.Tol >= 0 && end.norm <= s.settings.Tol*s.state.referenceNorm():
		s.state.Reason = GradientSmall
	case first > 0 && end.loss > overshoot*first: // if the first loss was 0, it can only rise
		s.state.Reason = Overshooting
	}
	s.state.Done = true
}

// overshoot is the ratio of the last loss to the first loss above which training is reported as
// Overshooting. It is above 1 because training that starts at an optimum ends with a slightly
// higher loss.
const overshoot = 1.01
