package algorithm

import (
	"cmp"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// builder builds the program of one rank. Instructions are added one by one, in an order in
// which a single goroutine could run them. The builder finds the dependencies of each
// instruction: a read comes after the last write of the same chunks, and a write comes after
// all earlier reads and writes of the same chunks. The builder assumes that chunk c of the
// first input and chunk c of the output are the same memory, as an executor may choose.
//
// The builder leaves out dependencies that follow from the order within a half of a lane, and a
// dependency on a write if a reader of the written value is a dependency too. The time to add
// an instruction is proportional to its number of operands. For each operand there is a binary
// search in the list of ranges with different histories, and a part of that list may be moved.
type builder struct {
	*program.Program
	lanes  map[ends]int
	ledger map[memory][]chunkRange // the ranges of a memory, sorted by chunk and without gaps
	need   []access                // dependencies of the instruction being added
}

// ends identifies a lane by its peers and its channel.
type ends struct{ send, recv, channel int }

// memory is the number of a scratch slot, or −1 for the first input and the output together.
type memory int

const data memory = -1

// access is an access to memory by an instruction, in one half of its lane.
type access struct {
	at    program.Dep
	sends bool
}

// chunkRange is a range of chunks with the same history of accesses.
type chunkRange struct {
	chunks  sharding.Range
	written bool
	writer  access
	readers []access // accesses that have read the range since it was written
}

// build begins the program of a rank for data of the given number of chunks. Input and output
// hold all chunks unless the generator changes this.
func build(c program.Collective, name string, pr Params, rank, chunks int) *builder {
	return &builder{
		Program: newPart(c, name, pr, rank, chunks).Program,
		lanes:   map[ends]int{}, ledger: map[memory][]chunkRange{},
	}
}

// claim sets CanonicalTree and RankOrder of the program.
func (b *builder) claim(canonical, order bool) { b.CanonicalTree, b.RankOrder = canonical, order }

// lane returns the number of the lane that sends to the peer send and receives from the peer
// recv on a channel. Each peer is a rank or NoPeer. The first call with the same arguments adds
// the lane.
func (b *builder) lane(send, recv, channel int) int {
	key := ends{send, recv, channel}
	i, ok := b.lanes[key]
	if !ok {
		i = len(b.Lanes)
		b.lanes[key] = i
		b.Lanes = append(b.Lanes, program.Lane{SendPeer: send, RecvPeer: recv, Channel: channel})
	}
	return i
}

// with returns the lane that sends to a peer and receives from it, on channel 0.
func (b *builder) with(peer int) int { return b.lane(peer, peer, 0) }

// local returns the lane for work without messages.
func (b *builder) local() int { return b.lane(program.NoPeer, program.NoPeer, 0) }

// room adds a scratch slot for chunks and returns its number.
func (b *builder) room(chunks sharding.Range) int {
	b.Scratch = append(b.Scratch, chunks)
	return len(b.Scratch) - 1
}

func (b *builder) send(lane int, src program.Ref) {
	b.add(lane, program.Instruction{Op: program.DoSend, Src: []program.Ref{src}})
}

func (b *builder) recv(lane int, dst program.Ref) {
	b.add(lane, program.Instruction{Op: program.DoRecv, Dst: dst})
}

// recvOnce adds a receive that starts only after the chunks of the reference named there are
// written, although the receive does not use these chunks.
func (b *builder) recvOnce(there program.Ref, lane int, dst program.Ref) {
	list, lo, hi := b.history(there)
	for _, s := range list[lo:hi] {
		if s.written {
			b.need = append(b.need, s.writer)
		}
	}
	b.recv(lane, dst)
}

// recvReduce adds an instruction that folds src and a received value into dst. src is the left
// operand, or the right operand if receivedLeft is set.
func (b *builder) recvReduce(lane int, dst, src program.Ref, receivedLeft bool) {
	b.add(lane, program.Instruction{Op: program.DoRecvReduce, Dst: dst, Src: []program.Ref{src}, RecvLeft: receivedLeft})
}

// recvReduceSend is recvReduce, but its instruction also sends dst.
func (b *builder) recvReduceSend(lane int, dst, src program.Ref, receivedLeft bool) {
	b.add(lane, program.Instruction{Op: program.DoRecvReduceSend, Dst: dst, Src: []program.Ref{src}, RecvLeft: receivedLeft})
}

func (b *builder) recvCopySend(lane int, dst program.Ref) {
	b.add(lane, program.Instruction{Op: program.DoRecvCopySend, Dst: dst})
}

func (b *builder) copy(dst, src program.Ref) {
	b.add(b.local(), program.Instruction{Op: program.DoCopy, Dst: dst, Src: []program.Ref{src}})
}

// reduce adds an instruction that folds operands, given from left to right, in the order of
// steps.
func (b *builder) reduce(dst program.Ref, operands []program.Ref, steps []sharding.FoldStep) {
	if len(operands) == 1 {
		b.copy(dst, operands[0])
		return
	}
	b.add(b.local(), program.Instruction{Op: program.DoReduce, Dst: dst, Src: operands, Fold: steps})
}

// add appends an instruction to a lane.
func (b *builder) add(lane int, in program.Instruction) {
	l := &b.Lanes[lane]
	now := access{program.Dep{Lane: lane, Step: len(l.Steps)}, in.Op == program.DoSend}
	for _, src := range in.Src {
		b.reads(src, now)
	}
	if in.Op != program.DoSend {
		b.writes(in.Dst, now)
		if in.Op.Sends() {
			b.reads(in.Dst, access{now.at, true})
		}
	}
	in.After = b.after(now)
	b.need = b.need[:0]
	l.Steps = append(l.Steps, in)
}

// reads records now as an access that reads r, and adds the last write of r to the needed
// dependencies.
func (b *builder) reads(r program.Ref, now access) {
	if r.Buffer == program.In && r.Slot > 0 {
		return // never written
	}
	list, lo, hi := b.history(r)
	for i := lo; i < hi; i++ {
		s := &list[i]
		if s.written {
			b.need = append(b.need, s.writer)
		}
		s.readers = append(s.readers, now)
	}
}

// writes records now as an access that writes r. It adds to the needed dependencies all reads
// since the last write of r or, if there are none, that write.
func (b *builder) writes(r program.Ref, now access) {
	list, lo, hi := b.history(r)
	for i := lo; i < hi; i++ {
		s := &list[i]
		b.need = append(b.need, s.readers...)
		if s.written && len(s.readers) == 0 {
			b.need = append(b.need, s.writer)
		}
	}
	list[lo] = chunkRange{chunks: r.Chunks, written: true, writer: now, readers: list[lo].readers[:0]}
	b.ledger[memoryOf(r)] = slices.Delete(list, lo+1, hi)
}

// after returns the dependencies that the instruction being added needs: for each half of a
// lane, only the last one.
func (b *builder) after(now access) []program.Dep {
	b.need = slices.DeleteFunc(b.need, func(t access) bool {
		return t.at == now.at || t.at.Lane == now.at.Lane && t.sends == now.sends
	})
	if len(b.need) == 0 {
		return nil
	}
	slices.SortFunc(b.need, func(x, y access) int {
		if d := cmp.Compare(x.at.Lane, y.at.Lane); d != 0 {
			return d
		}
		if x.sends != y.sends {
			if y.sends {
				return -1
			}
			return 1
		}
		return cmp.Compare(y.at.Step, x.at.Step)
	})
	b.need = slices.CompactFunc(b.need, func(x, y access) bool {
		return x.at.Lane == y.at.Lane && x.sends == y.sends
	})
	deps := make([]program.Dep, 0, len(b.need))
	for _, t := range b.need {
		if n := len(deps); n == 0 || deps[n-1] != t.at {
			deps = append(deps, t.at)
		}
	}
	return deps
}

func memoryOf(r program.Ref) memory {
	if r.Buffer == program.Scratch {
		return memory(r.Slot)
	}
	return data
}

// history splits the ranges in the ledger of the memory of r so that list[lo:hi] covers exactly
// the chunks of r.
func (b *builder) history(r program.Ref) (list []chunkRange, lo, hi int) {
	m := memoryOf(r)
	list = b.ledger[m]
	if list == nil {
		list = []chunkRange{{chunks: sharding.Range{Lo: 0, Hi: b.Chunks}}}
	}
	list, lo = cut(list, r.Chunks.Lo)
	list, hi = cut(list, r.Chunks.Hi)
	b.ledger[m] = list
	return list, lo, hi
}

// cut returns list with a range that begins at the chunk numbered at, and the index of that
// range. If necessary it splits a range.
func cut(list []chunkRange, at int) ([]chunkRange, int) {
	i, found := slices.BinarySearchFunc(list, at, func(s chunkRange, at int) int { return cmp.Compare(s.chunks.Lo, at) })
	if found || at >= list[i-1].chunks.Hi {
		return list, i
	}
	s := &list[i-1]
	right := *s
	right.chunks.Lo, right.readers = at, slices.Clone(s.readers)
	s.chunks.Hi = at
	return slices.Insert(list, i, right), i
}

// finish completes and returns the program. It sets SendPeer of lanes that send nothing, and
// RecvPeer of lanes that receive nothing, to NoPeer.
func (b *builder) finish() *program.Program {
	for i := range b.Lanes {
		l := &b.Lanes[i]
		sends, receives := false, false
		for j := range l.Steps {
			sends = sends || l.Steps[j].Op.Sends()
			receives = receives || l.Steps[j].Op.Receives()
		}
		if !sends {
			l.SendPeer = program.NoPeer
		}
		if !receives {
			l.RecvPeer = program.NoPeer
		}
	}
	return b.Program
}

// alone completes the program of a group of one rank, which copies the input to the output.
func (b *builder) alone() *program.Program {
	all := sharding.Range{Lo: 0, Hi: b.Chunks}
	b.copy(spanOf(program.Out, 0, all), spanOf(program.In, 0, all))
	return b.finish()
}
