package collective

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/shared"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestDirectProgramsAsText(t *testing.T) {
	for p := 1; p <= 4; p++ {
		var b strings.Builder
		for rank := range p {
			prog := GenerateDirect(p, rank)
			require.NoError(t, prog.Validate())
			fmt.Fprintf(&b, "%shash %016x group %016x\n\n", prog.String(), prog.Hash(), prog.GroupHash())
		}
		file := filepath.Join("testdata", fmt.Sprintf("direct_p%d.txt", p))
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), b.String(), "%s differs; if it should, run with -update", file)
	}
}

func TestInstructionsAsText(t *testing.T) {
	two := shared.Range{Lo: 2, Hi: 4}
	for want, in := range map[string]Instruction{
		"send in[0]": {Op: DoSend, Src: []Ref{chunk(BufferIn, 0, 0)}},
		"recv scratch1[2:4] after 0.1 2.3": {Op: DoRecv, Dst: Ref{BufferScratch, 1, two},
			After: []Dep{{0, 1}, {2, 3}}},
		"recv-reduce out[1] = (in[1] received)": {Op: DoRecvReduce, Dst: chunk(BufferOut, 0, 1),
			Src: []Ref{chunk(BufferIn, 0, 1)}},
		"recv-reduce-send out[1] = (received in1[1])": {Op: DoRecvReduceSend, Dst: chunk(BufferOut, 0, 1),
			Src: []Ref{chunk(BufferIn, 1, 1)}, RecvLeft: true},
		"recv-copy-send out[5]": {Op: DoRecvCopySend, Dst: chunk(BufferOut, 0, 5)},
		"copy out[0] = in[0]":   {Op: DoCopy, Dst: chunk(BufferOut, 0, 0), Src: []Ref{chunk(BufferIn, 0, 0)}},
		"reduce out[0] = (in[0] (in[1] in[2]))": {Op: DoReduce, Dst: chunk(BufferOut, 0, 0),
			Src:  []Ref{chunk(BufferIn, 0, 0), chunk(BufferIn, 0, 1), chunk(BufferIn, 0, 2)},
			Fold: []shared.FoldStep{{Left: 1, Right: 2}, {Left: 0, Right: 1}}},
	} {
		require.Equal(t, want, in.String())
	}
	require.Equal(t, "opcode(200)", OpCode(200).String())
	require.Equal(t, "buffer(9)", Buffer(9).String())
	require.Contains(t, (&Instruction{Op: DoSend}).String(), "?", "also what is broken prints")
	require.Contains(t, (&Instruction{Op: DoReduce}).String(), "?")
	require.Contains(t, (&Instruction{Op: DoReduce, Fold: []shared.FoldStep{{Left: 0, Right: 1}}}).String(), "?")
}

func TestHashesTellProgramsApart(t *testing.T) {
	parts, groups := map[uint64]string{}, map[uint64]int{}
	for p := 1; p <= 12; p++ {
		for rank := range p {
			prog := GenerateDirect(p, rank)
			again := GenerateDirect(p, rank)
			require.Equal(t, prog.Hash(), again.Hash())
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

func TestBrokenFormIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(p *Program){
		"rank 3 of 3":                func(p *Program) { p.Rank = 3 },
		"root 7":                     func(p *Program) { p.Root = 7 },
		"0 chunks":                   func(p *Program) { p.Chunks = 0 },
		"scratch 1 holds":            func(p *Program) { p.Scratch[1].Hi = 9 },
		"lane 1 has peer 1":          func(p *Program) { p.Lanes[1].SendPeer = 1 },
		"lane 2 has peer 3":          func(p *Program) { p.Lanes[2].RecvPeer = 3 },
		"no peer to send to":         func(p *Program) { p.Lanes[1].SendPeer = NoPeer },
		"no peer to receive from":    func(p *Program) { p.Lanes[1].RecvPeer = NoPeer },
		"no such instruction":        func(p *Program) { p.Lanes[1].Steps[0].Op = numOpCodes },
		"0 operands":                 func(p *Program) { p.Lanes[1].Steps[0].Src = nil },
		"in[3] is outside":           func(p *Program) { p.Lanes[1].Steps[0].Src[0] = chunk(BufferIn, 0, 3) },
		"in[1:1] is outside":         func(p *Program) { p.Lanes[1].Steps[0].Src[0].Chunks = shared.Range{Lo: 1, Hi: 1} },
		"no such partial value: in1": func(p *Program) { p.Lanes[1].Steps[0].Src[0].Slot = 1 },
		"no such scratch slot":       func(p *Program) { p.Lanes[1].Steps[1].Dst.Slot = 2 },
		"no such buffer":             func(p *Program) { p.Lanes[1].Steps[1].Dst.Buffer = numBuffers },
		"scratch0[2] is outside":     func(p *Program) { p.Lanes[1].Steps[1].Dst.Chunks = shared.Range{Lo: 2, Hi: 3} },
		"writes the input":           func(p *Program) { p.Lanes[1].Steps[1].Dst = chunk(BufferIn, 0, 1) },
		"are different chunks":       func(p *Program) { p.Lanes[0].Steps[0].Dst = chunk(BufferOut, 0, 0) },
		"join every operand":         func(p *Program) { p.Lanes[0].Steps[0].Fold = nil },
		"step 5.0, which":            func(p *Program) { p.Lanes[1].Steps[2].After = []Dep{{5, 0}} },
		"step 0.1, which":            func(p *Program) { p.Lanes[1].Steps[2].After = []Dep{{0, 1}} },
	} {
		prog := GenerateDirect(3, 1)
		require.NoError(t, prog.Validate())
		spoil(&prog)
		require.ErrorContains(t, prog.Validate(), want)
	}
}
