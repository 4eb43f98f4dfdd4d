package collective

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/shared"
	"github.com/zeebo/xxh3"
)

// Program is one rank's part of a collective, as plain data. A generator makes
// it from (p, rank, root, parameters) alone, in time proportional to the rank's
// own steps; the checker, the executors, and whatever prices or draws programs
// read it. It knows nothing of element types or of lengths: data is cut into
// Chunks contiguous parts by shared.Split, in elements, the first (length mod
// Chunks) of them one longer, when the program is run.
type Program struct {
	Collective string // what is computed: "allreduce"
	Algorithm  string // how: "direct"
	P          int    // number of ranks
	Rank       int    // whose part this is
	Root       int    // the root, or -1 where there is none
	Chunks     int    // parts that the data is cut into

	// Scratch gives, for each scratch slot, the chunks that it has room for: slot
	// k holds the chunks [Lo, Hi), addressed by their own numbers.
	Scratch []shared.Range

	// Lanes progress independently of each other. See Lane.
	Lanes []Lane

	// CanonicalTree claims that each result is the fold tree over ranks
	// (shared.RankSchedule) of the contributions. All programs that claim it give
	// the same bits, so one may replace another.
	CanonicalTree bool
}

// NoPeer stands for the missing peer of a lane that only sends, only receives, or
// works locally.
const NoPeer = -1

// Lane is a sequence of instructions with at most one peer to send to, at most
// one to receive from, and the number of the channel that both use. Messages
// from one rank to another on one channel are received in the order sent.
//
// A lane has two halves that progress independently: the send half does the
// sending parts of its instructions in their order; the receive half does all
// else (receiving, reducing, copying) in their order. Between the halves, and
// between lanes, only what After says is ordered, and that a fused instruction
// receives before it sends.
type Lane struct {
	SendPeer int // rank, or NoPeer
	RecvPeer int // rank, or NoPeer
	Channel  int
	Steps    []Instruction
}

// OpCode says what an instruction does.
type OpCode uint8

// The instructions. Sending ones are finished when their source may be
// overwritten; receiving ones when the data is in place.
const (
	DoSend           OpCode = iota // Src[0] goes to the send peer
	DoRecv                         // Dst is filled by the receive peer
	DoRecvReduce                   // Dst = Src[0] ∘ received (or the other way round, if RecvLeft)
	DoRecvReduceSend               // DoRecvReduce, then Dst goes to the send peer
	DoRecvCopySend                 // DoRecv, then Dst goes to the send peer
	DoCopy                         // Dst = Src[0]
	DoReduce                       // Dst = the fold of Src in the order given by Fold
	numOpCodes
)

var opCodeNames = [numOpCodes]string{
	"send", "recv", "recv-reduce", "recv-reduce-send", "recv-copy-send", "copy", "reduce",
}

// String gives the name that the text form of programs uses.
func (o OpCode) String() string {
	if o >= numOpCodes {
		return "opcode(" + strconv.Itoa(int(o)) + ")"
	}
	return opCodeNames[o]
}

// Sends says whether the send half takes part in the instruction.
func (o OpCode) Sends() bool { return o == DoSend || o == DoRecvReduceSend || o == DoRecvCopySend }

// Receives says whether data of the receive peer comes in.
func (o OpCode) Receives() bool { return o >= DoRecv && o <= DoRecvCopySend }

// sources is the number of operands that an instruction reads, or -1 where any
// positive number will do.
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

// Buffer names a rank's buffer.
type Buffer uint8

// The buffers. The input is never written; the output is where the result ends up.
// An executor may be given the same memory for both: a program therefore reads a
// chunk of the input only before it writes that of the output, which the checker
// verifies.
const (
	BufferIn      Buffer = iota // what the rank contributes
	BufferOut                   // the result
	BufferScratch               // room for intermediate values
	numBuffers
)

var bufferNames = [numBuffers]string{"in", "out", "scratch"}

// String gives the name that the text form of programs uses.
func (b Buffer) String() string {
	if b >= numBuffers {
		return "buffer(" + strconv.Itoa(int(b)) + ")"
	}
	return bufferNames[b]
}

// Ref is a range of chunks of a buffer. Slot numbers the scratch slots; for BufferIn it
// numbers the partial values that a rank brings (0 where it brings one).
type Ref struct {
	Buffer Buffer
	Slot   int
	Chunks shared.Range
}

// String is, for example, "in[3]", "out[0:4]" or "scratch2[3]".
func (r Ref) String() string {
	var b strings.Builder
	b.WriteString(r.Buffer.String())
	if r.Buffer == BufferScratch || r.Slot != 0 {
		b.WriteString(strconv.Itoa(r.Slot))
	}
	if r.Chunks.Len() == 1 {
		fmt.Fprintf(&b, "[%d]", r.Chunks.Lo)
	} else {
		fmt.Fprintf(&b, "[%d:%d]", r.Chunks.Lo, r.Chunks.Hi)
	}
	return b.String()
}

// Dep is an instruction of the same rank that must be finished, all of its
// parts, before another starts.
type Dep struct{ Lane, Step int }

// Instruction is one step of a lane. Which fields count depends on Op.
type Instruction struct {
	Op  OpCode
	Dst Ref   // written by all but DoSend
	Src []Ref // read; for DoReduce the operands from left to right

	// RecvLeft makes the received value the left operand of DoRecvReduce and
	// DoRecvReduceSend.
	RecvLeft bool

	// Fold is the order in which DoReduce folds Src: steps on slots numbered like
	// Src, the left slot accumulating and slot 0 holding the result.
	Fold []shared.FoldStep

	After []Dep
}

// chunk is the reference to chunk c of a buffer.
func chunk(b Buffer, slot, c int) Ref { return Ref{b, slot, shared.Range{Lo: c, Hi: c + 1}} }

// String is the program's text form: all of it, in a fixed layout, so that a
// change of a generator shows as a difference of text.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "program %s %s p=%d rank=%d", p.Collective, p.Algorithm, p.P, p.Rank)
	if p.Root >= 0 {
		fmt.Fprintf(&b, " root=%d", p.Root)
	}
	fmt.Fprintf(&b, " chunks=%d canonical=%t\n", p.Chunks, p.CanonicalTree)
	if len(p.Scratch) > 0 {
		b.WriteString("scratch")
		for k, r := range p.Scratch {
			b.WriteByte(' ')
			b.WriteString(Ref{BufferScratch, k, r}.String())
		}
		b.WriteByte('\n')
	}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		fmt.Fprintf(&b, "lane %d", i)
		if l.SendPeer != NoPeer {
			fmt.Fprintf(&b, " send=%d", l.SendPeer)
		}
		if l.RecvPeer != NoPeer {
			fmt.Fprintf(&b, " recv=%d", l.RecvPeer)
		}
		if l.SendPeer == NoPeer && l.RecvPeer == NoPeer {
			b.WriteString(" local")
		} else {
			fmt.Fprintf(&b, " channel=%d", l.Channel)
		}
		b.WriteByte('\n')
		for j := range l.Steps {
			fmt.Fprintf(&b, "  %d %s\n", j, l.Steps[j].String())
		}
	}
	return b.String()
}

// String is one line of the text form.
func (in *Instruction) String() string {
	var b strings.Builder
	b.WriteString(in.Op.String())
	b.WriteByte(' ')
	switch in.Op {
	case DoSend:
		b.WriteString(in.source(0))
	case DoRecv, DoRecvCopySend:
		b.WriteString(in.Dst.String())
	case DoRecvReduce, DoRecvReduceSend:
		left, right := in.source(0), "received"
		if in.RecvLeft {
			left, right = right, left
		}
		fmt.Fprintf(&b, "%s = (%s %s)", in.Dst, left, right)
	case DoCopy:
		fmt.Fprintf(&b, "%s = %s", in.Dst, in.source(0))
	case DoReduce:
		fmt.Fprintf(&b, "%s = %s", in.Dst, in.expression())
	}
	for k, d := range in.After {
		if k == 0 {
			b.WriteString(" after")
		}
		fmt.Fprintf(&b, " %d.%d", d.Lane, d.Step)
	}
	return b.String()
}

// source is the text of an operand, also of one that is missing.
func (in *Instruction) source(k int) string {
	if k >= len(in.Src) {
		return "?"
	}
	return in.Src[k].String()
}

// expression writes a DoReduce as nested pairs: ((in[0] scratch0[0]) scratch1[0]).
func (in *Instruction) expression() string {
	texts := make([]string, len(in.Src))
	for k := range in.Src {
		texts[k] = in.Src[k].String()
	}
	for _, s := range in.Fold {
		if min(s.Left, s.Right) < 0 || max(s.Left, s.Right) >= len(texts) {
			return fmt.Sprintf("? %v %v", in.Src, in.Fold)
		}
		texts[s.Left] = "(" + texts[s.Left] + " " + texts[s.Right] + ")"
	}
	if len(texts) == 0 {
		return "?"
	}
	return texts[0]
}

// Hash identifies this rank's part: equal programs have equal hashes, in every
// process and on every machine.
func (p *Program) Hash() uint64 { return xxh3.HashString(p.String()) }

// GroupHash identifies what all ranks must agree on (collective, algorithm,
// number of ranks, root, chunks), though their parts differ. It is the program
// hash of message headers.
func (p *Program) GroupHash() uint64 {
	return xxh3.HashString(fmt.Sprintf("%s %s p=%d root=%d chunks=%d canonical=%t",
		p.Collective, p.Algorithm, p.P, p.Root, p.Chunks, p.CanonicalTree))
}

// Validate checks the form of one rank's part: numbers in range, operands where
// the instruction needs them, references to what exists. Whether the parts of
// all ranks together compute the collective is for CheckPrograms to say. An
// executor runs only programs that validate.
func (p *Program) Validate() error {
	switch {
	case p.P < 1 || p.Rank < 0 || p.Rank >= p.P:
		return fmt.Errorf("program: rank %d of %d ranks", p.Rank, p.P)
	case p.Root < -1 || p.Root >= p.P:
		return fmt.Errorf("program of rank %d: root %d of %d ranks", p.Rank, p.Root, p.P)
	case p.Chunks < 1:
		return fmt.Errorf("program of rank %d: %d chunks", p.Rank, p.Chunks)
	}
	for k, r := range p.Scratch {
		if r.Lo < 0 || r.Hi > p.Chunks || r.Lo >= r.Hi {
			return fmt.Errorf("program of rank %d: scratch %d holds chunks %v of %d", p.Rank, k, r, p.Chunks)
		}
	}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		for _, peer := range [2]int{l.SendPeer, l.RecvPeer} {
			if peer != NoPeer && (peer < 0 || peer >= p.P || peer == p.Rank) {
				return fmt.Errorf("program of rank %d: lane %d has peer %d of %d ranks", p.Rank, i, peer, p.P)
			}
		}
		for j := range l.Steps {
			if err := p.validateStep(l, &l.Steps[j]); err != nil {
				return fmt.Errorf("program of rank %d: lane %d step %d (%s): %w", p.Rank, i, j, &l.Steps[j], err)
			}
		}
	}
	return nil
}

func (p *Program) validateStep(l *Lane, in *Instruction) error {
	if in.Op >= numOpCodes {
		return fmt.Errorf("no such instruction")
	}
	if in.Op.Sends() && l.SendPeer == NoPeer {
		return fmt.Errorf("the lane has no peer to send to")
	}
	if in.Op.Receives() && l.RecvPeer == NoPeer {
		return fmt.Errorf("the lane has no peer to receive from")
	}
	if want := in.Op.sources(); want >= 0 && len(in.Src) != want || want < 0 && len(in.Src) == 0 {
		return fmt.Errorf("%d operands", len(in.Src))
	}
	for _, r := range in.Src {
		if err := p.validateRef(r); err != nil {
			return err
		}
	}
	if in.Op != DoSend {
		if err := p.validateRef(in.Dst); err != nil {
			return err
		}
		if in.Dst.Buffer == BufferIn {
			return fmt.Errorf("writes the input")
		}
		for _, r := range in.Src {
			if r.Chunks != in.Dst.Chunks {
				return fmt.Errorf("%s and %s are different chunks", in.Dst, r)
			}
		}
	}
	if in.Op == DoReduce {
		if _, err := compileFold(len(in.Src), in.Fold); err != nil {
			return err
		}
	}
	for _, d := range in.After {
		if d.Lane < 0 || d.Lane >= len(p.Lanes) || d.Step < 0 || d.Step >= len(p.Lanes[d.Lane].Steps) {
			return fmt.Errorf("comes after step %d.%d, which does not exist", d.Lane, d.Step)
		}
	}
	return nil
}

func (p *Program) validateRef(r Ref) error {
	room := shared.Range{Lo: 0, Hi: p.Chunks}
	switch {
	case r.Buffer >= numBuffers:
		return fmt.Errorf("no such buffer: %s", r)
	case r.Buffer == BufferScratch:
		if r.Slot < 0 || r.Slot >= len(p.Scratch) {
			return fmt.Errorf("no such scratch slot: %s", r)
		}
		room = p.Scratch[r.Slot]
	case r.Slot != 0:
		return fmt.Errorf("no such partial value: %s", r)
	}
	if r.Chunks.Lo < room.Lo || r.Chunks.Hi > room.Hi || r.Chunks.Empty() {
		return fmt.Errorf("%s is outside of chunks %v", r, room)
	}
	return nil
}
