package forest

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// nodeBytes is what a node takes where trees go from one subtask to another.
const nodeBytes = 5*4 + 1 + 5*8

// appendTree appends a tree to what a subtask sends. Both ends are this program.
func appendTree(dst []byte, t *tree.Tree) []byte {
	le := binary.LittleEndian
	for _, n := range []int{len(t.Nodes), len(t.Sets), len(t.Values)} {
		dst = le.AppendUint64(dst, uint64(n))
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		for _, v := range [...]int32{n.Feature, n.Left, n.Right, n.Set, n.SetWords} {
			dst = le.AppendUint32(dst, uint32(v))
		}
		dst = append(dst, uint8(n.Flags))
		for _, v := range [...]float64{n.Threshold, n.Value, n.Gain, n.Cover} {
			dst = le.AppendUint64(dst, math.Float64bits(v))
		}
		dst = le.AppendUint64(dst, uint64(n.Count))
	}
	for _, w := range t.Sets {
		dst = le.AppendUint32(dst, w)
	}
	for _, v := range t.Values {
		dst = le.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}

var errTrees = errors.New("the trees that a subtask sent are cut short")

// readTree reads what appendTree wrote and returns what is behind it.
func readTree(src []byte) (t tree.Tree, rest []byte, err error) {
	le := binary.LittleEndian
	if len(src) < 24 {
		return t, nil, errTrees
	}
	nodes, sets, values := le.Uint64(src), le.Uint64(src[8:]), le.Uint64(src[16:])
	src = src[24:]
	room := uint64(len(src))
	if nodes > room/nodeBytes || sets > room/4 || values > room/8 || nodes*nodeBytes+4*sets+8*values > room {
		return t, nil, errTrees
	}
	t.Weight, t.Nodes = 1, make([]tree.Node, nodes)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		for j, v := range [...]*int32{&n.Feature, &n.Left, &n.Right, &n.Set, &n.SetWords} {
			*v = int32(le.Uint32(src[4*j:]))
		}
		n.Flags = tree.Flags(src[20])
		for j, v := range [...]*float64{&n.Threshold, &n.Value, &n.Gain, &n.Cover} {
			*v = math.Float64frombits(le.Uint64(src[21+8*j:]))
		}
		n.Count = int64(le.Uint64(src[53:]))
		src = src[nodeBytes:]
	}
	if sets > 0 {
		t.Sets = make([]uint32, sets)
	}
	for i := range t.Sets {
		t.Sets[i] = le.Uint32(src[4*i:])
	}
	src = src[4*sets:]
	if values > 0 {
		t.Values = make([]float64, values)
	}
	for i := range t.Values {
		t.Values[i] = math.Float64frombits(le.Uint64(src[8*i:]))
	}
	return t, src[8*values:], nil
}
