// Package treecode is the form in which trees go from one subtask to another, and in which
// they are kept from one superstep to the next: their length in bytes, 8 of them, and then the
// numbers of nodes, of words of sets and of values; the nodes; the words; the values. Integers
// have as many bytes as they need, and so have numbers: most are whole, or float32 values,
// whose low bits are 0. A node takes some 30 bytes then, values included, where it takes 80 in
// memory. Output and Weight are the caller's to know.
//
// What is read is complete, and takes memory in proportion to the bytes; whether it holds
// together as a tree is not looked at.
package treecode

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// ErrCut is the error of bytes that end too early, or too late.
var ErrCut = errors.New("the bytes of a tree are cut short, or are none")

// plainLeaf is a bit of the flags, as they are written, of nodes that have nothing but value,
// cover and count.
const plainLeaf = 1 << 6

// Append appends a tree.
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

// appendNumber appends a number by its bytes in reverse, so that those that are 0 come first.
func appendNumber(dst []byte, v float64) []byte {
	return binary.AppendUvarint(dst, bits.ReverseBytes64(math.Float64bits(v)))
}

// Cut cuts the first tree off what Append wrote: its bytes without their length, and what is
// behind it.
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

// reading is what is left of the text of a tree; bad once it was too short.
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

// size reads how many there are of something that takes so many bytes each, at least.
func (r *reading) size(each uint64) int {
	n := r.integer()
	if n > uint64(len(r.text))/each {
		r.bad, r.text = true, nil
		return 0
	}
	return int(n)
}

// Read reads what Append wrote, into the memory of a tree, whose weight is then 1, and returns
// what is behind it.
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
			r.bad = r.bad || flags >= 1<<7 // which are written as a byte
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

// sized returns a slice of n elements whose contents are of no use, nil for none.
func sized[T any](s []T, n int) []T {
	if n == 0 {
		return nil
	}
	return slices.Grow(s[:0], n)[:n]
}
