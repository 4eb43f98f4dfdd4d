package objective

// probeRows is how many rows of a shard, with one margin, are probed.
const probeRows = 32

// probeWork is the room for the rows of a shard that are probed.
type probeWork struct {
	rows []int32
	m, q []float64
}

// Probe implements optim.ProbingEvaluator. The rows are spread over the shard.
func (e *Evaluator) Probe(shard int, p, steps, out []float64) error {
	s, w := e.at(shard), &e.probe
	n := min(s.N, max(1, probeRows/e.k))
	w.rows = w.rows[:0]
	for i := range n {
		w.rows = append(w.rows, int32(i*s.N/n))
	}
	e.point(s, p)
	for lo := 0; lo < n; lo += s.chunk {
		chosen := w.rows[lo:min(lo+s.chunk, n)]
		part := e.gather(s, chosen)
		w.m, w.q = atLeast(w.m, part.N*e.k), atLeast(w.q, part.N*e.k)
		for i, row := range chosen {
			copy(w.m[i*e.k:(i+1)*e.k], s.m[int(row)*e.k:])
		}
		e.margins(part.Block, nil, w.q)
		e.probeSteps(part, steps, out)
		for i := range part.N {
			weight := 1.0
			if part.weight != nil {
				weight = part.weight[i]
			}
			out[len(steps)] += weight
		}
	}
	return nil
}

// probeSteps adds the derivatives of the rows whose margins are in the room.
func (e *Evaluator) probeSteps(part *shardRows, steps, out []float64) {
	w := &e.probe
	for i, step := range steps {
		t := e.margin[:part.N*e.k]
		for j, q := range w.q {
			t[j] = w.m[j] + float64(step*q)
		}
		e.lossAt(part, part.Block, 0, t)
		_ = e.addLoss(part, 0, part.N, 0)
		slope := out[i]
		for j, c := range e.pull {
			slope += float64(c * w.q[j])
		}
		out[i] = slope
	}
}
