package algorithm

import (
	"encoding/binary"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
	"github.com/zeebo/xxh3"
)

// This file lists the algorithms of the collectives that only move data, and of Reduce, Scan
// and Exscan.

func broadcasts() []*Algorithm {
	return []*Algorithm{broadcastBinomial(), broadcastScatterAllGather(), broadcastChain()}
}

func reduces() []*Algorithm {
	return []*Algorithm{reduceLinear(), reduceBinomial(), reduceScatterGather()}
}

func gathers() []*Algorithm { return []*Algorithm{gatherLinear(), gatherBinomial()} }

func allGathers() []*Algorithm {
	return []*Algorithm{allGatherDirect(), allGatherRing(), allGatherBruck(), allGatherRecursiveDoubling()}
}

func scatters() []*Algorithm { return []*Algorithm{scatterLinear(), scatterBinomial()} }

func allToAlls() []*Algorithm {
	return []*Algorithm{allToAllDirect(), allToAllPairwise(), allToAllBruck()}
}

func barriers() []*Algorithm {
	return []*Algorithm{barrierDissemination(), barrierTree(), barrierLinear()}
}

func scans() []*Algorithm {
	return []*Algorithm{scanDirect(program.Scan), scanRecursiveDoubling(program.Scan), scanChain(program.Scan)}
}

func exscans() []*Algorithm {
	return []*Algorithm{scanDirect(program.Exscan), scanRecursiveDoubling(program.Exscan), scanChain(program.Exscan)}
}

// partOf is the program of a rank under construction.
type partOf struct{ *program.Program }

// newPart begins the program of a rank for data of the given number of chunks. Input and output
// hold all chunks unless the generator changes this.
func newPart(c program.Collective, name string, pr Params, rank, chunks int) partOf {
	all := sharding.Range{Lo: 0, Hi: chunks}
	p := &program.Program{
		Collective: c, Algorithm: name, P: pr.P, Rank: rank, Root: -1,
		Chunks: chunks, In: all, Out: all,
	}
	if c.Rooted() {
		p.Root = pr.Root
	}
	if pr.Forest != nil {
		p.Nodes = append([]sharding.Node{}, pr.Forest[rank]...)
		p.Forest = hashForests(pr.Forest)
	}
	return partOf{p}
}

// hashForests returns a hash of the nodes of all ranks and of their assignment to ranks. Every
// rank of a forest program calls it, so it must be fast: it reads every node once.
func hashForests(forests [][]sharding.Node) uint64 {
	h := xxh3.New()
	words := make([]byte, 0, 128)
	for _, f := range forests {
		words = binary.LittleEndian.AppendUint64(words[:0], uint64(len(f)))
		for _, n := range f {
			words = binary.LittleEndian.AppendUint64(words, uint64(n.Level))
			words = binary.LittleEndian.AppendUint64(words, uint64(n.Index))
		}
		_, _ = h.Write(words) // never fails
	}
	return h.Sum64()
}

// lane adds a lane with the given peers on channel 0 and returns its number.
func (p partOf) lane(sendPeer, recvPeer int) int {
	p.Lanes = append(p.Lanes, program.Lane{SendPeer: sendPeer, RecvPeer: recvPeer})
	return len(p.Lanes) - 1
}

// local adds a lane without peers.
func (p partOf) local() int { return p.lane(program.NoPeer, program.NoPeer) }

// newSlot adds a scratch slot for chunks and returns its number.
func (p partOf) newSlot(chunks sharding.Range) int {
	p.Scratch = append(p.Scratch, chunks)
	return len(p.Scratch) - 1
}

// add appends an instruction to a lane and returns the Dep that identifies it.
func (p partOf) add(lane int, in program.Instruction, after []program.Dep) program.Dep {
	in.After = slices.Clone(after)
	l := &p.Lanes[lane]
	l.Steps = append(l.Steps, in)
	return program.Dep{Lane: lane, Step: len(l.Steps) - 1}
}

func (p partOf) send(lane int, src program.Ref, after ...program.Dep) program.Dep {
	return p.add(lane, program.Instruction{Op: program.DoSend, Src: []program.Ref{src}}, after)
}

func (p partOf) recv(lane int, dst program.Ref, after ...program.Dep) program.Dep {
	return p.add(lane, program.Instruction{Op: program.DoRecv, Dst: dst}, after)
}

func (p partOf) copy(lane int, dst, src program.Ref, after ...program.Dep) program.Dep {
	return p.add(lane, program.Instruction{Op: program.DoCopy, Dst: dst, Src: []program.Ref{src}}, after)
}

// recvReduce adds an instruction that folds a received value and the value of the reference
// have into dst. If left is set, the received value is the left operand.
func (p partOf) recvReduce(lane int, dst, have program.Ref, left bool, after []program.Dep) program.Dep {
	return p.add(lane, program.Instruction{Op: program.DoRecvReduce, Dst: dst,
		Src: []program.Ref{have}, RecvLeft: left}, after)
}

// join adds an instruction that folds two operands into dst.
func (p partOf) join(lane int, dst, left, right program.Ref, after ...program.Dep) program.Dep {
	return p.add(lane, program.Instruction{Op: program.DoReduce, Dst: dst,
		Src: []program.Ref{left, right}, Fold: []sharding.FoldStep{{Left: 0, Right: 1}}}, after)
}

// whole returns the reference to the only chunk of a buffer.
func whole(b program.Buffer) program.Ref { return program.Chunk(b, 0, 0) }

// chunk returns the range of one chunk.
func chunk(c int) sharding.Range { return sharding.Range{Lo: c, Hi: c + 1} }

// spanOf returns the reference to a range of chunks.
func spanOf(b program.Buffer, slot int, r sharding.Range) program.Ref {
	return program.Ref{Buffer: b, Slot: slot, Chunks: r}
}

// length returns the number of elements of a range of output chunks.
func length(l program.Layout, r sharding.Range) int { return l.Out[r.Hi] - l.Out[r.Lo] }
