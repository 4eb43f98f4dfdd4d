package objective

import "slices"

// order implements Ordered of optim.Evaluator. After the call, coefficients are computed from
// parameters once for all shards of a pass. With many features, computing them takes a
// considerable part of the time of a shard.
func (e *evaluator) order() { e.ordered = true }

// point computes the coefficients for the rows of a shard from v, which are parameters or a
// direction.
func (e *evaluator) point(s *shardRows, v []float64) {
	known := e.ordered && len(v) > 0 && e.of == &v[0] && s.number > e.latest
	e.latest, e.of = s.number, nil
	if len(v) > 0 {
		e.of = &v[0]
	}
	if !known {
		e.zero = e.ofZeros(v)
	}
	e.width = e.columns(s)
	if n := e.Margins * e.width; len(e.beta) < n {
		e.beta = make([]float64, n)
	}
	switch {
	case s.Columns != nil:
		e.unscaleSome(v, s.Columns, e.beta, e.add)
	case !known:
		e.unscale(v, e.beta, e.add)
		if e.packed != nil {
			e.packed.Set(e.beta)
		}
	}
}

// ofZeros reports whether all coefficients among the parameters v are 0.
func (e *evaluator) ofZeros(v []float64) bool {
	for a := range e.Margins {
		if slices.ContainsFunc(v[a*e.stride():a*e.stride()+e.d], func(p float64) bool { return p != 0 }) {
			return false
		}
	}
	return true
}

// columns returns the number of columns of the rows of a shard: d, or the number of columns of
// a narrow shard.
func (e *evaluator) columns(s *shardRows) int {
	if s.Columns != nil {
		return len(s.Columns)
	}
	return e.d
}
