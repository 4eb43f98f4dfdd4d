package objective

import "github.com/superstep-ml/superstep/internal/kernel"

// trialRows is the number of rows in a chunk if no features are read.
const trialRows = 256

// keep allocates memory for the margins of a shard in the first call.
func (e *evaluator) keep(s *shardRows) {
	if s.m == nil {
		s.m, s.q = make([]float64, s.N*e.k), make([]float64, s.N*e.k)
		e.grow(trialRows)
	}
}

// choose chooses the rows of a shard that are probed, in the first call. It is called just
// after the shard was read, when its rows are in a cache.
func (e *evaluator) choose(s *shardRows) {
	if s.probed == nil {
		s.probed = e.newProbed(s)
	}
}

// start implements Start of optim.Margins.
func (e *evaluator) start(shard int, v, out []float64) error {
	s := e.at(shard)
	e.keep(s)
	e.point(s, v)
	err := e.pass(s, atStart, 0, out)
	e.choose(s)
	return err
}

// direction implements Direction of optim.Margins.
func (e *evaluator) direction(shard int, p []float64, step float64, out []float64) error {
	s := e.at(shard)
	e.point(s, p)
	return e.pass(s, onRay, step, out)
}

// moved returns the margins of the rows [lo, lo+n) at the current point plus step times the
// direction.
func (e *evaluator) moved(s *shardRows, lo, n int, step float64) []float64 {
	t := e.margin[:n*e.k]
	m, q := s.m[lo*e.k:(lo+n)*e.k], s.q[lo*e.k:(lo+n)*e.k]
	kernel.AddScaledTo(t, m, step, q)
	return t
}

// trials implements Trials of optim.Margins.
func (e *evaluator) trials(shard int, steps, out []float64) error {
	s := e.at(shard)
	for lo := 0; lo < s.N; lo += trialRows {
		if err := e.interrupted(); err != nil {
			return err
		}
		part := s.Rows(lo, min(lo+trialRows, s.N))
		q := s.q[lo*e.k : (lo+part.N)*e.k]
		for i, step := range steps {
			e.lossAt(s, &part, lo, e.moved(s, lo, part.N, step))
			out[2*i] = e.addLoss(s, lo, part.N, out[2*i])
			slope := out[2*i+1]
			for j, c := range e.pull {
				slope += float64(c * q[j])
			}
			out[2*i+1] = slope
		}
	}
	return nil
}

// gradient implements Gradient of optim.Margins.
func (e *evaluator) gradient(shard int, step float64, out []float64) error {
	return e.pass(e.at(shard), onStep, step, out)
}

// advance implements Advance of optim.Margins.
func (e *evaluator) advance(shard int, step float64) error {
	s := e.at(shard)
	s.probed.note(step, s.q, e.k)
	kernel.Axpy(step, s.q, s.m)
	return nil
}
