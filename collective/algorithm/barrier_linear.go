package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Linear Barrier. Each rank tells rank 0 that it has arrived; when all have, rank 0 tells each
// rank.
//
//	steps            2 messages in a row, though rank 0 takes and sends p − 1 one
//	                 after another
//	sent by rank r   one message of no data, by rank 0 p − 1 of them: 2·(p − 1) in all,
//	                 as few as there can be
//	scratch          no elements
//	order            nothing is folded
//
// For ranks that share few cores: it has as few messages as the tree, and only rank 0 is woken
// to pass something on.
//
// Folklore: the central counter.
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
		room := program.Chunk(program.Scratch, p.room(chunk(0)), 0)
		last = []program.Dep{told, p.recv(up, room)}
	} else {
		for r := 1; r < pr.P; r++ {
			room := program.Chunk(program.Scratch, p.room(chunk(0)), 0)
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
