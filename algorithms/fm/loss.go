package fm

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// loss is the penalised loss of a machine.
type loss struct {
	params  Params
	first   []float64 // the machine's initial parameters
	machine machine
	sums    []float64 // for one row: the sum of each factor, then the sum of squares of each factor
}

// newLoss returns a loss with its initial parameters. An initial factor depends only on the
// seed, the declared feature and the factor's index.
func newLoss(p Params, f *rows.Facts) *loss {
	d, k := f.Dim(), p.Factors
	l := &loss{params: p, first: make([]float64, 1+d+d*k), sums: make([]float64, 2*k), machine: machine{d: d, k: k}}
	draws := sharding.NewRandom(p.Seed, "factors", -1, 0)
	wide := 2 * spreadOf(p.InitialSpread)
	for j := range d {
		feature := j
		if f.Columns != nil {
			feature = int(f.Columns[j])
		}
		for c := range k {
			l.first[1+d+j*k+c] = wide * (draws.Float64At(uint64(feature)*uint64(k)+uint64(c)) - 0.5)
		}
	}
	return l
}

// First implements nonconvex.Loss.
func (l *loss) First() []float64 { return l.first }

// Move implements nonconvex.Loss.
func (l *loss) Move(parameters []float64) { l.machine.parameters = parameters }

// Add implements nonconvex.Loss.
func (l *loss) Add(b *rows.Block, list []int32, weight float64, out []float64) float64 {
	for _, i := range list {
		weight += l.row(b, int(i), out)
	}
	return weight
}

// row adds loss and gradient of row i to out, and returns the weight of the row.
func (l *loss) row(b *rows.Block, i int, out []float64) float64 {
	var col []int32
	var val []float64
	if b.Dense != nil {
		val = b.Dense[i*b.D : (i+1)*b.D]
	} else {
		col, val = b.Sparse.Row(i)
		if len(col) == 0 {
			val = nil
		}
	}
	weight := 1.0
	if b.Weight != nil {
		weight = b.Weight[i]
	}
	loss, slope := lossOf(l.params.Task, l.machine.margin(col, val, l.sums), b.Label[i])
	out[0] += float64(weight * loss)
	gradient := out[1 : 1+len(l.first)]
	l.machine.addGradient(float64(weight*slope), col, val, l.sums, gradient)
	if l.params.NoIntercept {
		gradient[0] = 0
	}
	return weight
}

// Penalise implements nonconvex.Loss.
func (l *loss) Penalise(weight float64, out []float64) {
	d := l.machine.d
	linear, factors := l.machine.parameters[1:1+d], l.machine.parameters[1+d:]
	if l2 := l.params.L2; l2 > 0 {
		out[0] += float64(0.5 * weight * l2 * kernel.Dot(linear, linear))
		kernel.Axpy(weight*l2, linear, out[2:2+d])
	}
	if l2 := l.params.L2Factors; l2 > 0 {
		out[0] += float64(0.5 * weight * l2 * kernel.Dot(factors, factors))
		kernel.Axpy(weight*l2, factors, out[2+d:1+len(l.first)])
	}
}
