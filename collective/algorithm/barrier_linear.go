package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Linear Barrier. When a rank has arrived, it sends a message to rank 0. When all ranks have
// arrived, rank 0 sends a message to each rank.
//
//	steps            2 messages in a row, although rank 0 receives p − 1 messages
//	                 one after another, and sends p − 1
//	sent by rank r   one message without data; p − 1 messages by rank 0: 2·(p − 1) in
//	                 all, the minimum of all algorithms
//	scratch          no elements
//	order            nothing is folded
//
// Use it for ranks that share few processor cores: it has as few messages as the tree, and rank
// 0 is the only rank that must be woken in order to send messages.
//
// Reference: folklore (the central counter).
func barrierLinear() *Algorithm {
	return &Algorithm{
		Name: "linear", Collective: program.Barrier,
		Summary:  "all notify rank 0, which notifies all",
		Generate: generateBarrierLinear, Cost: barrierLinearCost,
	}
}

func generateBarrierLinear(pr Params, rank int) *program.Program {
	p := newPart(program.Barrier, "linear", pr, rank, 1)
	var last []program.Dep
	if rank > 0 {
		up := p.lane(0, 0)
		told := p.send(up, whole(program.In))
		room := program.Chunk(program.Scratch, p.newSlot(chunk(0)), 0)
		last = []program.Dep{told, p.recv(up, room)}
	} else {
		for r := 1; r < pr.P; r++ {
			room := program.Chunk(program.Scratch, p.newSlot(chunk(0)), 0)
			last = append(last, p.recv(p.lane(r, r), room))
		}
		come := last
		for r := 1; r < pr.P; r++ {
			last = append(last, p.send(r-1, whole(program.In), come...))
		}
	}
	p.copy(p.local(), whole(program.Out), whole(program.In), last...)
	return p.Program
}

func barrierLinearCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	return program.Cost{Steps: 2}
}
