package simulate

import (
	"context"
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// These are programs in the form in which textbooks describe them. Formulas for their times are
// known, and they do not depend on the generators of package algorithm.

// blank returns an AllReduce program without lanes.
func blank(name string, p, rank, chunks int) *program.Program {
	all := sharding.Range{Lo: 0, Hi: chunks}
	return &program.Program{Collective: program.AllReduce, Algorithm: name, P: p, Rank: rank, Root: -1,
		Chunks: chunks, In: all, Out: all}
}

// ring returns the program of a rank in a ring AllReduce: a reduce-scatter and an all-gather in
// 2·(p−1) steps, in each of which the rank sends to the next rank.
func ring(p, rank int) *program.Program {
	prog := blank("ring", p, rank, p)
	mod := func(c int) int { return ((c % p) + p) % p }
	lane := program.Lane{SendPeer: mod(rank + 1), RecvPeer: mod(rank - 1)}
	for t := range p - 1 {
		send := program.Instruction{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.Out, 0, mod(rank-t-1))}}
		if t == 0 {
			send.Src[0].Buffer = program.In
		} else {
			send.After = []program.Dep{{Lane: 0, Step: len(lane.Steps) - 1}}
		}
		c := mod(rank - t - 2)
		lane.Steps = append(lane.Steps, send, program.Instruction{Op: program.DoRecvReduce,
			Dst: program.Chunk(program.Out, 0, c), Src: []program.Ref{program.Chunk(program.In, 0, c)}})
	}
	for t := range p - 1 {
		lane.Steps = append(lane.Steps,
			program.Instruction{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.Out, 0, mod(rank-t))},
				After: []program.Dep{{Lane: 0, Step: len(lane.Steps) - 1}}},
			program.Instruction{Op: program.DoRecv, Dst: program.Chunk(program.Out, 0, mod(rank-t-1))})
	}
	prog.Lanes = []program.Lane{lane}
	return prog
}

// doubling returns the program of a rank that exchanges the whole vector with the ranks rank ^
// 1, rank ^ 2, rank ^ 4 and so on (^ is the bitwise exclusive or). p is a power of two.
func doubling(p, rank int) *program.Program {
	prog := blank("doubling", p, rank, 1)
	for d := range bits.Len(uint(p)) - 1 {
		peer := rank ^ 1<<d
		from, to := program.Chunk(program.In, 0, 0), program.Chunk(program.Out, 0, 0)
		var after []program.Dep
		if d > 0 {
			// Each round has its own scratch slot, so that a value that is being sent is not
			// overwritten.
			from = program.Chunk(program.Scratch, d-1, 0)
			after = []program.Dep{{Lane: d - 1, Step: 1}}
		}
		if 2<<d < p {
			prog.Scratch = append(prog.Scratch, sharding.Range{Lo: 0, Hi: 1})
			to = program.Chunk(program.Scratch, d, 0)
		}
		prog.Lanes = append(prog.Lanes, program.Lane{SendPeer: peer, RecvPeer: peer, Steps: []program.Instruction{
			{Op: program.DoSend, Src: []program.Ref{from}, After: after},
			{Op: program.DoRecvReduce, Dst: to, Src: []program.Ref{from}, After: after},
		}})
	}
	return prog
}

// chain returns the program of a rank of a chain, in which the whole vector of rank 0 is passed
// from rank to rank.
func chain(p, rank int) *program.Program {
	prog := blank("chain", p, rank, 1)
	lane := program.Lane{SendPeer: rank + 1, RecvPeer: rank - 1}
	in := program.Instruction{Op: program.DoRecvCopySend, Dst: program.Chunk(program.Out, 0, 0)}
	switch rank {
	case 0:
		in = program.Instruction{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.In, 0, 0)}}
		lane.RecvPeer = program.NoPeer
	case p - 1:
		in.Op = program.DoRecv
		lane.SendPeer = program.NoPeer
	}
	lane.Steps = []program.Instruction{in}
	prog.Lanes = []program.Lane{lane}
	return prog
}

// flat returns an ideal network: one rank per host, unlimited cores, and a window that is never
// full.
func flat() *Network {
	return &Network{
		Rack: Link{Latency: 50e-6, Bandwidth: 1.25e9}, SendOverhead: 4e-6, RecvOverhead: 6e-6,
		SendCopy: 0.1e-9, RecvCopy: 0.3e-9, Copy: 0.2e-9, Gamma: 0.25e-9, Window: math.MaxInt / 2,
	}
}

// whole has options with which each message has one segment, and a rank may use several cores.
var whole = Options{Segment: math.MaxInt / 2, SerialLimit: -1}

func work(p, bytes int, generate func(p, rank int) *program.Program) *Work {
	return &Work{P: p, Elements: bytes / 8, Elem: 8, Program: func(r int) *program.Program { return generate(p, r) }}
}

func mustRun(t testing.TB, w *Work, n *Network, opt Options) *Result {
	t.Helper()
	r, err := Run(context.Background(), w, n, opt)
	require.NoError(t, err)
	require.InEpsilon(t, r.Time+1e-30, r.Chain.Total()+1e-30, 1e-9, "the times of the chain must add up to the total time")
	return r
}
