package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// These are the versions of the parts of ONNX for which files are written. They are the first
// versions that have all operators that are used, for float64 and text.
const (
	irVersion   = 9
	coreVersion = 20
	mlVersion   = 4
	mlDomain    = "ai.onnx.ml"
)

// builder builds the graph of a model, stage by stage. It keeps the first error.
type builder struct {
	graph
	real    int32 // the element type of numbers: typeDouble or typeFloat
	stage   string
	taken   map[string]bool // the names of tensors that are already used
	columns map[string]*column
	order   []*column
	refs    []ref
	err     error
}

// column is a column of the rows, or a column that a stage makes. Its tensor has one row for
// each row of the data.
type column struct {
	name, tensor string
	elem         int32
	width        int // numbers in a row; 0 means that the rows determine it
	kind         string
	made, read   bool
}

// ref says which tensor has certain numbers of a stage's payload.
type ref struct {
	path   []any // member names and indices that lead to the numbers in the payload
	tensor string
	shape  []int
	from   int // index in the tensor of the first of the numbers
}

func newBuilder(single bool) *builder {
	b := &builder{real: typeDouble, taken: map[string]bool{}, columns: map[string]*column{}}
	if single {
		b.real = typeFloat
	}
	return b
}

func (b *builder) fail(format string, a ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, a...)
	}
}

// name returns a name that no tensor has yet. It is want, with a number appended if needed.
func (b *builder) name(want string) string {
	name := want
	for i := 2; b.taken[name]; i++ {
		name = want + "_" + strconv.Itoa(i)
	}
	b.taken[name] = true
	return name
}

// local returns a new name that begins with the name of the current stage.
func (b *builder) local(want string) string { return b.name(b.stage + "/" + want) }

// input declares a column of the rows as an input of the graph.
func (b *builder) input(in model.Input) {
	c := &column{name: in.Column, tensor: b.name(in.Column), elem: b.real, width: 1, kind: in.Type}
	name, size, _ := strings.Cut(strings.TrimSuffix(in.Type, "]"), "[")
	switch name {
	case "utf8":
		c.elem = typeString
	case "vector", "vector32", "sparse":
		c.width, _ = strconv.Atoi(size) // 0 if the type does not have the size
	case "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "date32", "timestamp":
	default:
		b.fail("column %q is %s, which no tensor holds", in.Column, in.Type)
	}
	b.columns[in.Column] = c
	b.order = append(b.order, c)
}

// output makes a tensor the column with the given name for the following stages.
func (b *builder) output(name, tensor string, elem int32, width int, kind string) {
	c := &column{name: name, tensor: tensor, elem: elem, width: width, kind: kind, made: true}
	b.columns[name] = c
	b.order = append(b.order, c)
}

// find returns a column and marks it as read by a stage.
func (b *builder) find(name string) *column {
	c := b.columns[name]
	if c == nil {
		b.fail("column %q is made by no stage", name)
		return &column{name: name, elem: b.real, width: 1}
	}
	c.read = true
	return c
}

// numbers returns the tensor of a column, which must have width numbers in a row. If width is
// 0, any number is allowed.
func (b *builder) numbers(name string, width int) string {
	c := b.find(name)
	if c.elem == typeString {
		b.fail("column %q is text: want numbers", name)
	}
	if c.width == 0 {
		c.width = width
	}
	if width != 0 && c.width != width {
		b.fail("column %q has %d numbers in a row: want %d", name, c.width, width)
	}
	if c.elem == b.real || c.elem == typeString {
		return c.tensor
	}
	return b.cast(c.tensor, b.real)
}

func (b *builder) cast(tensor string, to int32) string {
	return b.op("Cast", []string{tensor}, intAttr("to", int64(to)))
}

// op adds a node with one output and returns the output.
func (b *builder) op(op string, inputs []string, attributes ...attribute) string {
	return b.node("", op, inputs, 1, attributes...)[0]
}

// node adds a node and returns its outputs. The first output has the name of the node.
func (b *builder) node(domain, op string, inputs []string, outputs int, attributes ...attribute) []string {
	n := node{inputs: inputs, op: op, domain: domain, attributes: attributes}
	n.name = b.local(op)
	n.outputs = []string{n.name}
	for i := 1; i < outputs; i++ {
		n.outputs = append(n.outputs, b.local(op+"_"+strconv.Itoa(i)))
	}
	b.nodes = append(b.nodes, n)
	return n.outputs
}

func intAttr(name string, v int64) attribute {
	return attribute{name: name, kind: attrInt, i: v}
}

func intsAttr(name string, v []int64) attribute {
	return attribute{name: name, kind: attrInts, ints: v}
}

func textAttr(name, v string) attribute {
	return attribute{name: name, kind: attrString, s: v}
}

func textsAttr(name string, v []string) attribute {
	return attribute{name: name, kind: attrStrings, strings: v}
}

// tensorOf returns a tensor of numbers of the type b.real.
func (b *builder) tensorOf(name string, dims []int64, values []float64) tensor {
	t := tensor{name: name, dims: dims, elem: b.real}
	for i, v := range values {
		if b.real == typeDouble {
			t.raw = binary.LittleEndian.AppendUint64(t.raw, math.Float64bits(v))
			continue
		}
		t.raw = binary.LittleEndian.AppendUint32(t.raw, bits32(b.narrow(name, i, v)))
	}
	return t
}

// narrow returns v as float32, and fails if float32 cannot represent it. For the error, v is
// number i of the tensor or attribute name.
func (b *builder) narrow(name string, i int, v float64) float32 {
	w := float32(v)
	if v != 0 && w == 0 || math.IsInf(float64(w), 0) && !math.IsInf(v, 0) {
		b.fail("number %d of %s is %v, which float32 does not hold", i, name, v)
	}
	return w
}

// constant adds an initializer with the values and returns its name.
func (b *builder) constant(want string, values ...float64) string {
	return b.matrix(want, []int64{int64(len(values))}, values)
}

func (b *builder) matrix(want string, dims []int64, values []float64) string {
	name := b.local(want)
	b.initializers = append(b.initializers, b.tensorOf(name, dims, values))
	return name
}

// learned adds an initializer with values, which the stage's payload has at path. In the file
// the numbers are only in this initializer, and the payload refers to it.
func (b *builder) learned(want string, values []float64, path ...any) string {
	name := b.constant(want, values...)
	b.refs = append(b.refs, ref{path: path, tensor: name, shape: []int{len(values)}})
	return name
}

// learnedRows does what learned does, for rows of equal length.
func (b *builder) learnedRows(want string, rows [][]float64, path ...any) string {
	d := len(rows[0])
	name := b.matrix(want, []int64{int64(len(rows)), int64(d)}, flatten(rows))
	b.refs = append(b.refs, ref{path: path, tensor: name, shape: []int{len(rows), d}})
	return name
}

func flatten(rows [][]float64) []float64 {
	var flat []float64
	for _, r := range rows {
		flat = append(flat, r...)
	}
	return flat
}

// ints adds an initializer of integers and returns its name.
func (b *builder) ints(want string, values ...int64) string {
	t := intTensor(b.local(want), values...)
	b.initializers = append(b.initializers, t)
	return t.name
}

func intTensor(name string, values ...int64) tensor {
	t := tensor{name: name, dims: []int64{int64(len(values))}, elem: typeInt64}
	for _, v := range values {
		t.raw = binary.LittleEndian.AppendUint64(t.raw, uint64(v))
	}
	return t
}

// bools adds an initializer of bools and returns its name.
func (b *builder) bools(want string, values ...bool) string {
	t := tensor{name: b.local(want), dims: []int64{int64(len(values))}, elem: typeBool, raw: make([]byte, len(values))}
	for i, v := range values {
		if v {
			t.raw[i] = 1
		}
	}
	b.initializers = append(b.initializers, t)
	return t.name
}

// texts adds an initializer of texts and returns its name.
func (b *builder) texts(want string, values ...string) string {
	t := tensor{name: b.local(want), dims: []int64{int64(len(values))}, elem: typeString, strings: values}
	b.initializers = append(b.initializers, t)
	return t.name
}

// reduce adds a node that reduces the numbers of each row to one.
func (b *builder) reduce(op, tensor string) string {
	return b.op(op, []string{tensor, b.ints("axis", 1)}, intAttr("keepdims", 1))
}

// join adds a node that concatenates the numbers of columns.
func (b *builder) join(names []string, widths []int) string {
	tensors := make([]string, len(names))
	for i, name := range names {
		if widths[i] == 0 {
			b.fail("column %q has no components", name)
		}
		tensors[i] = b.numbers(name, widths[i])
	}
	return b.concat(tensors)
}

func (b *builder) concat(tensors []string) string {
	if len(tensors) == 1 {
		return tensors[0]
	}
	return b.op("Concat", tensors, intAttr("axis", 1))
}

// finish declares inputs and outputs. Outputs are the columns that a stage makes and no stage
// reads. An output gets a new name if a tensor, such as an input, already has the name of its
// column.
func (b *builder) finish() {
	for _, c := range b.order {
		if !c.made {
			b.inputs = append(b.inputs, c.value(c.tensor))
			continue
		}
		if c.read || b.columns[c.name] != c {
			continue
		}
		name := b.name(c.name)
		b.nodes = append(b.nodes, node{inputs: []string{c.tensor}, outputs: []string{name}, name: b.name("output/" + c.name), op: "Identity"})
		b.outputs = append(b.outputs, c.value(name))
	}
	if len(b.outputs) == 0 {
		b.fail("no stage makes a column")
	}
}

func (c *column) value(tensor string) value {
	width := dim{size: int64(c.width)}
	if c.width == 0 {
		width = dim{name: "size of " + c.name}
	}
	return value{name: tensor, elem: c.elem, dims: []dim{{name: "rows"}, width}}
}
