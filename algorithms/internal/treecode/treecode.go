// Package treecode encodes trees as bytes, for sending them between subtasks and for storing
// them between supersteps. An encoded tree has these parts, in this order: the number of bytes
// that follow, in 8 bytes; the number of nodes, the number of words of all sets and the number
// of values; the nodes; the words; the values. Integers are encoded as varints. Floating-point
// numbers are encoded as varints of their reversed bytes, because most of them are integers or
// float32 values, whose low bits are 0. An encoded node takes about 30 bytes, including its
// values; a node in memory takes 80 bytes. The Output and the Weight of a tree are not encoded.
//
// Read checks that the bytes are complete. Even if the bytes are damaged, it allocates memory
// only in proportion to the number of bytes. It does not check that the parts of the tree agree
// with each other.
package treecode

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// ErrCut is the error about bytes that are too short or too long for a tree.
var ErrCut = errors.New("the bytes of a tree are cut short, or are not those of a tree")

// plainLeaf is written instead of the flags of a leaf that has only a value, a cover and a
// count.
const plainLeaf = 1 << 6

// Append appends the encoding of t to dst.
func Append(dst []byte, t *tree.Tree) []byte {
	begin := len(dst)
	dst = append(dst, make([]byte, 8)...)
	for _, n := range []int{len(t.Nodes), len(t.Sets), len(t.Values)} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if rest := (tree.Node{Value: n.Value, Cover: n.Cover, Count: n.Count}); *n == rest {
			dst = append(dst, plainLeaf)
		} else {
			dst = append(dst, uint8(n.Flags))
			for _, v := range [...]int32{n.Feature, n.Left, n.Right - n.Left, n.Set, n.SetWords} {
				dst = binary.AppendUvarint(dst, uint64(uint32(v)))
			}
			dst = appendNumber(appendNumber(dst, n.Threshold), n.Gain)
		}
		dst = appendNumber(appendNumber(dst, n.Value), n.Cover)
		dst = binary.AppendUvarint(dst, uint64(n.Count))
	}
	for _, w := range t.Sets {
		dst = binary.AppendUvarint(dst, uint64(w))
	}
	for _, v := range t.Values {
		dst = appendNumber(dst, v)
	}
	binary.LittleEndian.PutUint64(dst[begin:], uint64(len(dst)-begin-8))
	return dst
}

// appendNumber appends a number as a varint of its reversed bytes, so that low bytes of 0 take
// no space.
func appendNumber(dst []byte, v float64) []byte {
	return binary.AppendUvarint(dst, bits.ReverseBytes64(math.Float64bits(v)))
}

// Cut returns the encoding of the first tree in src as text, without its length, and the rest
// of src.
func Cut(src []byte) (text, rest []byte, err error) {
	if len(src) < 8 {
		return nil, nil, ErrCut
	}
	n := binary.LittleEndian.Uint64(src)
	if src = src[8:]; n > uint64(len(src)) {
		return nil, nil, ErrCut
	}
	return src[:n], src[n:], nil
}

// reading has the bytes of a tree that have not been read yet. bad is set if there were too few
// bytes.
type reading struct {
	text []byte
	bad  bool
}

func (r *reading) integer() uint64 {
	if len(r.text) > 0 && r.text[0] < 0x80 {
		v := r.text[0]
		r.text = r.text[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.text)
	if n <= 0 {
		r.bad, r.text = true, nil
		return 0
	}
	r.text = r.text[n:]
	return v
}

func (r *reading) number() float64 {
	return math.Float64frombits(bits.ReverseBytes64(r.integer()))
}

// size reads a number of elements. Each element takes at least as many bytes as the parameter
// each says. If the remaining bytes are too few for the elements, size sets bad and returns 0.
func (r *reading) size(each uint64) int {
	n := r.integer()
	if n > uint64(len(r.text))/each {
		r.bad, r.text = true, nil
		return 0
	}
	return int(n)
}

// Read decodes the first tree in src into t, reusing the memory of t, and returns the rest of
// src. It sets the weight of the tree to 1.
func Read(src []byte, t *tree.Tree) (rest []byte, err error) {
	text, rest, err := Cut(src)
	if err != nil {
		return nil, err
	}
	r := &reading{text: text}
	nodes, sets, values := r.size(4), r.size(1), r.size(1)
	*t = tree.Tree{Weight: 1, Nodes: sized(t.Nodes, nodes), Sets: sized(t.Sets, sets), Values: sized(t.Values, values)}
	for i := range t.Nodes {
		t.Nodes[i] = tree.Node{}
		n := &t.Nodes[i]
		if flags := r.integer(); flags != plainLeaf {
			r.bad = r.bad || flags >= 1<<7 // flags are written as one byte
			n.Flags = tree.Flags(flags)
			for _, v := range [...]*int32{&n.Feature, &n.Left, &n.Right, &n.Set, &n.SetWords} {
				*v = int32(uint32(r.integer()))
			}
			n.Right += n.Left
			n.Threshold, n.Gain = r.number(), r.number()
		}
		n.Value, n.Cover, n.Count = r.number(), r.number(), int64(r.integer())
	}
	for i := range t.Sets {
		t.Sets[i] = uint32(r.integer())
	}
	for i := range t.Values {
		t.Values[i] = r.number()
	}
	if r.bad || len(r.text) > 0 {
		return nil, ErrCut
	}
	return rest, nil
}

// sized returns a slice of n elements with arbitrary contents, or nil if n is 0. It reuses the
// memory of s.
func sized[T any](s []T, n int) []T {
	if n == 0 {
		return nil
	}
	return slices.Grow(s[:0], n)[:n]
}
