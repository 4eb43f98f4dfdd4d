package program_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	. "github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// direct returns the program of a rank of an AllReduce in which every rank owns a chunk: lane 0
// folds the pieces of its own chunk, and lane k exchanges pieces and results with rank (rank +
// k) mod p.
func direct(p, rank int) *Program {
	all := sharding.Range{Lo: 0, Hi: p}
	prog := &Program{Collective: AllReduce, Algorithm: "direct", P: p, Rank: rank, Root: -1, Chunks: p, In: all, Out: all,
		CanonicalTree: true, RankOrder: true}
	fold := Instruction{Op: DoReduce, Dst: Chunk(Out, 0, rank), Src: make([]Ref, p), Fold: sharding.RankSchedule(p, nil)}
	fold.Src[rank] = Chunk(In, 0, rank)
	prog.Lanes = []Lane{{SendPeer: NoPeer, RecvPeer: NoPeer}}
	for k := 1; k < p; k++ {
		peer := (rank + k) % p
		prog.Scratch = append(prog.Scratch, sharding.Range{Lo: rank, Hi: rank + 1})
		fold.Src[peer] = Chunk(Scratch, k-1, rank)
		fold.After = append(fold.After, Dep{k, 1})
		prog.Lanes = append(prog.Lanes, Lane{SendPeer: peer, RecvPeer: peer, Steps: []Instruction{
			{Op: DoSend, Src: []Ref{Chunk(In, 0, peer)}},
			{Op: DoRecv, Dst: Chunk(Scratch, k-1, rank)},
			{Op: DoSend, Src: []Ref{Chunk(Out, 0, rank)}, After: []Dep{{0, 0}}},
			{Op: DoRecv, Dst: Chunk(Out, 0, peer), After: []Dep{{k, 0}}},
		}})
	}
	prog.Lanes[0].Steps = []Instruction{fold}
	return prog
}

func ExampleProgram() {
	fmt.Print(direct(2, 0))
	// Output:
	// program allreduce direct p=2 rank=0 chunks=2 canonical order
	// in [0:2] out [0:2] scratch0[0]
	// lane 0 local
	//   0 reduce out[0] = (in[0] scratch0[0]) after 1.1
	// lane 1 send=1 recv=1 channel=0
	//   0 send in[1]
	//   1 recv scratch0[0]
	//   2 send out[0] after 0.0
	//   3 recv out[1] after 1.0
}

func TestProgramsAsText(t *testing.T) {
	require.Equal(t, `program reduce linear p=3 rank=2 root=1 chunks=4
in [0:4] 1:2 0:6 out [0:0] scratch0[0:4]
lane 0 send=1 channel=5
  0 send in1[0:4]
lane 1 recv=0 channel=0
`, (&Program{Collective: Reduce, Algorithm: "linear", P: 3, Rank: 2, Root: 1, Chunks: 4, In: sharding.Range{Lo: 0, Hi: 4},
		Nodes: []sharding.Node{{Level: 1, Index: 2}, {Level: 0, Index: 6}}, Scratch: []sharding.Range{{Lo: 0, Hi: 4}},
		Lanes: []Lane{
			{SendPeer: 1, RecvPeer: NoPeer, Channel: 5, Steps: []Instruction{{Op: DoSend, Src: []Ref{Span(In, 1, 0, 4)}}}},
			{SendPeer: NoPeer, RecvPeer: 0},
		}}).String())
	require.Equal(t, "program barrier none p=1 rank=0 chunks=1 order\nin [0:0] nothing out [0:0]\n",
		(&Program{Collective: Barrier, Algorithm: "none", P: 1, Root: -1, Chunks: 1, Nodes: []sharding.Node{}, RankOrder: true}).String())
}

func TestInstructionsAsText(t *testing.T) {
	for want, in := range map[string]Instruction{
		"send in[0]": {Op: DoSend, Src: []Ref{Chunk(In, 0, 0)}},
		"recv scratch1[2:4] after 0.1 2.3": {Op: DoRecv, Dst: Span(Scratch, 1, 2, 4),
			After: []Dep{{0, 1}, {2, 3}}},
		"recv-reduce out[1] = (in[1] received)": {Op: DoRecvReduce, Dst: Chunk(Out, 0, 1),
			Src: []Ref{Chunk(In, 0, 1)}},
		"recv-reduce-send out[1] = (received in1[1])": {Op: DoRecvReduceSend, Dst: Chunk(Out, 0, 1),
			Src: []Ref{Chunk(In, 1, 1)}, RecvLeft: true},
		"recv-copy-send out[5]": {Op: DoRecvCopySend, Dst: Chunk(Out, 0, 5)},
		"copy out[0] = in[0]":   {Op: DoCopy, Dst: Chunk(Out, 0, 0), Src: []Ref{Chunk(In, 0, 0)}},
		"reduce out[0] = (in[0] (in[1] in[2]))": {Op: DoReduce, Dst: Chunk(Out, 0, 0),
			Src:  []Ref{Chunk(In, 0, 0), Chunk(In, 0, 1), Chunk(In, 0, 2)},
			Fold: []sharding.FoldStep{{Left: 1, Right: 2}, {Left: 0, Right: 1}}},
	} {
		require.Equal(t, want, in.String())
	}
	require.Equal(t, "opcode(200)", OpCode(200).String())
	require.Equal(t, "buffer(9)", Buffer(9).String())
	require.Equal(t, "collective(99)", Collective(99).String())
	require.Contains(t, (&Instruction{Op: DoSend}).String(), "?", "an instruction without operands must have a text too")
	require.Contains(t, (&Instruction{Op: DoReduce}).String(), "?")
	require.Contains(t, (&Instruction{Op: DoReduce, Fold: []sharding.FoldStep{{Left: 0, Right: 1}}}).String(), "?")
}

// TestKinds requires that collectives and instructions have the properties that the test lists.
func TestKinds(t *testing.T) {
	rooted := map[Collective]bool{Broadcast: true, Reduce: true, Gather: true, Scatter: true}
	reducing := map[Collective]bool{AllReduce: true, Reduce: true, ReduceScatter: true, Scan: true, Exscan: true}
	names := map[string]bool{}
	for c := range NumCollectives {
		require.Equal(t, rooted[c], c.Rooted(), c)
		require.Equal(t, reducing[c], c.Reduces(), c)
		require.False(t, names[c.String()])
		names[c.String()] = true
	}
	for op, kinds := range map[OpCode][3]bool{ // sends, receives, reduces
		DoSend: {true, false, false}, DoRecv: {false, true, false}, DoCopy: {},
		DoRecvReduce: {false, true, true}, DoRecvReduceSend: {true, true, true},
		DoRecvCopySend: {true, true, false}, DoReduce: {false, false, true},
	} {
		require.Equal(t, kinds, [3]bool{op.Sends(), op.Receives(), op.Reduces()}, op)
	}
}

func TestHashesTellProgramsApart(t *testing.T) {
	parts, groups := map[uint64]string{}, map[uint64]int{}
	for p := 1; p <= 12; p++ {
		for rank := range p {
			prog := direct(p, rank)
			require.Equal(t, prog.Hash(), direct(p, rank).Hash())
			id := fmt.Sprintf("%d of %d", rank, p)
			require.Empty(t, parts[prog.Hash()], id)
			parts[prog.Hash()] = id
			if other, ok := groups[prog.GroupHash()]; ok {
				require.Equal(t, other, p)
			}
			groups[prog.GroupHash()] = p
		}
	}
	require.Len(t, groups, 12)
}

// TestWhatTheGroupHashCovers changes one field at a time. It requires that GroupHash changes,
// except for fields that differ among ranks.
func TestWhatTheGroupHashCovers(t *testing.T) {
	sound := direct(3, 1)
	for what, change := range map[string]func(p *Program){
		"collective": func(p *Program) { p.Collective = Scan },
		"algorithm":  func(p *Program) { p.Algorithm = "ring" },
		"ranks":      func(p *Program) { p.P = 4 },
		"root":       func(p *Program) { p.Root = 0 },
		"chunks":     func(p *Program) { p.Chunks = 6 },
		"forest":     func(p *Program) { p.Forest = 1 },
		"canonical":  func(p *Program) { p.CanonicalTree = false },
		"order":      func(p *Program) { p.RankOrder = false },
	} {
		p := *sound
		change(&p)
		require.NotEqual(t, sound.GroupHash(), p.GroupHash(), what)
	}
	p := *sound
	p.Rank, p.Scratch, p.Nodes, p.Lanes = 2, nil, []sharding.Node{}, nil
	require.Equal(t, sound.GroupHash(), p.GroupHash(), "fields that differ among ranks must not change the hash")
}

func TestPartials(t *testing.T) {
	p := direct(2, 0)
	require.Equal(t, 1, p.Partials())
	p.Nodes = []sharding.Node{}
	require.Equal(t, 0, p.Partials())
	require.ErrorContains(t, p.Validate(), "no such node of the input: in[0]")
	p.Nodes = []sharding.Node{{Level: 0, Index: 3}, {Level: 2, Index: 1}}
	require.Equal(t, 2, p.Partials())
	require.NoError(t, p.Validate())
}

func TestBrokenFormIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(p *Program){
		"rank 3 of 3":                  func(p *Program) { p.Rank = 3 },
		"rank 1 of 0":                  func(p *Program) { p.P = 0 },
		"root 7":                       func(p *Program) { p.Root = 7 },
		"0 chunks":                     func(p *Program) { p.Chunks = 0 },
		"a buffer holds chunks [0,4)":  func(p *Program) { p.In.Hi = 4 },
		"a buffer holds chunks [-1,3)": func(p *Program) { p.Out.Lo = -1 },
		"a buffer holds chunks [2,1)":  func(p *Program) { p.Out = sharding.Range{Lo: 2, Hi: 1} },
		"scratch 1 holds":              func(p *Program) { p.Scratch[1].Hi = 9 },
		"scratch 0 holds chunks [1,1)": func(p *Program) { p.Scratch[0].Hi = 1 },
		"lane 1 has peer 1":            func(p *Program) { p.Lanes[1].SendPeer = 1 },
		"lane 2 has peer 3":            func(p *Program) { p.Lanes[2].RecvPeer = 3 },
		"lane 2 has peer -2":           func(p *Program) { p.Lanes[2].RecvPeer = -2 },
		"lane 1 uses channel 64":       func(p *Program) { p.Lanes[1].Channel = MaxChannels },
		"lane 1 uses channel -1":       func(p *Program) { p.Lanes[1].Channel = -1 },
		"no peer to send to":           func(p *Program) { p.Lanes[1].SendPeer = NoPeer },
		"no peer to receive from":      func(p *Program) { p.Lanes[1].RecvPeer = NoPeer },
		"no such instruction":          func(p *Program) { p.Lanes[1].Steps[0].Op = 99 },
		"0 operands":                   func(p *Program) { p.Lanes[1].Steps[0].Src = nil },
		"1 operands":                   func(p *Program) { p.Lanes[1].Steps[1].Src = []Ref{Chunk(In, 0, 1)} },
		"in[3] is outside":             func(p *Program) { p.Lanes[1].Steps[0].Src[0] = Chunk(In, 0, 3) },
		"in[1:1] is outside":           func(p *Program) { p.Lanes[1].Steps[0].Src[0].Chunks = sharding.Range{Lo: 1, Hi: 1} },
		"out[1] is outside":            func(p *Program) { p.Out.Hi = 1 },
		"no such node of the input":    func(p *Program) { p.Lanes[1].Steps[0].Src[0].Slot = 1 },
		"the output has one slot":      func(p *Program) { p.Lanes[1].Steps[2].Src[0].Slot = 1 },
		"no such scratch slot":         func(p *Program) { p.Lanes[1].Steps[1].Dst.Slot = 2 },
		"no such buffer":               func(p *Program) { p.Lanes[1].Steps[1].Dst.Buffer = 3 },
		"scratch0[2] is outside":       func(p *Program) { p.Lanes[1].Steps[1].Dst.Chunks = sharding.Range{Lo: 2, Hi: 3} },
		"writes the input":             func(p *Program) { p.Lanes[1].Steps[1].Dst = Chunk(In, 0, 1) },
		"are different chunks":         func(p *Program) { p.Lanes[0].Steps[0].Dst = Chunk(Out, 0, 0) },
		"join every operand":           func(p *Program) { p.Lanes[0].Steps[0].Fold = nil },
		"step 5.0, which":              func(p *Program) { p.Lanes[1].Steps[2].After = []Dep{{5, 0}} },
		"step 0.1, which":              func(p *Program) { p.Lanes[1].Steps[2].After = []Dep{{0, 1}} },
	} {
		prog := direct(3, 1)
		require.NoError(t, prog.Validate())
		spoil(prog)
		require.ErrorContains(t, prog.Validate(), want)
	}
}

// TestAllToAllMovesBetweenChunks requires that source and destination of an instruction may
// have different chunk numbers only in an AllToAll.
func TestAllToAllMovesBetweenChunks(t *testing.T) {
	p := &Program{Collective: AllToAll, P: 2, Root: -1, Chunks: 2, In: sharding.Range{Lo: 0, Hi: 2}, Out: sharding.Range{Lo: 0, Hi: 2},
		Lanes: []Lane{{SendPeer: NoPeer, RecvPeer: NoPeer, Steps: []Instruction{{Op: DoCopy, Dst: Chunk(Out, 0, 1), Src: []Ref{Chunk(In, 0, 0)}}}}}}
	require.NoError(t, p.Validate())
	p.Lanes[0].Steps[0].Src[0].Chunks.Hi = 2
	require.ErrorContains(t, p.Validate(), "out[1] and in[0:2] are different chunks")
	p.Lanes[0].Steps[0].Src[0].Chunks.Hi = 1
	p.Collective = AllGather
	require.ErrorContains(t, p.Validate(), "out[1] and in[0] are different chunks")
}
