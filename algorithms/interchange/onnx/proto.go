package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// These are the messages of ONNX that are used, with the field numbers of onnx.proto at version
// 9 of its intermediate representation. Fields are written in ascending order and numbers are
// packed, so that equal messages have equal bytes.

// These are types of the elements of tensors.
const (
	typeFloat  int32 = 1
	typeUint8  int32 = 2
	typeInt64  int32 = 7
	typeString int32 = 8
	typeBool   int32 = 9
	typeDouble int32 = 11
)

// These are types of attributes.
const (
	attrFloat   int32 = 1
	attrInt     int32 = 2
	attrString  int32 = 3
	attrTensor  int32 = 4
	attrFloats  int32 = 6
	attrInts    int32 = 7
	attrStrings int32 = 8
)

// file is a ModelProto.
type file struct {
	irVersion int64
	opsets    []opset
	producer  string
	version   string // version of the producer
	graph     graph
	metadata  []entry
}

type opset struct {
	domain  string
	version int64
}

type entry struct{ key, value string }

type graph struct {
	name         string
	nodes        []node
	initializers []tensor
	inputs       []value
	outputs      []value
}

type node struct {
	inputs     []string
	outputs    []string
	name       string
	op         string
	domain     string
	attributes []attribute
}

type attribute struct {
	name    string
	kind    int32
	f       float32
	i       int64
	s       string
	t       *tensor
	floats  []float32
	ints    []int64
	strings []string
}

// tensor is a TensorProto. Its numbers are in raw, little-endian, and its texts in strings.
type tensor struct {
	name    string
	dims    []int64
	elem    int32
	raw     []byte
	strings []string
}

// value is a ValueInfoProto whose type is a tensor.
type value struct {
	name string
	elem int32
	dims []dim
}

// dim is the size of a dimension, or the name of a variable size.
type dim struct {
	size int64
	name string
}

func putVarint(b []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

func putText(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func putBytes(b []byte, field protowire.Number, p []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), p)
}

func putInts(b []byte, field protowire.Number, list []int64) []byte {
	if len(list) == 0 {
		return b
	}
	var packed []byte
	for _, v := range list {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return putBytes(b, field, packed)
}

func (f *file) encode() []byte {
	b := putVarint(nil, 1, f.irVersion)
	b = putText(b, 2, f.producer)
	b = putText(b, 3, f.version)
	b = putBytes(b, 7, f.graph.encode())
	for _, o := range f.opsets {
		b = putBytes(b, 8, putVarint(putText(nil, 1, o.domain), 2, o.version))
	}
	for _, e := range f.metadata {
		b = putBytes(b, 14, putText(putText(nil, 1, e.key), 2, e.value))
	}
	return b
}

func (g *graph) encode() []byte {
	var b []byte
	for i := range g.nodes {
		b = putBytes(b, 1, g.nodes[i].encode())
	}
	b = putText(b, 2, g.name)
	for i := range g.initializers {
		b = putBytes(b, 5, g.initializers[i].encode())
	}
	for i := range g.inputs {
		b = putBytes(b, 11, g.inputs[i].encode())
	}
	for i := range g.outputs {
		b = putBytes(b, 12, g.outputs[i].encode())
	}
	return b
}

func (n *node) encode() []byte {
	var b []byte
	for _, s := range n.inputs {
		b = putText(b, 1, s)
	}
	for _, s := range n.outputs {
		b = putText(b, 2, s)
	}
	b = putText(b, 3, n.name)
	b = putText(b, 4, n.op)
	for i := range n.attributes {
		b = putBytes(b, 5, n.attributes[i].encode())
	}
	if n.domain != "" {
		b = putText(b, 7, n.domain)
	}
	return b
}

func (a *attribute) encode() []byte {
	b := putText(nil, 1, a.name)
	switch a.kind {
	case attrFloat:
		b = protowire.AppendFixed32(protowire.AppendTag(b, 2, protowire.Fixed32Type), bits32(a.f))
	case attrInt:
		b = putVarint(b, 3, a.i)
	case attrString:
		b = putText(b, 4, a.s)
	case attrTensor:
		b = putBytes(b, 5, a.t.encode())
	case attrFloats:
		packed := make([]byte, 0, 4*len(a.floats))
		for _, v := range a.floats {
			packed = protowire.AppendFixed32(packed, bits32(v))
		}
		b = putBytes(b, 7, packed)
	case attrInts:
		b = putInts(b, 8, a.ints)
	case attrStrings:
		for _, s := range a.strings {
			b = putText(b, 9, s)
		}
	}
	return putVarint(b, 20, int64(a.kind))
}

func (t *tensor) encode() []byte {
	b := putInts(nil, 1, t.dims)
	b = putVarint(b, 2, int64(t.elem))
	for _, s := range t.strings {
		b = putText(b, 6, s)
	}
	b = putText(b, 8, t.name)
	if t.elem != typeString {
		b = putBytes(b, 9, t.raw)
	}
	return b
}

func (v *value) encode() []byte {
	var shape []byte
	for _, d := range v.dims {
		if d.name != "" {
			shape = putBytes(shape, 1, putText(nil, 2, d.name))
		} else {
			shape = putBytes(shape, 1, putVarint(nil, 1, d.size))
		}
	}
	kind := putBytes(putVarint(nil, 1, int64(v.elem)), 2, shape)
	return putBytes(putText(nil, 1, v.name), 2, putBytes(nil, 1, kind))
}
