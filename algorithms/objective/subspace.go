package objective

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// probeRows is roughly the number of probed rows of all shards, if rows have one margin. With
// this number, the estimate of curvature has a relative error of a few hundredths.
const probeRows = 4096

// probed has what a shard stores for its probed rows. They are a sample of the rows, on which
// package optim estimates curvatures and slopes.
type probed struct {
	rows []int32
	own  *shardRows                   // copies of the probed rows in one block; nil if there are more of them than fit in a chunk
	q    []float64                    // margins of the direction for the probed rows, row by row
	past [optim.LatestSteps][]float64 // ring buffer of the margins of the latest steps for the probed rows
	next int                          // position of the next step in past
}

// newProbed returns a sample of the rows of a shard, spread evenly over the shard.
func (e *evaluator) newProbed(s *shardRows) *probed {
	n := min(s.N, max(1, probeRows/(e.total*e.k)))
	p := &probed{rows: make([]int32, n), q: make([]float64, n*e.k)}
	for i := range p.rows {
		p.rows[i] = int32(i * s.N / n)
	}
	for i := range p.past {
		p.past[i] = make([]float64, n*e.k)
	}
	if n <= s.chunk {
		part := e.gather(s, p.rows)
		b := *part.Block
		b.Dense, b.Label, b.Offset, b.Censor = slices.Clone(b.Dense), slices.Clone(b.Label), slices.Clone(b.Offset), slices.Clone(b.Censor)
		b.Sparse = kernel.CSR{RowPtr: slices.Clone(b.Sparse.RowPtr), Col: slices.Clone(b.Sparse.Col), Val: slices.Clone(b.Sparse.Val)}
		b.Sparse = b.Sparse.Checked(e.columns(s))
		p.own = &shardRows{Block: &b, weight: slices.Clone(part.weight)}
	}
	return p
}

// probedRows returns the chosen rows of a shard, which are probed rows. Unless features is set,
// it may omit their features.
func (e *evaluator) probedRows(s *shardRows, chosen []int32, features bool) *shardRows {
	own := s.probed.own
	switch {
	case own != nil && s.prox == nil && s.mu == 0:
		return own
	case own == nil && features:
		return e.gather(s, chosen)
	}
	part := e.gatherLabels(s, chosen)
	if features {
		part.Dense, part.Sparse = own.Dense, own.Sparse
	}
	return part
}

// note stores the margins of a step, which are step times q. q has the margins of the
// direction.
func (p *probed) note(step float64, q []float64, k int) {
	to := p.past[p.next]
	p.next = (p.next + 1) % len(p.past)
	if k == 1 {
		for i, row := range p.rows {
			to[i] = step * q[row]
		}
		return
	}
	for i, row := range p.rows {
		for a, v := range q[int(row)*k : (int(row)+1)*k] {
			to[i*k+a] = step * v
		}
	}
}

// margins returns the margins of the probed rows: of the direction for i = 0, or of the i-th
// latest step for i ≥ 1.
func (p *probed) margins(i int) []float64 {
	if i == 0 {
		return p.q
	}
	return p.past[(p.next-i+len(p.past))%len(p.past)]
}

// probeWork is the memory for a chunk of probed rows.
type probeWork struct {
	m, q  []float64
	curve []float64
}

// subspaceHessian implements Hessian of optim.Subspace.
func (e *evaluator) subspaceHessian(shard int, p []float64, latest int, out []float64) error {
	s, w := e.at(shard), &e.probe
	e.point(s, p)
	for lo := 0; lo < len(s.probed.rows); lo += s.chunk {
		chosen := s.probed.rows[lo:min(lo+s.chunk, len(s.probed.rows))]
		part := e.probedRows(s, chosen, true)
		n := part.N
		e.margins(part.Block, nil, s.probed.q[lo*e.k:(lo+n)*e.k])
		w.curve = kernel.Sized(w.curve, n*e.k*(e.k+1)/2)
		e.batch.Curve, e.batch.SlopesOnly, e.batch.Stepping = w.curve, true, true
		e.lossAt(part, part.Block, 0, e.current(s, chosen))
		e.batch.Curve, e.batch.SlopesOnly, e.batch.Stepping = nil, false, false
		at := 0
		for i := range latest + 1 {
			x := s.probed.margins(i)[lo*e.k : (lo+n)*e.k]
			for j := range i + 1 {
				y := s.probed.margins(j)[lo*e.k : (lo+n)*e.k]
				out[at] = e.addCurvatures(part, x, y, out[at])
				at++
			}
		}
		for i := range n {
			out[at] += part.of(i)
		}
	}
	return nil
}

// current writes the margins of the chosen rows of a shard at the current point to e.probe, and
// returns them.
func (e *evaluator) current(s *shardRows, chosen []int32) []float64 {
	w := &e.probe
	w.m = kernel.Sized(w.m, len(chosen)*e.k)
	if e.k == 1 {
		for i, row := range chosen {
			w.m[i] = s.m[row]
		}
		return w.m
	}
	for i, row := range chosen {
		copy(w.m[i*e.k:(i+1)*e.k], s.m[int(row)*e.k:])
	}
	return w.m
}

// of returns the weight of row i of the shard.
func (s *shardRows) of(i int) float64 {
	if s.weight == nil {
		return 1
	}
	return s.weight[i]
}

// addCurvatures returns sum plus weight times the second derivative in the directions of
// margins x and y, for the rows whose curvatures are in e.probe.
func (e *evaluator) addCurvatures(part *shardRows, x, y []float64, sum float64) float64 {
	n := part.N
	if e.k == 1 && part.weight == nil {
		curve, x, y := e.probe.curve[:n], x[:n], y[:n]
		for i, c := range curve {
			sum += float64(c * float64(x[i]*y[i]))
		}
		return sum
	}
	for i := range n {
		weight := part.of(i)
		if weight == 0 {
			continue
		}
		var bend float64
		at := i
		for a := range e.k {
			xa, ya := x[i*e.k+a], y[i*e.k+a]
			for b := range a {
				both := float64(xa*y[i*e.k+b]) + float64(x[i*e.k+b]*ya)
				bend += float64(e.probe.curve[at] * both)
				at += n
			}
			bend += float64(e.probe.curve[at] * float64(xa*ya))
			at += n
		}
		sum += float64(weight * bend)
	}
	return sum
}

// subspaceSlopes implements Slopes of optim.Subspace.
func (e *evaluator) subspaceSlopes(shard int, mix, steps, out []float64) error {
	s, w := e.at(shard), &e.probe
	for lo := 0; lo < len(s.probed.rows); lo += s.chunk {
		chosen := s.probed.rows[lo:min(lo+s.chunk, len(s.probed.rows))]
		part := e.probedRows(s, chosen, false)
		n := part.N
		w.q = kernel.Sized(w.q, n*e.k)
		clear(w.q)
		for i, c := range mix {
			for j, q := range s.probed.margins(i)[lo*e.k : (lo+n)*e.k] {
				w.q[j] += float64(c * q)
			}
		}
		e.current(s, chosen)
		e.probeSteps(part, steps, out)
		for i := range n {
			out[len(steps)] += part.of(i)
		}
	}
	return nil
}

// probeSteps adds to out the derivatives of the rows whose margins are in e.probe.
func (e *evaluator) probeSteps(part *shardRows, steps, out []float64) {
	w := &e.probe
	e.batch.SlopesOnly = true
	defer func() { e.batch.SlopesOnly = false }()
	for i, step := range steps {
		t := e.margin[:part.N*e.k]
		kernel.AddScaledTo(t, w.m, step, w.q)
		e.lossAt(part, part.Block, 0, t)
		_ = e.addLoss(part, 0, part.N, 0)
		slope := out[i]
		for j, c := range e.pull {
			slope += float64(c * w.q[j])
		}
		out[i] = slope
	}
}
