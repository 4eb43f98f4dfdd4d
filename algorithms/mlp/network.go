package mlp

import "github.com/superstep-ml/superstep/internal/kernel"

// network has layers of sizes d, h₁, …, out. One slice has all parameters, layer after layer:
// for each layer a matrix of weights, with a row for each input and a column for each unit,
// followed by the biases of the units. With this layout an entry of a sparse row adds a
// multiple of a row of the matrix to the sums of the units, and back-propagation multiplies
// errors with the matrix without transposing it.
type network struct {
	sizes      []int
	activation Activation
	parameters []float64
	at         []int            // offset of each layer in the parameters; the last element is the number of parameters
	forward    []*kernel.Packed // forward[l] has the weights of layer l as units × inputs; nil for the first layer if rows are sparse
	back       []*kernel.Packed // back[l] has the weights of layer l as inputs × units; nil for the first layer, and without training
	transposed []float64        // scratch memory of pack
}

// newNetwork returns a network whose parameters are zeros. If sparse is set, the first layer is
// not packed for matrix products. If trains is not set, the network cannot be used for
// back-propagation.
func newNetwork(sizes []int, activation Activation, sparse, trains bool) *network {
	n := &network{sizes: sizes, activation: activation, at: make([]int, 1, len(sizes))}
	largest := 0
	for l, out := range sizes[1:] {
		in := sizes[l]
		n.at = append(n.at, n.at[l]+(in+1)*out)
		n.forward, n.back = append(n.forward, nil), append(n.back, nil)
		if l > 0 || !sparse {
			n.forward[l] = kernel.NewPacked(out, in)
			largest = max(largest, in*out)
		}
		if trains && l > 0 {
			n.back[l] = kernel.NewPacked(in, out)
		}
	}
	n.parameters = make([]float64, n.at[len(n.at)-1])
	n.transposed = make([]float64, largest)
	return n
}

// layers returns the number of layers, without the inputs.
func (n *network) layers() int { return len(n.sizes) - 1 }

// weights and biases return the part of parameters that has the weights or the biases of layer
// l.
func (n *network) weights(l int, parameters []float64) []float64 {
	return parameters[n.at[l] : n.at[l]+n.sizes[l]*n.sizes[l+1]]
}

func (n *network) biases(l int, parameters []float64) []float64 {
	return parameters[n.at[l]+n.sizes[l]*n.sizes[l+1] : n.at[l+1]]
}

// pack copies the weights to forward and back, in the form that matrix products need.
func (n *network) pack() {
	for l := range n.layers() {
		in, out := n.sizes[l], n.sizes[l+1]
		w := n.weights(l, n.parameters)
		if n.forward[l] != nil {
			t := n.transposed[:in*out]
			for i := range in {
				for o, v := range w[i*out : (i+1)*out] {
					t[o*in+i] = v
				}
			}
			n.forward[l].Set(t)
		}
		if n.back[l] != nil {
			n.back[l].Set(w)
		}
	}
}

// pass has the results of all layers for a number of rows. It belongs to one goroutine.
type pass struct {
	x      []float64   // dense rows, scaled; nil if rows are sparse
	values [][]float64 // values[l] has the results of the units of layer l; for the last layer, the sums of the units
	errors [][]float64 // errors[l] has the derivatives of the loss with respect to the sums of the units of layer l
}

func newPass(n *network, rows int, sparse, trains bool) *pass {
	p := &pass{}
	if !sparse {
		p.x = make([]float64, rows*n.sizes[0])
	}
	for _, out := range n.sizes[1:] {
		p.values = append(p.values, make([]float64, rows*out))
		if trains {
			p.errors = append(p.errors, make([]float64, rows*out))
		}
	}
	return p
}

// multiply computes the sums of the first layer, without biases, for dense rows.
func (n *network) multiply(p *pass, rows int) {
	kernel.MulRows(p.x, rows, n.forward[0], p.values[0])
}

// addInput adds the value x of input j of a sparse row to the sums of the first layer, which
// must be 0 before the first call. If the inputs are added in ascending order, the sums have
// the same bits as the sums that multiply computes.
func (n *network) addInput(j int, x float64, sums []float64) {
	out := n.sizes[1]
	kernel.Axpy(x, n.parameters[j*out:(j+1)*out], sums)
}

// finish computes the results of all layers from the sums of the first layer.
func (n *network) finish(p *pass, rows int) {
	for l := range n.layers() {
		out := n.sizes[l+1]
		values := p.values[l][:rows*out]
		if l > 0 {
			kernel.MulRows(p.values[l-1], rows, n.forward[l], values)
		}
		biases := n.biases(l, n.parameters)
		for i := range rows {
			kernel.AddTo(values[i*out:(i+1)*out], biases)
		}
		if l < n.layers()-1 {
			n.activation.apply(values)
		}
	}
}

// apply replaces sums by the values of the activation function.
func (a Activation) apply(values []float64) {
	switch a {
	case Tanh:
		kernel.TanhTo(values, values)
	case Logistic:
		kernel.SigmoidTo(values, values)
	default:
		for i, v := range values {
			if v < 0 {
				values[i] = 0
			}
		}
	}
}

// slope multiplies errors with the derivatives of the activation function, which it computes
// from the function's values.
func (a Activation) slope(values, errors []float64) {
	switch a {
	case Tanh:
		for i, v := range values {
			errors[i] *= 1 - float64(v*v)
		}
	case Logistic:
		for i, v := range values {
			errors[i] *= v * (1 - v)
		}
	default:
		for i, v := range values {
			if !(v > 0) {
				errors[i] = 0
			}
		}
	}
}

// propagate computes the errors of all layers from the errors of the last layer. It adds to
// gradient the derivatives with respect to all parameters except the weights of the first
// layer.
func (n *network) propagate(p *pass, rows int, gradient []float64) {
	for l := n.layers() - 1; l >= 0; l-- {
		in, out := n.sizes[l], n.sizes[l+1]
		errors := p.errors[l][:rows*out]
		biases := n.biases(l, gradient)
		for i := range rows {
			kernel.AddTo(biases, errors[i*out:(i+1)*out])
		}
		if l == 0 {
			return
		}
		kernel.AddOuterRows(errors, rows, out, p.values[l-1], in, n.weights(l, gradient))
		kernel.MulRows(errors, rows, n.back[l], p.errors[l-1])
		n.activation.slope(p.values[l-1][:rows*in], p.errors[l-1][:rows*in])
	}
}
