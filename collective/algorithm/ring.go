package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// ring describes a ring of size members from the view of the member with the given index. Each
// member of the ring owns a part of the data.
type ring struct {
	size, index int
	lane        int                        // sends to the next member, receives from the previous one
	part        func(i int) sharding.Range // the chunks of member i's part
}

// back returns the part of the member that comes the given number of places before this member
// in the ring.
func (r *ring) back(places int) sharding.Range { return r.part((r.index + r.size - places) % r.size) }

// scatterRing adds a reduce-scatter: part i starts at member i + 1 and travels around the ring
// to member i, and each member folds its own contribution into the part. Contributions are read
// from the buffer of the reference from. At member 0 the received value comes from members with
// higher indices, so its own contribution is the left operand. The result is in the output.
func (b *builder) scatterRing(r ring, from program.Ref) {
	refs := func(places int) (dst, src program.Ref) {
		chunks := r.back(places)
		return spanOf(program.Out, 0, chunks), spanOf(from.Buffer, from.Slot, chunks)
	}
	_, src := refs(1)
	b.send(r.lane, src)
	for places := 2; places < r.size; places++ {
		dst, src := refs(places)
		b.recvReduceSend(r.lane, dst, src, r.index > 0)
	}
	dst, src := refs(r.size)
	b.recvReduce(r.lane, dst, src, r.index > 0)
}

// gatherRing adds an all-gather: every part travels from its owner to the member before it.
func (b *builder) gatherRing(r ring) {
	b.send(r.lane, spanOf(program.Out, 0, r.back(0)))
	for places := 1; places < r.size-1; places++ {
		b.recvCopySend(r.lane, spanOf(program.Out, 0, r.back(places)))
	}
	b.recv(r.lane, spanOf(program.Out, 0, r.back(r.size-1)))
}
