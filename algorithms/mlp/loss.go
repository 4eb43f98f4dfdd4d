package mlp

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/nonconvex"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// loss is the penalised loss of a network.
type loss struct {
	params       Params
	facts        *rows.Facts
	shift, scale []float64 // a feature x is read as (x − shift)·scale
	sparse       bool
	first        []float64 // the network's initial parameters
	net          *network
	pass         *pass
}

// newLoss returns a loss with its initial parameters.
func newLoss(p Params, f *rows.Facts, sparse bool) (*loss, error) {
	sizes, err := p.sizes(f)
	if err != nil {
		return nil, err
	}
	e := &loss{params: p, facts: f, sparse: sparse, net: newNetwork(sizes, p.Activation, sparse, true)}
	e.pass = newPass(e.net, nonconvex.Chunk, sparse, true)
	e.shift, e.scale = p.scaling(f, sparse)
	e.first = make([]float64, len(e.net.parameters))
	e.draw()
	return e, nil
}

// First implements nonconvex.Loss.
func (e *loss) First() []float64 { return e.first }

// Move implements nonconvex.Loss.
func (e *loss) Move(parameters []float64) {
	e.net.parameters = parameters
	e.net.pack()
}

// scaling returns shift and scale for each feature: a feature x is read as (x − shift)·scale. A
// constant dense feature has the scale 0, because it has no information. A constant sparse
// feature is divided by its largest absolute value.
func (p Params) scaling(f *rows.Facts, sparse bool) (shift, scale []float64) {
	shift, scale = make([]float64, f.Dim()), make([]float64, f.Dim())
	for j := range scale {
		switch {
		case p.NoStandardize:
			scale[j] = 1
		case f.Std[j] > 0:
			scale[j] = 1 / f.Std[j]
			if !sparse {
				shift[j] = f.Mean[j]
			}
		case sparse && f.MaxAbs[j] > 0:
			scale[j] = 1 / f.MaxAbs[j]
		}
	}
	return shift, scale
}

// draw draws the initial parameters of each layer. They are uniform in ±√(6/(inputs+units)), or
// for Logistic in ±√(2/(inputs+units)) (Glorot and Bengio, "Understanding the difficulty of
// training deep feedforward neural networks", AISTATS 2010). A weight depends only on the seed,
// the layer, the declared feature and the unit.
func (e *loss) draw() {
	n := e.net
	for l := range n.layers() {
		in, out := n.sizes[l], n.sizes[l+1]
		six := 6.0
		if e.params.Activation == Logistic {
			six = 2
		}
		wide := 2 * math.Sqrt(six/float64(in+out))
		weights, biases := n.weights(l, e.first), n.biases(l, e.first)
		draws := sharding.NewRandom(e.params.Seed, "weights", -1, l)
		for i := range in {
			input := i
			if l == 0 && e.facts.Columns != nil {
				input = int(e.facts.Columns[i])
			}
			for o := range out {
				weights[i*out+o] = wide * (draws.Float64At(uint64(input)*uint64(out)+uint64(o)) - 0.5)
			}
		}
		draws = sharding.NewRandom(e.params.Seed, "biases", -1, l)
		for o := range biases {
			biases[o] = wide * (draws.Float64At(uint64(o)) - 0.5)
		}
	}
}

// Add implements nonconvex.Loss.
func (e *loss) Add(b *rows.Block, list []int32, weight float64, out []float64) float64 {
	return weight + e.rows(b, list, out)
}

// rows adds loss and gradient of the rows of b whose indices are in list to out, and returns
// the total weight of these rows.
func (e *loss) rows(b *rows.Block, list []int32, out []float64) float64 {
	n := len(list)
	e.load(b, list)
	e.net.finish(e.pass, n)
	weight := 0.0
	for i, row := range list {
		w := 1.0
		if b.Weight != nil {
			w = b.Weight[row]
		}
		weight += w
		out[0] += float64(w * e.lossOf(i, b.Label[row], w))
	}
	gradient := out[1 : 1+len(e.first)]
	e.net.propagate(e.pass, n, gradient)
	units := e.net.sizes[1]
	first := e.net.weights(0, gradient)
	if !e.sparse {
		kernel.AddOuterRows(e.pass.errors[0], n, units, e.pass.x, b.D, first)
		return weight
	}
	for i, row := range list {
		errors := e.pass.errors[0][i*units : (i+1)*units]
		col, val := b.Sparse.Row(int(row))
		for q, j := range col {
			kernel.Axpy(val[q]*e.scale[j], errors, first[int(j)*units:(int(j)+1)*units])
		}
	}
	return weight
}

// load computes the sums of the first layer, without biases, for the rows of b whose indices
// are in list.
func (e *loss) load(b *rows.Block, list []int32) {
	if !e.sparse {
		for i, row := range list {
			x, to := b.Dense[int(row)*b.D:(int(row)+1)*b.D], e.pass.x[i*b.D:(i+1)*b.D]
			for j, v := range x {
				to[j] = (v - e.shift[j]) * e.scale[j]
			}
		}
		e.net.multiply(e.pass, len(list))
		return
	}
	units := e.net.sizes[1]
	for i, row := range list {
		sums := e.pass.values[0][i*units : (i+1)*units]
		clear(sums)
		col, val := b.Sparse.Row(int(row))
		for q, j := range col {
			e.net.addInput(int(j), val[q]*e.scale[j], sums)
		}
	}
}

// lossOf returns the loss of row i of a chunk. It writes the derivatives of this loss with
// respect to the row's outputs, times the row's weight, to the errors of the last layer.
func (e *loss) lossOf(i int, label, weight float64) float64 {
	last := e.net.layers() - 1
	k := e.net.sizes[last+1]
	z, errors := e.pass.values[last][i*k:(i+1)*k], e.pass.errors[last][i*k:(i+1)*k]
	if e.params.Task == Regression {
		r := z[0] - label
		errors[0] = weight * r
		return 0.5 * float64(r*r)
	}
	if k == 1 {
		if label > 0 {
			errors[0] = -(weight * kernel.Sigmoid(-z[0]))
			return kernel.Softplus(-z[0])
		}
		errors[0] = weight * kernel.Sigmoid(z[0])
		return kernel.Softplus(z[0])
	}
	own := z[int(label)]
	largest, sum := kernel.Softmax(z)
	for c, p := range z {
		if c == int(label) {
			p--
		}
		errors[c] = weight * p
	}
	return largest + kernel.Log(sum) - own
}

// Penalise implements nonconvex.Loss.
func (e *loss) Penalise(weight float64, out []float64) {
	if e.params.L2 == 0 {
		return
	}
	for l := range e.net.layers() {
		w := e.net.weights(l, e.net.parameters)
		out[0] += float64(0.5 * weight * e.params.L2 * kernel.Dot(w, w))
		kernel.Axpy(weight*e.params.L2, w, e.net.weights(l, out[1:1+len(e.first)]))
	}
}
