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
// The builder leaves out dependencies that follow from the order within a half of a lane. It also
// leaves out a dependency on a write if there is a dependency on a reader of the written value.
// The time to add
// an instruction is proportional to its number of operands. For each operand there is a binary
// search in the list of ranges with different histories, and a part of that list may be moved.
type builder struct {
	*program.Program
	lanes    map[lanePeers]int
	accesses map[memory][]chunkRange // the ranges of a memory, sorted by chunk and without gaps
	needed   []access                // dependencies of the instruction being added
}

// lanePeers identifies a lane by its peers and its channel.
type lanePeers struct{ send, recv, channel int }

// memory is the number of a scratch slot, or −1 for the first input and the output together.
type memory int

const userData memory = -1

// access is an access to memory by an instruction, in one half of its lane.
type access struct {
	step  program.Dep
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
		lanes:   map[lanePeers]int{}, accesses: map[memory][]chunkRange{},
	}
}

// claim sets CanonicalTree and RankOrder of the program.
func (b *builder) claim(canonical, order bool) { b.CanonicalTree, b.RankOrder = canonical, order }

// lane returns the number of the lane that sends to the peer send and receives from the peer
// recv on a channel. Each peer is a rank or NoPeer. The first call with the same arguments adds
// the lane.
func (b *builder) lane(send, recv, channel int) int {
	key := lanePeers{send, recv, channel}
	i, ok := b.lanes[key]
	if !ok {
		i = len(b.Lanes)
		b.lanes[key] = i
		b.Lanes = append(b.Lanes, program.Lane{SendPeer: send, RecvPeer: recv, Channel: channel})
	}
	return i
}

// exchangeLane returns the lane that sends to a peer and receives from it, on channel 0.
func (b *builder) exchangeLane(peer int) int { return b.lane(peer, peer, 0) }

// local returns the lane for work without messages.
func (b *builder) local() int { return b.lane(program.NoPeer, program.NoPeer, 0) }

// newSlot adds a scratch slot for chunks and returns its number.
func (b *builder) newSlot(chunks sharding.Range) int {
	b.Scratch = append(b.Scratch, chunks)
	return len(b.Scratch) - 1
}

func (b *builder) send(lane int, src program.Ref) {
	b.add(lane, program.Instruction{Op: program.DoSend, Src: []program.Ref{src}})
}

func (b *builder) recv(lane int, dst program.Ref) {
	b.add(lane, program.Instruction{Op: program.DoRecv, Dst: dst})
}

// recvAfter adds a receive that starts only after the chunks of the reference written are
// written, although the receive does not use these chunks.
func (b *builder) recvAfter(written program.Ref, lane int, dst program.Ref) {
	list, lo, hi := b.history(written)
	for _, s := range list[lo:hi] {
		if s.written {
			b.needed = append(b.needed, s.writer)
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
		b.noteRead(src, now)
	}
	if in.Op != program.DoSend {
		b.noteWrite(in.Dst, now)
		if in.Op.Sends() {
			b.noteRead(in.Dst, access{now.step, true})
		}
	}
	in.After = b.takeNeeded(now)
	b.needed = b.needed[:0]
	l.Steps = append(l.Steps, in)
}

// noteRead records that the access now reads r, and adds the last write of r to the needed
// dependencies.
func (b *builder) noteRead(r program.Ref, now access) {
	if r.Buffer == program.In && r.Slot > 0 {
		return // never written
	}
	list, lo, hi := b.history(r)
	for i := lo; i < hi; i++ {
		s := &list[i]
		if s.written {
			b.needed = append(b.needed, s.writer)
		}
		s.readers = append(s.readers, now)
	}
}

// noteWrite records now as an access that writes r. It adds to the needed dependencies all reads
// since the last write of r or, if there are none, that write.
func (b *builder) noteWrite(r program.Ref, now access) {
	list, lo, hi := b.history(r)
	for i := lo; i < hi; i++ {
		s := &list[i]
		b.needed = append(b.needed, s.readers...)
		if s.written && len(s.readers) == 0 {
			b.needed = append(b.needed, s.writer)
		}
	}
	list[lo] = chunkRange{chunks: r.Chunks, written: true, writer: now, readers: list[lo].readers[:0]}
	b.accesses[memoryOf(r)] = slices.Delete(list, lo+1, hi)
}

// takeNeeded returns the dependencies that the instruction being added needs: for each half of a
// lane, only the last one.
func (b *builder) takeNeeded(now access) []program.Dep {
	b.needed = slices.DeleteFunc(b.needed, func(t access) bool {
		return t.step == now.step || t.step.Lane == now.step.Lane && t.sends == now.sends
	})
	if len(b.needed) == 0 {
		return nil
	}
	slices.SortFunc(b.needed, func(x, y access) int {
		if d := cmp.Compare(x.step.Lane, y.step.Lane); d != 0 {
			return d
		}
		if x.sends != y.sends {
			if y.sends {
				return -1
			}
			return 1
		}
		return cmp.Compare(y.step.Step, x.step.Step)
	})
	b.needed = slices.CompactFunc(b.needed, func(x, y access) bool {
		return x.step.Lane == y.step.Lane && x.sends == y.sends
	})
	deps := make([]program.Dep, 0, len(b.needed))
	for _, t := range b.needed {
		if n := len(deps); n == 0 || deps[n-1] != t.step {
			deps = append(deps, t.step)
		}
	}
	return deps
}

func memoryOf(r program.Ref) memory {
	if r.Buffer == program.Scratch {
		return memory(r.Slot)
	}
	return userData
}

// history splits the ranges in the ledger of the memory of r so that list[lo:hi] covers exactly
// the chunks of r.
func (b *builder) history(r program.Ref) (list []chunkRange, lo, hi int) {
	m := memoryOf(r)
	list = b.accesses[m]
	if list == nil {
		list = []chunkRange{{chunks: sharding.Range{Lo: 0, Hi: b.Chunks}}}
	}
	list, lo = splitAt(list, r.Chunks.Lo)
	list, hi = splitAt(list, r.Chunks.Hi)
	b.accesses[m] = list
	return list, lo, hi
}

// splitAt returns list with a range that begins at the given chunk, and the index of that
// range. If necessary it splits a range.
func splitAt(list []chunkRange, chunk int) ([]chunkRange, int) {
	i, found := slices.BinarySearchFunc(list, chunk, func(s chunkRange, chunk int) int { return cmp.Compare(s.chunks.Lo, chunk) })
	if found || chunk >= list[i-1].chunks.Hi {
		return list, i
	}
	s := &list[i-1]
	right := *s
	right.chunks.Lo, right.readers = chunk, slices.Clone(s.readers)
	s.chunks.Hi = chunk
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
