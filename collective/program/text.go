package program

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/shared/sharding"
	"github.com/zeebo/xxh3"
)

// String returns the complete text form of the program. Its layout is fixed, so that a change
// of a generator is visible as a difference of texts.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "program %s %s p=%d rank=%d", p.Collective, p.Algorithm, p.P, p.Rank)
	if p.Root >= 0 {
		fmt.Fprintf(&b, " root=%d", p.Root)
	}
	fmt.Fprintf(&b, "%s chunks=%d%s\n", p.dims(), p.Chunks, p.claims())
	fmt.Fprintf(&b, "in %s", chunks(p.In))
	for _, n := range p.Nodes {
		fmt.Fprintf(&b, " %v", n)
	}
	if p.Nodes != nil && len(p.Nodes) == 0 {
		b.WriteString(" nothing")
	}
	fmt.Fprintf(&b, " out %s", chunks(p.Out))
	for k, r := range p.Scratch {
		b.WriteByte(' ')
		b.WriteString(Ref{Scratch, k, r}.String())
	}
	b.WriteByte('\n')
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

// String returns the text of the instruction, which is one line in the text form of a program.
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

// source returns the text of operand k, or "?" if the operand is missing.
func (in *Instruction) source(k int) string {
	if k >= len(in.Src) {
		return "?"
	}
	return in.Src[k].String()
}

// expression returns the text of a DoReduce as nested pairs: ((in[0] scratch0[0]) scratch1[0]).
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

// dims returns the text of the dimensions, as in " dims=4x8".
func (p *Program) dims() string {
	s := ""
	for i, d := range p.Dims {
		s += []string{" dims=", "x"}[min(i, 1)] + strconv.Itoa(d)
	}
	return s
}

// claims returns the text of CanonicalTree and RankOrder, for example " canonical order".
func (p *Program) claims() string {
	s := ""
	if p.CanonicalTree {
		s += " canonical"
	}
	if p.RankOrder {
		s += " order"
	}
	return s
}

// String returns, for example, "in[3]", "out[0:4]" or "scratch2[3]".
func (r Ref) String() string {
	s := r.Buffer.String()
	if r.Buffer == Scratch || r.Slot != 0 {
		s += strconv.Itoa(r.Slot)
	}
	return s + chunks(r.Chunks)
}

// chunks returns the text of a range of chunks.
func chunks(r sharding.Range) string {
	if r.Len() == 1 {
		return "[" + strconv.Itoa(r.Lo) + "]"
	}
	return "[" + strconv.Itoa(r.Lo) + ":" + strconv.Itoa(r.Hi) + "]"
}

// Hash returns a hash of this rank's program. Equal programs have equal hashes, in every
// process and on every machine.
func (p *Program) Hash() uint64 { return xxh3.HashString(p.String()) }

// GroupHash returns a hash of what is the same in the programs of all ranks: collective,
// algorithm, number of ranks, root, dimensions, chunks, forest and claims. Message headers
// contain this hash.
func (p *Program) GroupHash() uint64 {
	return xxh3.HashString(fmt.Sprintf("%s %s p=%d root=%d%s chunks=%d forest=%x%s",
		p.Collective, p.Algorithm, p.P, p.Root, p.dims(), p.Chunks, p.Forest, p.claims()))
}
