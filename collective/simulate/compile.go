package simulate

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
)

// shape has the properties of a program that determine its time. It does not contain the
// numbers of chunks and ranks. Ranks whose programs have equal shapes share one shape.
type shape struct {
	steps []step
	deps  []dep
	lanes []int32 // lane l has the steps [lanes[l], lanes[l+1])

	longest int64 // bytes of the longest step
	message int64 // bytes of the longest message
}

// step is a compiled instruction.
type step struct {
	bytes    int64
	folds    int32 // number of operands that are folded into another operand
	segments int32 // at least 1; set by cut
	deps     int32 // index of the first dependency of the step; the dependencies of the next step follow
	op       program.OpCode
}

// dep is a dependency on an instruction.
type dep struct {
	lane, step int32
	recv, send bool // which halves take part in the instruction
	segmented  bool // segment k waits only for segment k of the instruction
}

// peers has, for each lane of a rank, the two peers and the channel.
type peers struct{ send, recv, channel []int32 }

// compiler compiles programs to shapes. Of several equal shapes it keeps only one.
type compiler struct {
	elem    int
	length  func(rank int, p *program.Program) func(program.Ref) int
	shapes  map[uint64][]*shape
	scratch shape
}

// compile returns the shape and the peers of a rank's program. It returns an error if the
// program is invalid.
func (c *compiler) compile(rank int, p *program.Program) (*shape, peers, error) {
	if p.Rank != rank {
		return nil, peers{}, fmt.Errorf("simulate: rank %d has the program of rank %d", rank, p.Rank)
	}
	length := c.length(rank, p)
	s := &c.scratch
	s.steps, s.deps, s.lanes = s.steps[:0], s.deps[:0], append(s.lanes[:0], 0)
	for l := range p.Lanes {
		for i := range p.Lanes[l].Steps {
			in := &p.Lanes[l].Steps[i]
			at := moved(in)
			st := step{op: in.Op, bytes: int64(length(at)) * int64(c.elem), deps: int32(len(s.deps))}
			switch in.Op {
			case program.DoRecvReduce, program.DoRecvReduceSend:
				st.folds = 1
			case program.DoReduce:
				st.folds = int32(len(in.Src) - 1)
			}
			for _, d := range in.After {
				other := &p.Lanes[d.Lane].Steps[d.Step]
				s.deps = append(s.deps, dep{
					lane: int32(d.Lane), step: int32(d.Step),
					recv: other.Op != program.DoSend, send: other.Op.Sends(),
					segmented: moved(other).Chunks == at.Chunks && length(moved(other)) == length(at),
				})
			}
			s.steps = append(s.steps, st)
		}
		s.lanes = append(s.lanes, int32(len(s.steps)))
	}
	return c.intern(), connections(p), nil
}

// moved returns a reference whose length is the length of the data that an instruction moves.
func moved(in *program.Instruction) program.Ref {
	if in.Op == program.DoSend {
		return in.Src[0]
	}
	return in.Dst
}

// connections returns the peers of a program's lanes.
func connections(p *program.Program) peers {
	k := len(p.Lanes)
	all := make([]int32, 3*k)
	c := peers{all[:k:k], all[k : 2*k : 2*k], all[2*k:]}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		c.send[i], c.recv[i], c.channel[i] = int32(l.SendPeer), int32(l.RecvPeer), int32(l.Channel)
	}
	return c
}

// intern returns the kept shape that equals c.scratch. If no kept shape equals it, intern keeps
// and returns a copy of c.scratch.
func (c *compiler) intern() *shape {
	s := &c.scratch
	h := uint64(len(s.deps))
	mix := func(v uint64) { h = (h ^ v) * 0x9E3779B97F4A7C15; h ^= h >> 29 }
	for i := range s.steps {
		st := &s.steps[i]
		mix(uint64(st.bytes)<<8 | uint64(st.op))
		mix(uint64(st.folds)<<32 | uint64(st.deps))
	}
	for _, l := range s.lanes {
		mix(uint64(l))
	}
	for _, known := range c.shapes[h] {
		if known.equal(s) {
			return known
		}
	}
	kept := &shape{steps: slices.Clone(s.steps), deps: slices.Clone(s.deps), lanes: slices.Clone(s.lanes)}
	for i := range s.steps {
		st := &s.steps[i]
		kept.longest = max(kept.longest, st.bytes)
		if st.op.Sends() || st.op.Receives() {
			kept.message = max(kept.message, st.bytes)
		}
	}
	if c.shapes == nil {
		c.shapes = map[uint64][]*shape{}
	}
	c.shapes[h] = append(c.shapes[h], kept)
	return kept
}

func (s *shape) equal(o *shape) bool {
	return slices.Equal(s.lanes, o.lanes) && slices.Equal(s.steps, o.steps) && slices.Equal(s.deps, o.deps)
}

// depsOf returns the dependencies of step i.
func (s *shape) depsOf(i int32) []dep {
	hi := int32(len(s.deps))
	if int(i+1) < len(s.steps) {
		hi = s.steps[i+1].deps
	}
	return s.deps[s.steps[i].deps:hi]
}

// segmentsOf returns the number of segments of a message; an empty message has one segment.
func segmentsOf(bytes, segment int64) int64 { return max(1, (bytes+segment-1)/segment) }

// work returns the number of messages and bytes that a rank of this shape sends, and the number
// of segments of all its instructions.
func (s *shape) work(segment int64) (messages, bytes, all int64) {
	for i := range s.steps {
		st := &s.steps[i]
		if st.op.Sends() {
			messages++
			bytes += st.bytes
		}
		all += segmentsOf(st.bytes, segment)
	}
	return messages, bytes, all
}

// cut sets the number of segments of each step.
func (s *shape) cut(segment int64) {
	for i := range s.steps {
		s.steps[i].segments = int32(segmentsOf(s.steps[i].bytes, segment))
	}
}
