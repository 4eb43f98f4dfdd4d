package onnx

import (
	"cmp"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// A graph cannot refuse a row. If a preparation would refuse a value that did not occur in
// training, the graph gives NaN instead. A graph cannot leave rows out.

// policy checks the policy for unknown values. It returns whether unknown values are kept as a
// category of their own.
func (b *builder) policy(u prepare.Unknown) (keep bool) {
	if u == prepare.Skip {
		b.fail("it skips rows with unknown values, and a graph cannot leave rows out: train it with another policy")
	}
	return u == prepare.Keep
}

func (b *builder) scaler(m *prepare.ScalerModel) {
	for i, name := range m.Columns {
		n := len(m.Shift[i])
		x := b.numbers(name, n)
		kind := b.madeKind(name)
		shift, scale := b.learned("shift", m.Shift[i], "shift", i), b.learned("scale", m.Scale[i], "scale", i)
		x = b.op("Div", []string{b.op("Sub", []string{x, shift}), scale})
		if m.Width != 1 {
			x = b.op("Mul", []string{x, b.constant("width", m.Width)})
		}
		if m.Low != 0 {
			x = b.op("Add", []string{x, b.constant("low", m.Low)})
		}
		if m.Clip {
			low, high := b.constant("least", m.Low), b.constant("most", m.Low+m.Width)
			x = b.op("Where", []string{b.op("Less", []string{x, low}), low, x})
			x = b.op("Where", []string{b.op("Greater", []string{x, high}), high, x})
		}
		b.output(m.Outputs[i], x, b.real, n, kind)
	}
}

// madeKind returns the type of the output for a column: a vector if the column is a vector, and
// a number otherwise.
func (b *builder) madeKind(name string) string {
	if c := b.find(name); model.IsVector(c.kind) {
		return "vector"
	}
	return "float64"
}

func (b *builder) imputer(m *prepare.ImputerModel) {
	p := m.Params
	for i, name := range p.Columns {
		fill, out := m.Fills[i], prepare.OutputNames(p.Columns, p.Outputs)[i]
		c := b.find(name)
		if c.elem == typeString {
			missing := b.op("Equal", []string{c.tensor, b.texts("missing", "")})
			filled := b.op("Where", []string{missing, b.texts("fill", fill.Value), c.tensor})
			b.output(out, filled, typeString, 1, c.kind)
			continue
		}
		var value string
		n, kind := 1, c.kind
		if len(fill.Numbers) > 0 {
			n, kind = len(fill.Numbers), b.madeKind(name)
			value = b.learned("fill", fill.Numbers, "fills", i, "numbers")
		} else {
			v, err := prepare.CategoryNumber(c.kind, fill.Value)
			if err != nil {
				b.fail("column %q: %w", name, err)
			}
			value = b.constant("fill", v)
		}
		x := b.numbers(name, n)
		b.output(out, b.op("Where", []string{b.op("IsNaN", []string{x}), value, x}), b.real, n, kind)
	}
}

// index returns a tensor with the numbers of the categories in a column, and -1 for other
// values.
func (b *builder) index(name string, values []string) string {
	c := b.find(name)
	numbers := make([]int64, len(values))
	for i := range numbers {
		numbers[i] = int64(i)
	}
	if c.elem == typeString {
		return b.node(mlDomain, "LabelEncoder", []string{c.tensor}, 1,
			textsAttr("keys_strings", values), intsAttr("values_int64s", numbers), intAttr("default_int64", -1))[0]
	}
	keys := make([]float64, len(values))
	for i, text := range values {
		v, err := prepare.CategoryNumber(c.kind, text)
		if err == nil && b.real == typeFloat && float64(float32(v)) != v {
			err = fmt.Errorf("the category %s is no number of float32", text)
		}
		if err != nil {
			b.fail("column %q: %w", name, err)
		}
		keys[i] = v
	}
	x := b.numbers(name, 1)
	if b.real == typeFloat {
		floats := make([]float32, len(keys))
		for i, v := range keys {
			floats[i] = float32(v)
		}
		return b.node(mlDomain, "LabelEncoder", []string{x}, 1, attribute{name: "keys_floats", kind: attrFloats, floats: floats},
			intsAttr("values_int64s", numbers), intAttr("default_int64", -1))[0]
	}
	tensorAttr := func(name string, t tensor) attribute {
		return attribute{name: name, kind: attrTensor, t: &t}
	}
	return b.node(mlDomain, "LabelEncoder", []string{x}, 1,
		tensorAttr("keys_tensor", b.tensorOf("keys", []int64{int64(len(keys))}, keys)),
		tensorAttr("values_tensor", intTensor("values", numbers...)),
		tensorAttr("default_tensor", intTensor("default", -1)))[0]
}

// unless returns a tensor that equals made, with NaN in the rows for which refused is true.
func (b *builder) unless(refused, made string) string {
	return b.op("Where", []string{refused, b.constant("refused", math.NaN()), made})
}

func (b *builder) indexer(m *prepare.IndexerModel) {
	p := m.Params
	keep := b.policy(p.Unknown)
	for i, name := range p.Columns {
		at := b.index(name, m.Values[i])
		unknown := b.op("Less", []string{at, b.ints("zero", 0)})
		out := prepare.OutputNames(p.Columns, p.Outputs)[i]
		if keep {
			at = b.op("Where", []string{unknown, b.ints("unknown", int64(len(m.Values[i]))), at})
			b.output(out, at, typeInt64, 1, "int64")
			continue
		}
		b.output(out, b.unless(unknown, b.cast(at, b.real)), b.real, 1, "int64")
	}
}

func (b *builder) oneHot(m *prepare.OneHotModel) {
	p := m.Params
	keep := b.policy(p.Unknown)
	for i, name := range p.Columns {
		at, size := b.index(name, m.Values[i]), m.Size(i)
		if size < 1 {
			b.fail("column %q has one value, and so no components", name)
			return
		}
		unknown := ""
		switch {
		case keep: // -1, an unknown category, becomes component 0
			at = b.op("Add", []string{at, b.ints("one", 1)})
		case p.Unknown == prepare.Refuse, p.Unknown == prepare.Shares:
			unknown = b.op("Less", []string{at, b.ints("zero", 0)})
		}
		components := make([]int64, size)
		for k := range components {
			components[k] = int64(k)
		}
		made := b.cast(b.op("Equal", []string{at, b.ints("components", components...)}), b.real)
		switch {
		case p.Unknown == prepare.Shares:
			made = b.op("Where", []string{unknown, b.constant("shares", m.Shares[i][:size]...), made})
		case unknown != "":
			made = b.unless(unknown, made)
		}
		if c := b.find(name); (p.RefuseMissing || p.NullMissing) && (c.kind == "float64" || c.kind == "float32") {
			made = b.unless(b.op("IsNaN", []string{b.numbers(name, 1)}), made)
		}
		b.output(prepare.OutputNames(p.Columns, p.Outputs)[i], made, b.real, size, "sparse")
	}
}

func (b *builder) buckets(m *prepare.BucketModel) {
	keep := b.policy(m.Unknown)
	for i, name := range m.Columns {
		x := b.numbers(name, 1)
		bounds := b.learned("bounds", m.Bounds[i], "bounds", i)
		at := b.reduce("ReduceSum", b.cast(b.op("GreaterOrEqual", []string{x, bounds}), typeInt64))
		missing := b.op("IsNaN", []string{x})
		if keep {
			at = b.op("Where", []string{missing, b.ints("missing", int64(len(m.Bounds[i])+1)), at})
			b.output(m.Outputs[i], at, typeInt64, 1, "int64")
			continue
		}
		b.output(m.Outputs[i], b.unless(missing, b.cast(at, b.real)), b.real, 1, "int64")
	}
}

func (b *builder) assembler(m *prepare.AssemblerModel) {
	b.policy(m.Params.Unknown)
	b.output(cmp.Or(m.Params.Output, "features"), b.join(m.Params.Columns, m.Sizes), b.real, m.Size(), "vector")
}

func (b *builder) normalizer(m *prepare.NormalizerModel) {
	p := m.Params
	one, zero := b.constant("one", 1), b.constant("zero", 0)
	nonzero := func(length string) string { // vectors of zeros are not changed
		return b.op("Where", []string{b.op("Equal", []string{length, zero}), one, length})
	}
	for i, name := range p.Columns {
		x := b.numbers(name, 0)
		width := b.find(name).width
		// If a vector is divided by its largest absolute component, its length does not
		// overflow.
		x = b.op("Div", []string{x, nonzero(b.reduce("ReduceMax", b.op("Abs", []string{x})))})
		switch p.Norm {
		case prepare.L1:
			x = b.op("Div", []string{x, nonzero(b.reduce("ReduceL1", x))})
		case prepare.L2:
			x = b.op("Div", []string{x, nonzero(b.reduce("ReduceL2", x))})
		}
		b.output(prepare.OutputNames(p.Columns, p.Outputs)[i], x, b.real, width, "vector")
	}
}

func (b *builder) pca(m *prepare.PCAModel) {
	x := b.join(m.Params.Columns, m.Sizes)
	x = b.op("Sub", []string{x, b.learned("mean", m.Mean, "mean")})
	x = b.op("Gemm", []string{x, b.learnedRows("directions", m.Components, "components")}, intAttr("transB", 1))
	if m.Params.Whiten {
		scale := make([]float64, len(m.Variance))
		for k, v := range m.Variance {
			if scale[k] = math.Sqrt(v); v == 0 {
				scale[k] = math.Inf(1) // dividing by it makes the component 0
			}
		}
		x = b.op("Div", []string{x, b.constant("deviation", scale...)})
	}
	b.output(cmp.Or(m.Params.Output, "components"), x, b.real, len(m.Components), "vector")
}

// maxProducts is the largest number of products for which a graph is written.
const maxProducts = 1 << 16

// polynomial adds the products degree by degree. Each product of several factors is an earlier
// product times a component.
func (b *builder) polynomial(m *prepare.PolynomialModel) {
	d := 0
	for _, n := range m.Sizes {
		if d += n; d > maxProducts {
			break
		}
	}
	degree := cmp.Or(m.Params.Degree, 2)
	if d > maxProducts {
		b.fail("there are more than %d components", maxProducts)
		return
	}
	x := b.join(m.Params.Columns, m.Sizes)
	parts, count, last := []string{x}, d, make([]int, d)
	for j := range last {
		last[j] = j
	}
	for before := x; degree > 1 && len(last) > 0; degree-- {
		var left, right []int64
		var next []int
		for k, first := range last {
			if m.Params.InteractionOnly {
				first++
			}
			if count += max(0, d-first); count > maxProducts {
				b.fail("there are more than %d products", maxProducts)
				return
			}
			for j := first; j < d; j++ {
				left, right, next = append(left, int64(k)), append(right, int64(j)), append(next, j)
			}
		}
		if len(next) > 0 {
			before = b.op("Mul", []string{b.gather(before, left), b.gather(x, right)})
			parts = append(parts, before)
		}
		last = next
	}
	if m.Params.Bias {
		// The result is 1 for every row, whatever its values.
		first := b.op("Equal", []string{b.gather(x, []int64{0}), b.gather(x, []int64{0})})
		one := b.constant("one", 1)
		parts, count = append([]string{b.op("Where", []string{first, one, one})}, parts...), count+1
	}
	b.output(cmp.Or(m.Params.Output, "features"), b.concat(parts), b.real, count, "vector")
}

// gather returns a tensor with those numbers of each row whose indices are in at.
func (b *builder) gather(x string, at []int64) string {
	return b.op("Gather", []string{x, b.ints("at", at...)}, intAttr("axis", 1))
}
