package svm

import (
	"encoding/binary"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// joint evaluates the sum of several objectives over the same rows, each with parameters of
// its own, which stand one behind the other: those of the classes of a classifier. It belongs
// to the goroutine of its subtask.
type joint struct {
	parts   []*objective.Evaluator
	width   int // parameters of a part
	factors []float64
	room    []float64 // what one part gives
}

// Every optimiser can run on it.
var (
	_ optim.LinearEvaluator  = (*joint)(nil)
	_ optim.CurvedEvaluator  = (*joint)(nil)
	_ optim.SampledEvaluator = (*joint)(nil)
	_ optim.StagedEvaluator  = (*joint)(nil)
	_ optim.SteadyEvaluator  = (*joint)(nil)

	_ optim.SnapshotEvaluator = (*joint)(nil)
)

func newJoint(parts []*objective.Evaluator) *joint {
	j := &joint{parts: parts, width: parts[0].Len()}
	for _, e := range parts {
		j.factors = append(j.factors, e.Factors()...)
	}
	return j
}

// of returns the parameters of a part.
func (j *joint) of(part int, v []float64) []float64 {
	return v[part*j.width : (part+1)*j.width]
}

// Len implements optim.Evaluator.
func (j *joint) Len() int { return len(j.factors) }

// Weight implements optim.Evaluator: all parts have the same.
func (j *joint) Weight() float64 { return j.parts[0].Weight() }

// Factors implements optim.Evaluator.
func (j *joint) Factors() []float64 { return j.factors }

// Steady implements optim.SteadyEvaluator.
func (j *joint) Steady() {
	for _, e := range j.parts {
		e.Steady()
	}
}

// zeros returns room for n numbers.
func (j *joint) zeros(n int) []float64 {
	if cap(j.room) < n {
		j.room = make([]float64, n)
	}
	j.room = j.room[:n]
	clear(j.room)
	return j.room
}

// each has every part add its loss and gradient, which evaluate writes to room of their
// own, to out.
func (j *joint) each(out []float64, evaluate func(part int, e *objective.Evaluator, out []float64) error) error {
	for k, e := range j.parts {
		own := j.zeros(1 + j.width)
		if err := evaluate(k, e, own); err != nil {
			return err
		}
		j.add(k, own, out)
	}
	return nil
}

// add adds loss and gradient of a part to those of all.
func (j *joint) add(part int, own, out []float64) {
	out[0] += own[0]
	gradient := j.of(part, out[1:])
	for i, g := range own[1 : 1+j.width] {
		gradient[i] += g
	}
}

// Evaluate implements optim.Evaluator.
func (j *joint) Evaluate(shard int, v, out []float64) error {
	return j.each(out, func(k int, e *objective.Evaluator, out []float64) error { return e.Evaluate(shard, j.of(k, v), out) })
}

// Start implements optim.LinearEvaluator.
func (j *joint) Start(shard int, v, out []float64) error {
	return j.each(out, func(k int, e *objective.Evaluator, out []float64) error { return e.Start(shard, j.of(k, v), out) })
}

// Along implements optim.LinearEvaluator.
func (j *joint) Along(shard int, p []float64, step float64, out []float64) error {
	return j.each(out, func(k int, e *objective.Evaluator, out []float64) error { return e.Along(shard, j.of(k, p), step, out) })
}

// Gradient implements optim.LinearEvaluator.
func (j *joint) Gradient(shard int, step float64, out []float64) error {
	return j.each(out, func(_ int, e *objective.Evaluator, out []float64) error { return e.Gradient(shard, step, out) })
}

// Trials implements optim.LinearEvaluator.
func (j *joint) Trials(shard int, steps, out []float64) error {
	for _, e := range j.parts {
		if err := e.Trials(shard, steps, out); err != nil {
			return err
		}
	}
	return nil
}

// Advance implements optim.LinearEvaluator.
func (j *joint) Advance(shard int, step float64) error {
	for _, e := range j.parts {
		if err := e.Advance(shard, step); err != nil {
			return err
		}
	}
	return nil
}

// AppendSnapshot implements optim.SnapshotEvaluator: those of the parts, each behind its length
// in 8 bytes, little-endian.
func (j *joint) AppendSnapshot(shard int, dst []byte) ([]byte, error) {
	out := dst
	for _, e := range j.parts {
		at := len(out)
		all, err := e.AppendSnapshot(shard, append(out, make([]byte, 8)...))
		if err != nil {
			return dst, err
		}
		binary.LittleEndian.PutUint64(all[at:], uint64(len(all)-at-8))
		out = all
	}
	return out, nil
}

// RestoreSnapshot implements optim.SnapshotEvaluator.
func (j *joint) RestoreSnapshot(shard int, src []byte) error {
	for k, e := range j.parts {
		var n uint64
		if len(src) >= 8 {
			n = binary.LittleEndian.Uint64(src)
			src = src[8:]
		}
		if n > uint64(len(src)) {
			return fmt.Errorf("the snapshot of part %d ends after %d of %d bytes", k, len(src), n)
		}
		if err := e.RestoreSnapshot(shard, src[:n]); err != nil {
			return err
		}
		src = src[n:]
	}
	return nil
}

// Hessian implements optim.CurvedEvaluator. Parts have no second derivatives in common: the
// matrix has theirs as blocks on its diagonal.
func (j *joint) Hessian(shard int, v, out []float64) error {
	n, all := j.width, j.Len()
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

// Rows implements optim.SampledEvaluator.
func (j *joint) Rows(shard int) int { return j.parts[0].Rows(shard) }

// EvaluateRows implements optim.SampledEvaluator.
func (j *joint) EvaluateRows(shard int, indices []int32, v, out []float64) error {
	for k, e := range j.parts {
		own := j.zeros(2 + j.width)
		if err := e.EvaluateRows(shard, indices, j.of(k, v), own); err != nil {
			return err
		}
		j.add(k, own, out)
		if k == 0 { // the weight of the rows
			out[1+j.Len()] += own[1+j.width]
		}
	}
	return nil
}

// BoundLen implements optim.StagedEvaluator.
func (j *joint) BoundLen() int { return len(j.parts) * j.parts[0].BoundLen() }

// Bound implements optim.StagedEvaluator.
func (j *joint) Bound(shard int, v, out []float64) error {
	n := j.parts[0].BoundLen()
	for k, e := range j.parts {
		if err := e.Bound(shard, j.of(k, v), out[k*n:(k+1)*n]); err != nil {
			return err
		}
	}
	return nil
}

// Gap implements optim.StagedEvaluator: the bounds of the parts add up to one of the sum.
func (j *joint) Gap(v, sums []float64, l1, l2 float64) (objective, bound float64) {
	n := j.parts[0].BoundLen()
	for k, e := range j.parts {
		own, least := e.Gap(j.of(k, v), sums[k*n:(k+1)*n], l1, l2)
		objective += own
		bound += least
	}
	return objective, bound
}

// Tighten implements optim.StagedEvaluator.
func (j *joint) Tighten(shard int) error {
	for _, e := range j.parts {
		if err := e.Tighten(shard); err != nil {
			return err
		}
	}
	return nil
}
