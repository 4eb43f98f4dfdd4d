package program

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Collective identifies the operation that a program computes.
type Collective uint8

// The collectives. "Block r" is chunk r of data that has one chunk per rank.
const (
	AllReduce     Collective = iota // every rank gets the fold of all ranks' data
	Broadcast                       // every rank gets the root's data
	Reduce                          // the root gets the fold of all ranks' data
	Gather                          // the root gets every rank's block, in rank order
	AllGather                       // every rank gets every rank's block, in rank order
	Scatter                         // rank r gets block r of the root's data
	ReduceScatter                   // rank r gets block r of the fold of all ranks' data
	AllToAll                        // rank r gets block r of every rank's data, in rank order
	Barrier                         // no data; no rank returns before all ranks have begun
	Scan                            // rank r gets the fold of the data of ranks 0..r
	Exscan                          // rank r gets the fold of the data of ranks 0..r−1; rank 0 gets nothing
	NumCollectives
)

var collectiveNames = [NumCollectives]string{
	"allreduce", "broadcast", "reduce", "gather", "allgather", "scatter",
	"reduce-scatter", "all-to-all", "barrier", "scan", "exscan",
}

// String returns the name that the text form of programs and command lines use.
func (c Collective) String() string {
	if c >= NumCollectives {
		return "collective(" + strconv.Itoa(int(c)) + ")"
	}
	return collectiveNames[c]
}

// ParseCollective returns the collective whose String is name.
func ParseCollective(name string) (Collective, error) {
	for c, n := range collectiveNames {
		if n == name {
			return Collective(c), nil
		}
	}
	return 0, fmt.Errorf("no collective %q: there are %s", name, strings.Join(collectiveNames[:], ", "))
}

// Rooted reports whether the collective has a root.
func (c Collective) Rooted() bool {
	return c == Broadcast || c == Reduce || c == Gather || c == Scatter
}

// Reduces reports whether the collective folds values with an operator.
func (c Collective) Reduces() bool {
	return c == AllReduce || c == Reduce || c == ReduceScatter || c == Scan || c == Exscan
}

// Program is one rank's part of a collective, as plain data. A generator makes it from the
// number of ranks, the rank, the root and parameters, in time proportional to the number of
// steps of the rank. The checker, the executors, the simulator and drawing tools read it. A
// program has no element types or lengths: the data is a sequence of Chunks parts, whose
// lengths are given by a Layout when the program is run.
//
// A buffer holds a contiguous range of chunks. The number of a chunk does not depend on where
// the buffer begins: for example, the input of rank 3 of an AllGather holds only chunk 3, which
// is in[3]. The chunks of an AllToAll are numbered separately on each side: in[d] is the block
// for rank d, and out[s] is the block from rank s. The block in in[d] of rank s arrives in
// out[s] of rank d.
type Program struct {
	Collective Collective
	Algorithm  string // name of the algorithm: "direct", "ring"
	P          int    // number of ranks
	Rank       int    // the rank to which this program belongs
	Root       int    // the root, or -1 if there is none
	Dims       []int  // the dimensions in which the algorithm arranges the ranks; nil if it has none
	Chunks     int    // parts of the data, at least 1

	// In and Out are the chunks that the input and the output hold. Either may be empty: for
	// example, In of a Broadcast on all ranks except the root.
	In, Out sharding.Range

	// If Nodes is not nil, the input is a forest: it has one buffer for each of these nodes of
	// the aligned tree over shards. in[c] is chunk c of the first buffer, and in1[c] is chunk c
	// of the second buffer. If Nodes is empty, the rank has no input. If Nodes is nil, the
	// input is one whole buffer. Forest is a hash of the nodes of all ranks, 0 if the ranks
	// have whole buffers.
	Nodes  []sharding.Node
	Forest uint64

	// Scratch has the range of chunks of each scratch slot: slot k can hold the chunks
	// Scratch[k], with the lengths that they have in the output.
	Scratch []sharding.Range

	// Lanes progress independently of each other. See Lane.
	Lanes []Lane

	// CanonicalTree claims that each result is folded in the canonical tree: the fold tree over
	// ranks (sharding.RankSchedule) of whole buffers, or the aligned tree over shards
	// (sharding.FoldSchedule) of forests. All programs with this claim give the same bits for
	// the same input, so they can replace each other.
	CanonicalTree bool

	// RankOrder claims that operands are folded in the order of ranks, so that operators need
	// not commute.
	RankOrder bool
}

// Partials returns the number of buffers of the input.
func (p *Program) Partials() int {
	if p.Nodes == nil {
		return 1
	}
	return len(p.Nodes)
}

// NoPeer stands for the missing peer of a lane that only sends, only receives, or
// works locally.
const NoPeer = -1

// Lane is a sequence of instructions with at most one peer to send to, at most one peer to
// receive from, and the number of the channel that is used for both. Messages from one rank to
// another rank on one channel are received in the order in which they are sent. For each pair
// of sender and receiver, a channel is used by only one lane of the sender and one lane of the
// receiver, so that no lane waits behind a message of another lane.
//
// A lane has two halves that progress independently: the send half does the sending parts of
// its instructions in order; the receive half does everything else (receiving, reducing,
// copying) in order. Only the dependencies in After order the two halves of a lane, or
// different lanes. There is one exception: an instruction that both receives and sends (a fused
// instruction) receives first.
type Lane struct {
	SendPeer int // rank, or NoPeer
	RecvPeer int // rank, or NoPeer
	Channel  int
	Steps    []Instruction
}

// MaxChannels bounds channel numbers: 0 ≤ Channel < MaxChannels.
const MaxChannels = 64

// OpCode is the operation of an instruction.
type OpCode uint8

// The instructions. A send is finished when its source may be overwritten. A receive is
// finished when the data is in Dst.
//
// A contribution may be absent at run time (a node of a forest whose shards have no rows). An
// absent value is sent as a message without data, and a fold with it returns the other operand
// unchanged.
const (
	DoSend           OpCode = iota // sends Src[0] to the send peer
	DoRecv                         // receives into Dst from the receive peer
	DoRecvReduce                   // Dst = Src[0] ∘ received value, or received value ∘ Src[0] if RecvLeft
	DoRecvReduceSend               // DoRecvReduce, then sends Dst to the send peer
	DoRecvCopySend                 // DoRecv, then sends Dst to the send peer
	DoCopy                         // Dst = Src[0]
	DoReduce                       // Dst = the fold of all elements of Src, in the order given by Fold
	numOpCodes
)

var opCodeNames = [numOpCodes]string{
	"send", "recv", "recv-reduce", "recv-reduce-send", "recv-copy-send", "copy", "reduce",
}

// String returns the name that the text form of programs uses.
func (o OpCode) String() string {
	if o >= numOpCodes {
		return "opcode(" + strconv.Itoa(int(o)) + ")"
	}
	return opCodeNames[o]
}

// Sends reports whether the send half takes part in the instruction.
func (o OpCode) Sends() bool { return o == DoSend || o == DoRecvReduceSend || o == DoRecvCopySend }

// Receives reports whether the instruction receives data from the receive peer.
func (o OpCode) Receives() bool { return o >= DoRecv && o <= DoRecvCopySend }

// Reduces reports whether the instruction folds values.
func (o OpCode) Reduces() bool {
	return o == DoRecvReduce || o == DoRecvReduceSend || o == DoReduce
}

// sources returns the number of operands that an instruction reads, or -1 if any positive
// number is allowed.
func (o OpCode) sources() int {
	switch o {
	case DoSend, DoRecvReduce, DoRecvReduceSend, DoCopy:
		return 1
	case DoReduce:
		return -1
	default:
		return 0
	}
}

// Buffer identifies a buffer of a rank.
type Buffer uint8

// The buffers. The input is never written. The caller of an executor may pass the same memory
// for chunk c of the first input and chunk c of the output. Therefore a program reads a chunk
// of the input only before it writes the chunk of the output with the same number. The checker
// verifies this.
const (
	In      Buffer = iota // the contribution of the rank
	Out                   // the result
	Scratch               // intermediate values
	numBuffers
)

var bufferNames = [numBuffers]string{"in", "out", "scratch"}

// String returns the name that the text form of programs uses.
func (b Buffer) String() string {
	if b >= numBuffers {
		return "buffer(" + strconv.Itoa(int(b)) + ")"
	}
	return bufferNames[b]
}

// Ref is a range of chunks of a buffer. For Scratch, Slot is the number of the scratch slot.
// For In, Slot is the number of a node of the forest, or 0 if the input is a whole buffer.
type Ref struct {
	Buffer Buffer
	Slot   int
	Chunks sharding.Range
}

// Chunk returns the reference to chunk c of a buffer.
func Chunk(b Buffer, slot, c int) Ref { return Ref{b, slot, sharding.Range{Lo: c, Hi: c + 1}} }

// Span returns the reference to the chunks [lo, hi) of a buffer.
func Span(b Buffer, slot, lo, hi int) Ref { return Ref{b, slot, sharding.Range{Lo: lo, Hi: hi}} }

// Dep identifies an instruction of the same rank on which another instruction depends. The
// identified instruction must be finished, in both halves of its lane, before the dependent
// instruction starts.
type Dep struct{ Lane, Step int }

// Instruction is one step of a lane. Op determines which fields are used.
type Instruction struct {
	Op  OpCode
	Dst Ref   // destination; not used by DoSend
	Src []Ref // sources; for DoReduce the operands from left to right

	// RecvLeft makes the received value, and not Src[0], the left operand of DoRecvReduce and
	// DoRecvReduceSend.
	RecvLeft bool

	// Fold is the order in which DoReduce folds Src. Slot k of the steps begins with the value
	// of Src[k]. A step stores its result in its left slot, and after all steps slot 0 holds
	// the result.
	Fold []sharding.FoldStep

	After []Dep
}

// Cost is the cost of programs as declared by their generator.
type Cost struct {
	// Steps is the length of the longest chain of messages in which each message can be sent
	// only after the previous message has arrived.
	Steps int

	// Sent returns the number of elements that a rank sends with layout l. The elements of all
	// nodes of a forest are counted. If Sent is nil, ranks send no elements.
	Sent func(rank int, l Layout) int
}
