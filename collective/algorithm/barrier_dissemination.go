package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
)

// Dissemination Barrier. In round k, rank r sends a message to rank r + 2^k (modulo p) and
// receives a message from rank r − 2^k. The message says that the sender has arrived, and so
// have all ranks whose arrival the sender knows from earlier messages. After ⌈log2 p⌉ rounds
// every rank knows that all ranks have arrived.
//
//	steps            ⌈log2 p⌉ messages in a row
//	sent by rank r   ⌈log2 p⌉ messages without data
//	scratch          no elements
//	order            nothing is folded
//
// Use it if each rank has its own processor core: it has the fewest rounds, and all ranks do
// the same amount of work.
//
// Reference: Hensgen, Finkel and Manber, "Two Algorithms for Barrier Synchronization" (Int. J.
// Parallel Programming 17, 1988).
func barrierDissemination() *Algorithm {
	return &Algorithm{
		Name: "dissemination", Collective: program.Barrier,
		Summary:  "ranks notify others at distances 1, 2, 4, and so on",
		Generate: generateBarrierDissemination, Cost: barrierDisseminationCost,
	}
}

func generateBarrierDissemination(pr Params, rank int) *program.Program {
	p := newPart(program.Barrier, "dissemination", pr, rank, 1)
	var before, sent []program.Dep
	if pr.P > 1 {
		p.newSlot(chunk(0))
	}
	for d := 1; d < pr.P; d *= 2 {
		lane := p.lane((rank+d)%pr.P, (rank-d+pr.P)%pr.P)
		sent = append(sent, p.send(lane, whole(program.In), before...))
		before = []program.Dep{p.recv(lane, whole(program.Scratch), before...)}
	}
	p.copy(p.local(), whole(program.Out), whole(program.In), append(sent, before...)...)
	return p.Program
}

func barrierDisseminationCost(pr Params) program.Cost {
	return program.Cost{Steps: bits.Len(uint(pr.P - 1))}
}
