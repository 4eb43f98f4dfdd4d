package engine

import (
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine/plan"
)

// origins identifies the positions of nodes in a graph, for random draws. The origin of a node
// is computed from its kind and from the origins of its inputs. It does not depend on the
// node's number, so that operators elsewhere in the job do not change it. Operators of the same
// kind with the same inputs have different origins, which depend on the order in which they
// were added. A RowByRow operator has the origin of its input.
type origins struct {
	of       []uint64          // origin of each node
	sameKind map[uint64]uint64 // hash of a kind and of inputs -> number of nodes that have them
	drawn    map[string]uint64 // result of DrawPurpose -> number of calls of OwnDrawPurpose
}

// add computes the origin of the next node.
func (o *origins) add(n *plan.Node, ports []Port) {
	text := strconv.AppendQuote(nil, n.Op)
	text = strconv.AppendQuote(text, n.Queue)
	for _, p := range ports {
		text = strconv.AppendBool(text, p.Side)
		text = strconv.AppendUint(append(text, ' '), o.of[p.From.node], 16)
		text = append(text, ' ')
	}
	kind := xxh3.Hash(text)
	if o.sameKind == nil {
		o.sameKind = map[uint64]uint64{}
	}
	text = strconv.AppendUint(append(text, '#'), o.sameKind[kind], 10)
	o.sameKind[kind]++
	o.of = append(o.of, xxh3.Hash(text))
}

// passOn gives a node the origin of its only input that is not a side input.
func (o *origins) passOn(id plan.NodeID, ports []Port) {
	for _, p := range ports {
		if !p.Side {
			o.of[id] = o.of[p.From.node]
			return
		}
	}
}

// DrawPurpose returns the purpose of the random draws that an operator makes for the rows of a
// dataset; see Context.Random. what names the operator, such as "Sample". The purpose includes
// the position of the dataset in the graph. So the operator draws different numbers for
// different datasets, also when it is applied again to its own output. The purpose does not
// change if operators that keep every row in its place, such as Map and Select, are inserted
// before the dataset, or if any operators are added elsewhere in the job. Two calls for the
// same rows return the same purpose; see OwnDrawPurpose.
func (b *Builder) DrawPurpose(what string, d *Dataset) string {
	if b.unusable() || d == nil || d.poisoned {
		return what
	}
	return what + " of " + strconv.FormatUint(b.origins.of[d.node], 16)
}

// OwnDrawPurpose is like DrawPurpose, but every call returns a different purpose, for draws that
// no other operator makes. The n-th call with the same arguments returns the same purpose in
// every job and build. d is nil for a source, which reads no dataset.
func (b *Builder) OwnDrawPurpose(what string, d *Dataset) string {
	purpose := b.DrawPurpose(what, d)
	if b.unusable() {
		return purpose
	}
	if b.origins.drawn == nil {
		b.origins.drawn = map[string]uint64{}
	}
	n := b.origins.drawn[purpose]
	b.origins.drawn[purpose]++
	return purpose + " #" + strconv.FormatUint(n, 10)
}
