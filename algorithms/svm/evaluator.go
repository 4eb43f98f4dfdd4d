package svm

import (
	"encoding/binary"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// joint evaluates the sum of the objectives of a classifier's classes over the same rows. Each
// objective, called a part, has its own parameters; the slice of all parameters is their
// concatenation. A joint may be used only by the goroutine of its subtask.
type joint struct {
	parts []*optim.Evaluator
	width int       // number of parameters of a part
	room  []float64 // buffer for loss and derivatives of one part
}

// join returns an evaluator of the sum of parts, which must all have the same rows and
// functions.
func join(parts []optim.Evaluator) optim.Evaluator {
	j := &joint{width: parts[0].Dim}
	sum := optim.Evaluator{
		Dim: len(parts) * j.width, Weight: parts[0].Weight, Evaluate: j.evaluate,
		Hessian:   j.hessian,
		Margins:   optim.Margins{Start: j.start, Direction: j.direction, Trials: j.trials, Gradient: j.gradient, Advance: j.advance},
		Minibatch: optim.Minibatch{Rows: parts[0].Minibatch.Rows, Evaluate: j.evaluateRows},
		Snapshot:  optim.Snapshot{Append: j.appendSnapshot, Restore: j.restoreSnapshot},
		Ordered:   j.order,
	}
	for _, e := range parts {
		sum.PenaltyFactors = append(sum.PenaltyFactors, e.PenaltyFactors...)
		e.PenaltyFactors, e.Initial = nil, nil
		j.parts = append(j.parts, &e)
	}
	if n := parts[0].Smoothing.BoundLen; n > 0 {
		sum.Smoothing = optim.Smoothing{BoundLen: len(parts) * n, Bound: j.bound, Gap: j.gap, Refine: j.refine}
	}
	return sum
}

// parameters returns the number of parameters of all parts.
func (j *joint) parameters() int { return len(j.parts) * j.width }

// of returns the parameters of a part.
func (j *joint) of(part int, v []float64) []float64 {
	return v[part*j.width : (part+1)*j.width]
}

// order implements optim.Evaluator.Ordered.
func (j *joint) order() {
	for _, e := range j.parts {
		e.Ordered()
	}
}

// zeros returns a slice of n zeros in the memory of j.room. The slice is valid until the next
// call.
func (j *joint) zeros(n int) []float64 {
	j.room = kernel.Sized(j.room, n)
	clear(j.room)
	return j.room
}

// each adds loss and gradient of every part to out. evaluate computes them for one part.
func (j *joint) each(out []float64, evaluate func(part int, e *optim.Evaluator, out []float64) error) error {
	for k, e := range j.parts {
		own := j.zeros(1 + j.width)
		if err := evaluate(k, e, own); err != nil {
			return err
		}
		j.add(k, own, out)
	}
	return nil
}

// add adds own, the loss and gradient of a part, to out.
func (j *joint) add(part int, own, out []float64) {
	out[0] += own[0]
	gradient := j.of(part, out[1:])
	for i, g := range own[1 : 1+j.width] {
		gradient[i] += g
	}
}

// evaluate implements optim.Evaluator.Evaluate.
func (j *joint) evaluate(shard int, v, out []float64) error {
	return j.each(out, func(k int, e *optim.Evaluator, out []float64) error { return e.Evaluate(shard, j.of(k, v), out) })
}

// start implements optim.Margins.Start.
func (j *joint) start(shard int, v, out []float64) error {
	return j.each(out, func(k int, e *optim.Evaluator, out []float64) error { return e.Margins.Start(shard, j.of(k, v), out) })
}

// direction implements optim.Margins.Direction.
func (j *joint) direction(shard int, p []float64, step float64, out []float64) error {
	return j.each(out, func(k int, e *optim.Evaluator, out []float64) error {
		return e.Margins.Direction(shard, j.of(k, p), step, out)
	})
}

// gradient implements optim.Margins.Gradient.
func (j *joint) gradient(shard int, step float64, out []float64) error {
	return j.each(out, func(_ int, e *optim.Evaluator, out []float64) error { return e.Margins.Gradient(shard, step, out) })
}

// trials implements optim.Margins.Trials.
func (j *joint) trials(shard int, steps, out []float64) error {
	for _, e := range j.parts {
		if err := e.Margins.Trials(shard, steps, out); err != nil {
			return err
		}
	}
	return nil
}

// advance implements optim.Margins.Advance.
func (j *joint) advance(shard int, step float64) error {
	for _, e := range j.parts {
		if err := e.Margins.Advance(shard, step); err != nil {
			return err
		}
	}
	return nil
}

// appendSnapshot implements optim.Snapshot.Append. For each part it appends the length of the
// part's snapshot (8 bytes, little-endian), followed by the snapshot.
func (j *joint) appendSnapshot(shard int, dst []byte) ([]byte, error) {
	out := dst
	for _, e := range j.parts {
		at := len(out)
		all, err := e.Snapshot.Append(shard, append(out, make([]byte, 8)...))
		if err != nil {
			return dst, err
		}
		binary.LittleEndian.PutUint64(all[at:], uint64(len(all)-at-8))
		out = all
	}
	return out, nil
}

// restoreSnapshot implements optim.Snapshot.Restore.
func (j *joint) restoreSnapshot(shard int, src []byte) error {
	for k, e := range j.parts {
		var n uint64
		if len(src) >= 8 {
			n = binary.LittleEndian.Uint64(src)
			src = src[8:]
		}
		if n > uint64(len(src)) {
			return fmt.Errorf("the snapshot of part %d ends after %d of %d bytes", k, len(src), n)
		}
		if err := e.Snapshot.Restore(shard, src[:n]); err != nil {
			return err
		}
		src = src[n:]
	}
	return nil
}

// hessian implements optim.Evaluator.Hessian. Parts share no parameters, so the matrix is
// block-diagonal: its blocks are the matrices of the parts.
func (j *joint) hessian(shard int, v, out []float64) error {
	n, all := j.width, j.parameters()
	for k, e := range j.parts {
		own := j.zeros(1 + n + n*(n+1)/2)
		if err := e.Hessian(shard, j.of(k, v), own); err != nil {
			return err
		}
		j.add(k, own, out)
		matrix := out[1+all:]
		for a := range n {
			row := k*n + a
			to := matrix[row*(row+1)/2+k*n:]
			for b, h := range own[1+n+a*(a+1)/2:][:a+1] {
				to[b] += h
			}
		}
	}
	return nil
}

// evaluateRows implements optim.Minibatch.Evaluate.
func (j *joint) evaluateRows(shard int, indices []int32, v, out []float64) error {
	for k, e := range j.parts {
		own := j.zeros(2 + j.width)
		if err := e.Minibatch.Evaluate(shard, indices, j.of(k, v), own); err != nil {
			return err
		}
		j.add(k, own, out)
		if k == 0 { // add the weight of the rows only once
			out[1+j.parameters()] += own[1+j.width]
		}
	}
	return nil
}

// bound implements optim.Smoothing.Bound.
func (j *joint) bound(shard int, v, out []float64) error {
	n := j.parts[0].Smoothing.BoundLen
	for k, e := range j.parts {
		if err := e.Smoothing.Bound(shard, j.of(k, v), out[k*n:(k+1)*n]); err != nil {
			return err
		}
	}
	return nil
}

// gap implements optim.Smoothing.Gap. The sum of the lower bounds of the parts is a lower bound
// of the minimum of their sum.
func (j *joint) gap(v, sums []float64, l1, l2 float64) (objective, bound float64) {
	n := j.parts[0].Smoothing.BoundLen
	for k, e := range j.parts {
		own, least := e.Smoothing.Gap(j.of(k, v), sums[k*n:(k+1)*n], l1, l2)
		objective += own
		bound += least
	}
	return objective, bound
}

// refine implements optim.Smoothing.Refine.
func (j *joint) refine(shard int) error {
	for _, e := range j.parts {
		if err := e.Smoothing.Refine(shard); err != nil {
			return err
		}
	}
	return nil
}
