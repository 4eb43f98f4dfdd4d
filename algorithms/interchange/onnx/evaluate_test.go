package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// array is a tensor in the evaluator. It has numbers of any type, or text.
type array struct {
	dims    []int
	num     []float64
	text    []string
	isText  bool
	element int32
}

func (a array) size() int { return product(a.dims) }

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func numbersArray(dims []int, values ...float64) array { return array{dims: dims, num: values} }

// arrayOf returns the array of an initializer.
func arrayOf(t testing.TB, x *tensor) array {
	a := array{element: x.elem}
	for _, d := range x.dims {
		a.dims = append(a.dims, int(d))
	}
	switch x.elem {
	case typeString:
		a.isText, a.text = true, x.strings
		require.Len(t, a.text, a.size())
		return a
	case typeDouble:
		for b := x.raw; len(b) > 0; b = b[8:] {
			a.num = append(a.num, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	case typeFloat:
		for b := x.raw; len(b) > 0; b = b[4:] {
			a.num = append(a.num, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	case typeInt64:
		for b := x.raw; len(b) > 0; b = b[8:] {
			a.num = append(a.num, float64(int64(binary.LittleEndian.Uint64(b))))
		}
	case typeBool, typeUint8:
		for _, v := range x.raw {
			a.num = append(a.num, float64(v))
		}
	}
	require.Len(t, a.num, a.size(), x.name)
	return a
}

// evaluate runs a graph by the definitions of its operators, always in float64. It checks that
// each tensor is computed exactly once and before it is read.
func evaluate(t testing.TB, f *file, feed map[string]array) map[string]array {
	values := map[string]array{}
	g := &f.graph
	for i := range g.initializers {
		values[g.initializers[i].name] = arrayOf(t, &g.initializers[i])
	}
	for _, in := range g.inputs {
		a, ok := feed[in.name]
		require.True(t, ok, "there must be values for input %q", in.name)
		require.Len(t, a.dims, len(in.dims))
		if in.dims[1].name == "" {
			require.EqualValues(t, in.dims[1].size, a.dims[1], "the values of input %q must have its width", in.name)
		}
		require.Equal(t, in.elem == typeString, a.isText, "the values of input %q must have its type", in.name)
		values[in.name] = a
	}
	for _, n := range g.nodes {
		var in []array
		for _, name := range n.inputs {
			a, ok := values[name]
			require.True(t, ok, "node %q reads %q, which is not made before it", n.name, name)
			in = append(in, a)
		}
		out := compute(t, n, in)
		require.Len(t, out, len(n.outputs), n.op)
		for i, name := range n.outputs {
			require.NotContains(t, values, name)
			require.True(t, out[i].isText && len(out[i].text) == out[i].size() || len(out[i].num) == out[i].size(), "node %q must give as many values as its dims require", n.name)
			values[name] = out[i]
		}
	}
	made := map[string]array{}
	for _, o := range g.outputs {
		a := values[o.name]
		require.Equal(t, o.elem == typeString, a.isText, "output %q must have the declared type", o.name)
		require.Len(t, a.dims, len(o.dims), "output %q must have the declared number of dims", o.name)
		if o.dims[1].name == "" {
			require.EqualValues(t, o.dims[1].size, a.dims[1], "output %q must have the declared width", o.name)
		}
		made[o.name] = a
	}
	return made
}

func attributeOf(n node, name string) *attribute {
	for i := range n.attributes {
		if n.attributes[i].name == name {
			return &n.attributes[i]
		}
	}
	return nil
}

var unary = map[string]func(float64) float64{
	"Abs": math.Abs, "Exp": math.Exp, "Sqrt": math.Sqrt, "Neg": func(v float64) float64 { return -v },
	"Sigmoid": func(v float64) float64 { return 1 / (1 + math.Exp(-v)) },
	"IsNaN":   func(v float64) float64 { return truth(v != v) },
}

var binaries = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b }, "Sub": func(a, b float64) float64 { return a - b },
	"Mul": func(a, b float64) float64 { return a * b }, "Div": func(a, b float64) float64 { return a / b },
	"Less": func(a, b float64) float64 { return truth(a < b) }, "Greater": func(a, b float64) float64 { return truth(a > b) },
	"GreaterOrEqual": func(a, b float64) float64 { return truth(a >= b) }, "Equal": func(a, b float64) float64 { return truth(a == b) },
}

func truth(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// broadcast returns the common dims of operands, and for each operand the index of its element
// at each position of the result.
func broadcast(t testing.TB, in ...array) (dims []int, at [][]int) {
	for _, a := range in {
		for len(dims) < len(a.dims) {
			dims = append([]int{1}, dims...)
		}
	}
	for _, a := range in {
		for k, d := range a.dims {
			at := len(dims) - len(a.dims) + k
			require.True(t, dims[at] == 1 || d == 1 || dims[at] == d, "operands must have compatible dims: %v and %v", dims, a.dims)
			dims[at] = max(dims[at], d)
		}
	}
	n := product(dims)
	for _, a := range in {
		places := make([]int, n)
		for i := range places {
			rest, stride, place := i, 1, 0
			for k := len(dims) - 1; k >= 0; k-- {
				own := k - (len(dims) - len(a.dims))
				if own >= 0 {
					if a.dims[own] > 1 {
						place += rest % dims[k] * stride
					}
					stride *= a.dims[own]
				}
				rest /= dims[k]
			}
			places[i] = place
		}
		at = append(at, places)
	}
	return dims, at
}

// compute evaluates one node.
func compute(t testing.TB, n node, in []array) []array {
	one := func(dims []int, num []float64) []array { return []array{{dims: dims, num: num}} }
	if f := unary[n.op]; f != nil {
		made := make([]float64, in[0].size())
		for i, v := range in[0].num {
			made[i] = f(v)
		}
		return one(in[0].dims, made)
	}
	if f := binaries[n.op]; f != nil {
		dims, at := broadcast(t, in...)
		made := make([]float64, product(dims))
		for i := range made {
			if in[0].isText {
				made[i] = truth(in[0].text[at[0][i]] == in[1].text[at[1][i]])
			} else {
				made[i] = f(in[0].num[at[0][i]], in[1].num[at[1][i]])
			}
		}
		return one(dims, made)
	}
	switch n.op {
	case "BitwiseAnd":
		dims, at := broadcast(t, in...)
		made := make([]float64, product(dims))
		for i := range made {
			made[i] = float64(uint8(in[0].num[at[0][i]]) & uint8(in[1].num[at[1][i]]))
		}
		return one(dims, made)
	case "Identity":
		return in
	case "Cast":
		require.False(t, in[0].isText)
		made := slices.Clone(in[0].num)
		for i, v := range made {
			switch int32(attributeOf(n, "to").i) {
			case typeInt64:
				made[i] = math.Trunc(v)
			case typeFloat:
				made[i] = float64(float32(v))
			}
		}
		return one(in[0].dims, made)
	case "Where":
		dims, at := broadcast(t, in...)
		made := array{dims: dims, isText: in[1].isText}
		for i := range product(dims) {
			from := 2
			if in[0].num[at[0][i]] != 0 {
				from = 1
			}
			if made.isText {
				made.text = append(made.text, in[from].text[at[from][i]])
			} else {
				made.num = append(made.num, in[from].num[at[from][i]])
			}
		}
		return []array{made}
	case "Concat":
		rows, width := in[0].dims[0], 0
		for _, a := range in {
			require.Equal(t, rows, a.dims[0])
			width += a.dims[1]
		}
		var made []float64
		for r := range rows {
			for _, a := range in {
				made = append(made, a.num[r*a.dims[1]:(r+1)*a.dims[1]]...)
			}
		}
		return one([]int{rows, width}, made)
	case "Gather":
		return []array{gather(n, in[0], in[1])}
	case "Unsqueeze":
		require.Equal(t, []float64{1}, in[1].num)
		return one([]int{in[0].dims[0], 1, in[0].dims[1]}, in[0].num)
	case "Gemm":
		return []array{gemm(t, in)}
	case "LabelEncoder":
		return []array{labels(t, n, in[0])}
	case "LinearRegressor":
		return []array{marginsOf(n, in[0], 1)}
	case "LinearClassifier":
		return linearClassifier(n, in[0])
	case "Softmax":
		return []array{softmax(in[0])}
	case "Flatten", "TreeEnsembleRegressor", "TreeEnsembleClassifier":
		return treeOperators(t, n, in[0])
	}
	return []array{overRow(t, n, in)}
}

func gather(n node, table, at array) array {
	made := array{isText: table.isText}
	if attributeOf(n, "axis").i == 0 && len(table.dims) == 2 {
		made.dims = append(slices.Clone(at.dims), table.dims[1])
		for _, v := range at.num {
			made.num = append(made.num, table.num[int(v)*table.dims[1]:(int(v)+1)*table.dims[1]]...)
		}
		return made
	}
	if attributeOf(n, "axis").i == 0 {
		made.dims = at.dims
		for _, v := range at.num {
			if table.isText {
				made.text = append(made.text, table.text[int(v)])
			} else {
				made.num = append(made.num, table.num[int(v)])
			}
		}
		return made
	}
	made.dims = []int{table.dims[0], len(at.num)}
	for r := range table.dims[0] {
		for _, v := range at.num {
			made.num = append(made.num, table.num[r*table.dims[1]+int(v)])
		}
	}
	return made
}

func gemm(t testing.TB, in []array) array {
	rows, d, k := in[0].dims[0], in[0].dims[1], in[1].dims[0]
	require.Equal(t, d, in[1].dims[1])
	made := array{dims: []int{rows, k}}
	for r := range rows {
		for a := range k {
			sum := 0.0
			for j := range d {
				sum += in[0].num[r*d+j] * in[1].num[a*d+j]
			}
			if len(in) > 2 {
				sum += in[2].num[a]
			}
			made.num = append(made.num, sum)
		}
	}
	return made
}

func labels(t testing.TB, n node, in array) array {
	made := array{dims: in.dims}
	find := func(i int) float64 {
		if in.isText {
			if at := slices.Index(attributeOf(n, "keys_strings").strings, in.text[i]); at >= 0 {
				return float64(attributeOf(n, "values_int64s").ints[at])
			}
			return float64(attributeOf(n, "default_int64").i)
		}
		if list := attributeOf(n, "keys_floats"); list != nil {
			if at := slices.Index(list.floats, float32(in.num[i])); at >= 0 {
				return float64(attributeOf(n, "values_int64s").ints[at])
			}
			return float64(attributeOf(n, "default_int64").i)
		}
		if at := slices.Index(arrayOf(t, attributeOf(n, "keys_tensor").t).num, in.num[i]); at >= 0 {
			return arrayOf(t, attributeOf(n, "values_tensor").t).num[at]
		}
		return arrayOf(t, attributeOf(n, "default_tensor").t).num[0]
	}
	for i := range in.size() {
		made.num = append(made.num, find(i))
	}
	return made
}

func marginsOf(n node, x array, k int) array {
	rows, d := x.dims[0], x.dims[1]
	w, c := attributeOf(n, "coefficients").floats, attributeOf(n, "intercepts").floats
	made := array{dims: []int{rows, k}}
	for r := range rows {
		for a := range k {
			sum := float64(c[a])
			for j := range d {
				sum += x.num[r*d+j] * float64(w[a*d+j])
			}
			made.num = append(made.num, sum)
		}
	}
	return made
}

func linearClassifier(n node, x array) []array {
	k := len(attributeOf(n, "classlabels_ints").ints)
	p := marginsOf(n, x, k)
	if attributeOf(n, "post_transform").s == "LOGISTIC" {
		for i, v := range p.num {
			p.num[i] = 1 / (1 + math.Exp(-v))
		}
	} else {
		p = softmax(p)
	}
	return []array{numbersArray([]int{x.dims[0]}, make([]float64, x.dims[0])...), p}
}

func softmax(z array) array {
	made := array{dims: z.dims}
	d := z.dims[1]
	for r := range z.dims[0] {
		row := z.num[r*d : (r+1)*d]
		top, sum := slices.Max(row), 0.0
		for _, v := range row {
			sum += math.Exp(v - top)
		}
		for _, v := range row {
			made.num = append(made.num, math.Exp(v-top)/sum)
		}
	}
	return made
}

// overRow evaluates operators that reduce the last axis to one number.
func overRow(t testing.TB, n node, in []array) array {
	a := in[0]
	last := len(a.dims) - 1
	axis := last
	if len(in) > 1 {
		axis = int(in[1].num[0])
	} else {
		axis = int(attributeOf(n, "axis").i)
	}
	require.Equal(t, last, axis, n.op)
	d := a.dims[last]
	made := array{dims: slices.Clone(a.dims[:last])}
	if attributeOf(n, "keepdims").i == 1 {
		made.dims = append(made.dims, 1)
	}
	for r := range a.size() / d {
		row := a.num[r*d : (r+1)*d]
		made.num = append(made.num, reduceRow(t, n.op, row))
	}
	return made
}

func reduceRow(t testing.TB, op string, row []float64) float64 {
	sum, absolute, squares := 0.0, 0.0, 0.0
	least, most := 0, 0
	for j, v := range row {
		sum, absolute, squares = sum+v, absolute+math.Abs(v), squares+v*v
		if v < row[least] {
			least = j
		}
		if v > row[most] {
			most = j
		}
	}
	if sum != sum && (op == "ReduceMax" || op == "ReduceMin") {
		return sum
	}
	switch op {
	case "ReduceSum":
		return sum
	case "ReduceL1":
		return absolute
	case "ReduceL2":
		return math.Sqrt(squares)
	case "ReduceSumSquare":
		return squares
	case "ReduceMax":
		return row[most]
	case "ReduceMin":
		return row[least]
	case "ArgMin":
		return float64(least)
	case "ArgMax":
		return float64(most)
	}
	require.Fail(t, fmt.Sprintf("no operator %q", op))
	return 0
}
