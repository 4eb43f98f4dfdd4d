package onnx

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

const maxFile = math.MaxInt32 // the limit of protocol buffers

func bits32(v float32) uint32 { return math.Float32bits(v) }

// field is a field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	num    uint64 // the value, if it is a varint or a fixed-size number
	bytes  []byte // the value, if it has the type BytesType: a slice of the message
}

// eachField calls do with each field of a message. do returns an error for a field that it does
// not know, because the information in the field would be lost.
func eachField(message string, b []byte, do func(f field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%s: %w", message, protowire.ParseError(n))
		}
		b = b[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.num, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			f.num = uint64(v)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			return fmt.Errorf("%s: field %d has wire type %d, which is not read", message, number, kind)
		}
		if n < 0 {
			return fmt.Errorf("%s: field %d: %w", message, number, protowire.ParseError(n))
		}
		b = b[n:]
		if err := do(f); err != nil {
			return fmt.Errorf("%s: %w", message, err)
		}
	}
	return nil
}

func (f field) unknown() error {
	return fmt.Errorf("field %d is none that Export writes", f.number)
}

// text, integer and enum store the value of a field in the variable to. They return an error if
// the field has another type.
func (f field) text(to *string) error {
	if f.kind != protowire.BytesType {
		return f.mistyped()
	}
	*to = string(f.bytes)
	return nil
}

func (f field) integer(to *int64) error {
	if f.kind != protowire.VarintType {
		return f.mistyped()
	}
	*to = int64(f.num)
	return nil
}

func (f field) enum(to *int32) error {
	if f.kind != protowire.VarintType || f.num > math.MaxInt32 {
		return f.mistyped()
	}
	*to = int32(f.num)
	return nil
}

func (f field) message() ([]byte, error) {
	if f.kind != protowire.BytesType {
		return nil, f.mistyped()
	}
	return f.bytes, nil
}

func (f field) mistyped() error {
	return fmt.Errorf("field %d has a value of another type", f.number)
}

// integers appends the integers of a field, which is packed or has a single integer, to the
// slice to.
func (f field) integers(to *[]int64) error {
	if f.kind == protowire.VarintType {
		*to = append(*to, int64(f.num))
		return nil
	}
	b, err := f.message()
	for err == nil && len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return fmt.Errorf("field %d: %w", f.number, protowire.ParseError(n))
		}
		*to, b = append(*to, int64(v)), b[n:]
	}
	return err
}

// floats appends the numbers of a field, which is packed or has a single number, to the slice
// to.
func (f field) floats(to *[]float32) error {
	if f.kind == protowire.Fixed32Type {
		*to = append(*to, math.Float32frombits(uint32(f.num)))
		return nil
	}
	b, err := f.message()
	if err == nil && len(b)%4 != 0 {
		return fmt.Errorf("field %d has %d bytes: want 4 for each number", f.number, len(b))
	}
	for ; err == nil && len(b) > 0; b = b[4:] {
		v, _ := protowire.ConsumeFixed32(b)
		*to = append(*to, math.Float32frombits(v))
	}
	return err
}

// sub decodes the message that is the value of field f, using the function read, and appends it
// to the slice to.
func sub[T any](f field, to *[]T, read func(b []byte, to *T) error) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	var one T
	if err := read(b, &one); err != nil {
		return err
	}
	*to = append(*to, one)
	return nil
}

// decodeFile reads a ModelProto. Its memory use is bounded by a multiple of the size of data.
func decodeFile(data []byte) (*file, error) {
	if len(data) == 0 {
		return nil, errors.New("the file is empty")
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file has %d bytes: want at most %d", len(data), maxFile)
	}
	f := &file{}
	err := eachField("model", data, func(v field) error {
		switch v.number {
		case 1:
			return v.integer(&f.irVersion)
		case 2:
			return v.text(&f.producer)
		case 3:
			return v.text(&f.version)
		case 7:
			b, err := v.message()
			if err != nil {
				return err
			}
			return f.graph.decode(b)
		case 8:
			return sub(v, &f.opsets, decodeOpset)
		case 14:
			return sub(v, &f.metadata, decodeEntry)
		}
		return otherProducer(f, v)
	})
	return f, err
}

// otherProducer returns the error about an unknown field. If another program produced the file,
// the error names this program.
func otherProducer(f *file, v field) error {
	if f.producer != producer {
		return fmt.Errorf("the producer is %q: only what this package wrote is read", f.producer)
	}
	return v.unknown()
}

func decodeOpset(b []byte, o *opset) error {
	return eachField("opset", b, func(v field) error {
		switch v.number {
		case 1:
			return v.text(&o.domain)
		case 2:
			return v.integer(&o.version)
		}
		return v.unknown()
	})
}

func decodeEntry(b []byte, e *entry) error {
	return eachField("metadata", b, func(v field) error {
		switch v.number {
		case 1:
			return v.text(&e.key)
		case 2:
			return v.text(&e.value)
		}
		return v.unknown()
	})
}

func (g *graph) decode(b []byte) error {
	return eachField("graph", b, func(v field) error {
		switch v.number {
		case 1:
			return sub(v, &g.nodes, decodeNode)
		case 2:
			return v.text(&g.name)
		case 5:
			return sub(v, &g.initializers, decodeTensor)
		case 11:
			return sub(v, &g.inputs, decodeValue)
		case 12:
			return sub(v, &g.outputs, decodeValue)
		}
		return v.unknown()
	})
}

func appendText(v field, to *[]string) error {
	var s string
	err := v.text(&s)
	*to = append(*to, s)
	return err
}

func decodeNode(b []byte, n *node) error {
	return eachField("node", b, func(v field) error {
		switch v.number {
		case 1:
			return appendText(v, &n.inputs)
		case 2:
			return appendText(v, &n.outputs)
		case 3:
			return v.text(&n.name)
		case 4:
			return v.text(&n.op)
		case 5:
			return sub(v, &n.attributes, decodeAttribute)
		case 7:
			return v.text(&n.domain)
		}
		return v.unknown()
	})
}

func decodeAttribute(b []byte, a *attribute) error {
	return eachField("attribute", b, func(v field) error {
		switch v.number {
		case 1:
			return v.text(&a.name)
		case 2:
			if v.kind != protowire.Fixed32Type {
				return v.mistyped()
			}
			a.f = math.Float32frombits(uint32(v.num))
			return nil
		case 3:
			return v.integer(&a.i)
		case 4:
			return v.text(&a.s)
		case 5:
			a.t = &tensor{}
			b, err := v.message()
			if err != nil {
				return err
			}
			return decodeTensor(b, a.t)
		case 7:
			return v.floats(&a.floats)
		case 8:
			return v.integers(&a.ints)
		case 9:
			return appendText(v, &a.strings)
		case 20:
			return v.enum(&a.kind)
		}
		return v.unknown()
	})
}

func decodeTensor(b []byte, t *tensor) error {
	return eachField("tensor", b, func(v field) error {
		switch v.number {
		case 1:
			return v.integers(&t.dims)
		case 2:
			return v.enum(&t.elem)
		case 6:
			return appendText(v, &t.strings)
		case 8:
			return v.text(&t.name)
		case 9:
			raw, err := v.message()
			t.raw = raw
			return err
		}
		return v.unknown()
	})
}

// decodeValue reads a ValueInfoProto. Its type is nested three messages deep.
func decodeValue(b []byte, to *value) error {
	return eachField("value", b, func(v field) error {
		switch v.number {
		case 1:
			return v.text(&to.name)
		case 2:
			return v.inner("type", 1, func(v field) error { return v.within("tensor type", to.typeField) })
		}
		return v.unknown()
	})
}

// within calls do with each field of the message that is the value of f.
func (f field) within(message string, do func(f field) error) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	return eachField(message, b, do)
}

// inner does what within does, for a message in which each field must have the number in
// parameter only.
func (f field) inner(message string, only protowire.Number, do func(f field) error) error {
	return f.within(message, func(v field) error {
		if v.number != only {
			return v.unknown()
		}
		return do(v)
	})
}

func (to *value) typeField(v field) error {
	switch v.number {
	case 1:
		return v.enum(&to.elem)
	case 2:
		return v.inner("shape", 1, func(v field) error {
			var d dim
			err := v.within("dimension", func(v field) error {
				switch v.number {
				case 1:
					return v.integer(&d.size)
				case 2:
					return v.text(&d.name)
				}
				return v.unknown()
			})
			to.dims = append(to.dims, d)
			return err
		})
	}
	return v.unknown()
}
