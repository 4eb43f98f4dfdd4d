package mlp

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// objective is the penalised loss of a network over checked rows.
//
// The optimiser's parameters are how far those of the network are from the first ones,
// which are drawn when the numbers of features and classes are known. So the penalty,
// which is on the network's weights, is part of the loss of every row.
type objective struct {
	params Params
	table  rows.Table
}

// evaluator has the rows of a subtask.
type evaluator struct {
	params       Params
	facts        *rows.Facts
	lo           int
	blocks       []*rows.Block
	shift, scale []float64 // of the features: (x − shift)·scale
	sparse       bool
	first        []float64 // the network's first parameters
	net          *network
	pass         *pass
	list         []int32   // rows of a chunk
	none         []float64 // factors of the optimiser's penalty: zeros
}

// chunk is how many rows pass the layers together.
const chunk = 64

// Open implements optim.Objective.
func (o objective) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	data, err := o.table.Open(ctx)
	if err != nil {
		return optim.Evaluator{}, err
	}
	own := ctx.Shards()
	e, err := newEvaluator(o.params, data.Facts, o.table.Sparse)
	if err != nil {
		return optim.Evaluator{}, err
	}
	e.lo, e.blocks = own.Lo, make([]*rows.Block, own.Len())
	err = ctx.ForShards(func(shard int) error {
		e.blocks[shard-own.Lo] = data.Block(shard)
		return nil
	})
	return e.functions(), err
}

func newEvaluator(p Params, f *rows.Facts, sparse bool) (*evaluator, error) {
	sizes, err := p.sizes(f)
	if err != nil {
		return nil, err
	}
	e := &evaluator{params: p, facts: f, sparse: sparse, net: newNetwork(sizes, p.Activation, sparse, true), list: make([]int32, 0, chunk)}
	e.pass = newPass(e.net, chunk, sparse, true)
	e.shift, e.scale = p.scaling(f, sparse)
	e.first, e.none = make([]float64, len(e.net.parameters)), make([]float64, len(e.net.parameters))
	e.draw()
	return e, nil
}

// scaling returns what is subtracted from features and what they are multiplied with. A
// constant feature tells nothing and becomes 0.
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

// draw makes the first parameters: uniform about 0 within √(6/(inputs+units)), for
// Logistic √(2/(inputs+units)) (Glorot and Bengio, "Understanding the difficulty of
// training deep feedforward neural networks", AISTATS 2010). A weight is a function of the
// seed, the layer, the declared feature and the unit alone.
func (e *evaluator) draw() {
	n := e.net
	for l := range n.layers() {
		in, out := n.sizes[l], n.sizes[l+1]
		six := 6.0
		if e.params.Activation == Logistic {
			six = 2
		}
		wide := 2 * math.Sqrt(six/float64(in+out))
		weights, biases := n.weights(l, e.first), n.biases(l, e.first)
		draws := shared.NewRandom(e.params.Seed, "weights", -1, l)
		for i := range in {
			input := i
			if l == 0 && e.facts.Columns != nil {
				input = int(e.facts.Columns[i])
			}
			for o := range out {
				weights[i*out+o] = wide * (draws.Float64At(uint64(input)*uint64(out)+uint64(o)) - 0.5)
			}
		}
		draws = shared.NewRandom(e.params.Seed, "biases", -1, l)
		for o := range biases {
			biases[o] = wide * (draws.Float64At(uint64(o)) - 0.5)
		}
	}
}

// functions returns what the optimiser has of the evaluator. The penalty is part of the loss.
func (e *evaluator) functions() optim.Evaluator {
	f := optim.Evaluator{
		Dim: len(e.first), Weight: e.facts.Weight, PenaltyFactors: e.none, Evaluate: e.evaluate,
		GradientUnit: 1, Minibatch: optim.Minibatch{Rows: e.count, Evaluate: e.evaluateRows},
	}
	if e.params.Task == Regression && e.facts.LabelStd > 0 {
		f.GradientUnit = e.facts.LabelStd // slopes of squares have the unit of the labels
	}
	return f
}

// count is Rows of optim.Minibatch.
func (e *evaluator) count(shard int) int {
	if b := e.blocks[shard-e.lo]; b != nil {
		return b.N
	}
	return 0
}

// evaluate is Evaluate of optim.Evaluator.
func (e *evaluator) evaluate(shard int, v, out []float64) error {
	b := e.blocks[shard-e.lo]
	e.move(v)
	var weight float64
	for lo := 0; lo < b.N; lo += chunk {
		list := e.list[:0]
		for i := lo; i < min(lo+chunk, b.N); i++ {
			list = append(list, int32(i))
		}
		weight += e.rows(b, list, out)
	}
	e.penalise(weight, out)
	return nil
}

// evaluateRows is Evaluate of optim.Minibatch.
func (e *evaluator) evaluateRows(shard int, list []int32, v, out []float64) error {
	b := e.blocks[shard-e.lo]
	e.move(v)
	var weight float64
	for lo := 0; lo < len(list); lo += chunk {
		weight += e.rows(b, list[lo:min(lo+chunk, len(list))], out)
	}
	e.penalise(weight, out)
	out[1+len(e.first)] += weight
	return nil
}

// move sets the network to parameters of the optimiser.
func (e *evaluator) move(v []float64) {
	for i, first := range e.first {
		e.net.parameters[i] = first + v[i]
	}
	e.net.pack()
}

// rows adds loss and gradient of up to chunk rows and returns their weight.
func (e *evaluator) rows(b *rows.Block, list []int32, out []float64) float64 {
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

// load computes the sums of the first layer for rows.
func (e *evaluator) load(b *rows.Block, list []int32) {
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

// lossOf returns the loss of row i of a chunk and writes the errors of its outputs, times
// its weight.
func (e *evaluator) lossOf(i int, label, weight float64) float64 {
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
	top, sum := kernel.SoftmaxTo(z, z)
	loss := top + kernel.Log(sum) - own
	for c, p := range z {
		if c == int(label) {
			p--
		}
		errors[c] = weight * p
	}
	return loss
}

// penalise adds the penalty of rows of a weight.
func (e *evaluator) penalise(weight float64, out []float64) {
	if e.params.L2 == 0 {
		return
	}
	for l := range e.net.layers() {
		w := e.net.weights(l, e.net.parameters)
		out[0] += float64(0.5 * weight * e.params.L2 * kernel.Dot(w, w))
		kernel.Axpy(weight*e.params.L2, w, e.net.weights(l, out[1:1+len(e.first)]))
	}
}
