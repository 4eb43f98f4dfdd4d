package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Chain Scan and Exscan. Rank r receives the fold of the ranks before it from rank r − 1, folds
// it with its own data as right operand, and sends the result to rank r + 1.
//
//	steps            p − 1 messages in a row; p − 2 + S if an executor cuts the data
//	                 into S segments and pipelines them
//	sent by rank r   n elements; nothing by the last rank
//	scratch          none for Scan; 2·n for Exscan, on all ranks except the first
//	                 and the last
//	order            ((0 1) 2) 3 and so on: from left to right
//
// Use it for long data: every link carries every byte once and every rank folds once.
//
// Reference: folklore.
func scanChain(c program.Collective) *Algorithm {
	return &Algorithm{
		Name: "chain", Collective: c,
		Summary:   "from rank to rank, in segments that follow each other",
		RankOrder: Always,
		Generate: func(pr Params, rank int) *program.Program {
			if c == program.Scan {
				return generateScanChain(pr, rank)
			}
			return generateExscanChain(pr, rank)
		},
		Cost: scanChainCost,
	}
}

func generateScanChain(pr Params, rank int) *program.Program {
	p := newPart(program.Scan, "chain", pr, rank, 1)
	p.RankOrder = true
	in, out := whole(program.In), whole(program.Out)
	last := rank == pr.P-1
	switch {
	case rank == 0 && last:
		p.copy(p.local(), out, in)
	case rank == 0:
		p.copy(p.local(), out, in, p.send(p.lane(1, program.NoPeer), in))
	case last:
		p.add(p.lane(program.NoPeer, rank-1), program.Instruction{Op: program.DoRecvReduce,
			Dst: out, Src: []program.Ref{in}, RecvLeft: true}, nil)
	default:
		p.add(p.lane(rank+1, rank-1), program.Instruction{Op: program.DoRecvReduceSend,
			Dst: out, Src: []program.Ref{in}, RecvLeft: true}, nil)
	}
	return p.Program
}

func generateExscanChain(pr Params, rank int) *program.Program {
	p := newPart(program.Exscan, "chain", pr, rank, 1)
	p.RankOrder = true
	in, out := whole(program.In), whole(program.Out)
	last := rank == pr.P-1
	switch {
	case rank == 0:
		p.Out.Hi = 0
		if !last {
			p.send(p.lane(1, program.NoPeer), in)
		}
	case last:
		p.recv(p.lane(program.NoPeer, rank-1), out)
	default:
		before := program.Chunk(program.Scratch, p.newSlot(chunk(0)), 0)
		upTo := program.Chunk(program.Scratch, p.newSlot(chunk(0)), 0)
		// The fold has its own lane. In the lane of the receive, the fold would wait for the
		// last segment of the receive, and the first segment could be passed on only after
		// that.
		lane, local := p.lane(rank+1, rank-1), p.local()
		p.send(lane, upTo, p.join(local, upTo, before, in, p.recv(lane, before)))
		p.copy(local, out, before)
	}
	return p.Program
}

func scanChainCost(pr Params) program.Cost {
	return program.Cost{Steps: pr.P - 1, Sent: func(rank int, l program.Layout) int {
		if rank == pr.P-1 {
			return 0
		}
		return l.Out[1]
	}}
}
