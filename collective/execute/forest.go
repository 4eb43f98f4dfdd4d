package execute

import "github.com/superstep-ml/superstep/collective/program"

// In a forest program a contribution may be absent, so each chunk of a value is present or
// absent. Nearly always all chunks of a reference are present, or all are absent. If all are
// present, the value is sent as in other programs. If all are absent, a single header is sent.
// A reference with both present and absent chunks is sent chunk by chunk; the segment number of
// a chunk is mixed plus the index of the chunk within the reference.
//
// If all chunks of a step are present, the step is published segment by segment, and the first
// published segment shows that all chunks are present. Any other step waits for all its
// dependencies and is published as a whole. So when the dependencies of the first segment of a
// step are met, it is known which of the chunks that the step reads are present.

// mixed is a bit that is set in the segment numbers of a message with both present and absent
// chunks.
const mixed = 1 << 31

// extent says whether none, some or all chunks of a reference are present.
type extent uint8

const (
	none extent = iota
	some
	all
)

// presence records for each chunk of each memory whether the chunk is present.
type presence struct {
	present []bool
	first   []int // first[m] is the index in present of chunk 0 of memory m
}

// prepare allocates present and first for the memories of prog.
func (p *presence) prepare(prog *program.Program) {
	if prog.Nodes == nil && prog.Forest == 0 {
		return
	}
	n := 0
	add := func(lo, hi int) {
		p.first = append(p.first, n-lo)
		n += hi - lo
	}
	for range prog.Partials() {
		add(prog.In.Lo, prog.In.Hi)
	}
	add(prog.Out.Lo, prog.Out.Hi)
	for _, c := range prog.Scratch {
		add(c.Lo, c.Hi)
	}
	p.present = make([]bool, n)
}

// reset marks the chunks of each contribution as present or absent, and all other chunks as
// absent.
func (p *presence) reset(r *Runner) {
	clear(p.present)
	for k, in := range r.op.In {
		for c := r.prog.In.Lo; c < r.prog.In.Hi; c++ {
			p.present[p.first[k]+c] = in != nil
		}
	}
}

// extentOf returns whether none, some or all chunks of a reference are present.
func (p *presence) extentOf(f ref) extent {
	n := int32(0)
	for _, held := range p.chunks(f) {
		if held {
			n++
		}
	}
	switch n {
	case 0:
		return none
	case f.chunks():
		return all
	default:
		return some
	}
}

// chunks returns the part of present that belongs to the chunks of f.
func (p *presence) chunks(f ref) []bool {
	first := p.first[f.mem]
	return p.present[first+int(f.lo) : first+int(f.hi)]
}

func (p *presence) set(f ref, present bool) {
	marks := p.chunks(f)
	for i := range marks {
		marks[i] = present
	}
}

// result reports whether the result of the rank is present. It returns true if the rank has no
// output.
func (p *presence) result(r *Runner) bool {
	out := r.prog.Out
	if out.Empty() {
		return true
	}
	return p.extentOf(ref{mem: int32(r.prog.Partials()), lo: int32(out.Lo), hi: int32(out.Hi)}) == all
}

// receiveBuffer is memory for a message that is received as a whole.
type receiveBuffer struct {
	spare   []byte
	present []bool // present[c] is whether chunk c of the message is present
}

// sendForest sends the value at the reference from, of which some or all chunks are absent.
// extent says which chunks are present: some or none.
func (h *executor) sendForest(s *step, from ref, extent extent) error {
	if extent == none {
		if err := h.sendSegment(s, 0, 0, 0, nil, true); err != nil {
			return err
		}
		// Later steps rely on all dependencies of this step being complete.
		if err := h.awaitAll(s, from); err != nil {
			return err
		}
		h.publish(s, 0, 1)
		return nil
	}
	if err := h.awaitAll(s, from); err != nil {
		return err
	}
	offset := 0
	for c := range from.chunks() {
		if err := h.sendChunk(s, from.chunk(c), c, offset); err != nil {
			return err
		}
		offset += h.r.size(from.chunk(c))
	}
	h.publish(s, 0, 1)
	return nil
}

// sendChunk sends chunk c of a value with absent chunks. offset is the position of the chunk in
// the message, in bytes.
func (h *executor) sendChunk(s *step, chunk ref, c int32, offset int) error {
	number := mixed | uint32(c)
	if h.r.presence.extentOf(chunk) == none {
		return h.sendSegment(s, 0, number, offset, nil, true)
	}
	data := h.r.bytes(chunk)
	for k := range h.r.segments(len(data)) {
		lo := k * h.r.segment
		hi := min(lo+h.r.segment, len(data))
		if err := h.sendSegment(s, 0, number, offset+lo, data[lo:hi], false); err != nil {
			return err
		}
	}
	return nil
}

// receiveForest is called after the first header of a message was read. It receives the message
// if it cannot be received segment by segment because chunks of the message or of the step's
// source are absent. In this case done is true. If done is false, the caller must receive the
// message segment by segment; if copies is true, the caller must copy the received value
// instead of folding it.
func (h *executor) receiveForest(s *step) (done, copies bool, err error) {
	r := h.r
	if h.in.Seq != r.op.Seq || h.in.Hash != r.hash || h.in.Step != s.recvIndex {
		return true, false, h.mismatch(s, 0, 0, 0)
	}
	mine := none
	if s.op.Reduces() {
		mine = r.presence.extentOf(s.src[0])
	}
	if mine != some && !h.in.Absent && h.in.Segment < mixed {
		r.presence.set(s.dst, true)
		return false, mine == none, nil
	}
	if err := h.awaitAll(s, s.dst); err != nil {
		return true, false, err
	}
	n := r.size(s.dst)
	if n > len(h.spare) {
		h.spare = aligned(n)
	}
	if chunks := int(s.dst.chunks()); chunks > len(h.present) {
		h.present = make([]bool, chunks)
	}
	if err := h.receiveWhole(s, h.spare[:n]); err != nil {
		return true, false, err
	}
	at := 0
	for c := range s.dst.chunks() {
		size := r.size(s.dst.chunk(c))
		h.combine(s, c, h.spare[at:at+size], h.present[c])
		at += size
	}
	h.publish(s, 0, 1)
	return true, false, nil
}

// receiveWhole receives a message whose first header was read, and records in h.receiveBuffer
// which chunks are present.
func (h *executor) receiveWhole(s *step, dst []byte) error {
	r := h.r
	if h.in.Segment >= mixed {
		return h.receiveChunks(s, dst)
	}
	for c := range s.dst.chunks() {
		h.present[c] = !h.in.Absent
	}
	if h.in.Absent {
		return h.expect(s, 0, 0, 0, true)
	}
	for k := range r.segments(len(dst)) {
		if k > 0 {
			if err := h.next(s, k); err != nil {
				return err
			}
		}
		lo := k * r.segment
		hi := min(lo+r.segment, len(dst))
		if err := h.expect(s, uint32(k), lo, hi-lo, false); err != nil {
			return err
		}
		if err := h.read(s, k, dst[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// receiveChunks receives a value that is sent chunk by chunk, after its first header was read.
func (h *executor) receiveChunks(s *step, dst []byte) error {
	r, offset := h.r, 0
	for c := range s.dst.chunks() {
		number, end := mixed|uint32(c), offset+r.size(s.dst.chunk(c))
		for k := range r.segments(end - offset) {
			if c > 0 || k > 0 {
				if err := h.next(s, 0); err != nil {
					return err
				}
			}
			h.present[c] = !h.in.Absent
			if k == 0 && h.in.Absent {
				if err := h.expect(s, number, offset, 0, true); err != nil {
					return err
				}
				break
			}
			lo := offset + k*r.segment
			hi := min(lo+r.segment, end)
			if err := h.expect(s, number, lo, hi-lo, false); err != nil {
				return err
			}
			if err := h.read(s, 0, dst[lo:hi]); err != nil {
				return err
			}
		}
		offset = end
	}
	return nil
}

// combine computes chunk c of the destination from the received chunk and the same chunk of the
// source. It uses the received chunk only if present is set, and the source only if the step
// reduces.
func (h *executor) combine(s *step, c int32, received []byte, present bool) {
	r := h.r
	to := s.dst.chunk(c)
	mine := s.op.Reduces() && r.presence.extentOf(s.src[0].chunk(c)) == all
	r.presence.set(to, present || mine)
	switch {
	case present && mine:
		h.pair(s, r.bytes(to), r.bytes(s.src[0].chunk(c)), received)
	case present:
		copy(r.bytes(to), received)
	case mine:
		copyUnlessSame(r.bytes(to), r.bytes(s.src[0].chunk(c)))
	}
}

// copyForest copies a value of which some or all chunks are absent, and returns true. It
// returns false if all chunks are present; the caller must then copy the value.
func (h *executor) copyForest(s *step) (done bool, err error) {
	r, src := h.r, s.src[0]
	there := r.presence.extentOf(src)
	if there == all {
		r.presence.set(s.dst, true)
		return false, nil
	}
	if err := h.awaitAll(s, s.dst); err != nil {
		return true, err
	}
	for c := range s.dst.chunks() {
		from, to := src.chunk(c), s.dst.chunk(c)
		held := r.presence.extentOf(from) == all
		r.presence.set(to, held)
		if held {
			copyUnlessSame(r.bytes(to), r.bytes(from))
		}
	}
	h.publish(s, 0, 1)
	return true, nil
}

// reduceForest sets leaves to the operands of a reduction. If an operand has both present and
// absent chunks, or if no operand is present, reduceForest does the reduction itself and
// returns true.
func (h *executor) reduceForest(s *step, leaves [][]byte) (done bool, err error) {
	r := h.r
	uniform, any := true, false
	for i, f := range s.src {
		ext := r.presence.extentOf(f)
		uniform = uniform && ext != some
		any = any || ext != none
		if leaves[i] = nil; ext == all {
			leaves[i] = r.bytes(f)
		}
	}
	if uniform && any {
		r.presence.set(s.dst, true)
		return false, nil
	}
	if err := h.awaitAll(s, s.dst); err != nil {
		return true, err
	}
	for c := range s.dst.chunks() {
		to, any := s.dst.chunk(c), false
		for i, f := range s.src {
			if leaves[i] = nil; r.presence.extentOf(f.chunk(c)) == all {
				leaves[i], any = r.bytes(f.chunk(c)), true
			}
		}
		if r.presence.set(to, any); any {
			h.fold(s.plan, r.op, leaves, r.bytes(to), 0, r.size(to))
		}
	}
	h.publish(s, 0, 1)
	return true, nil
}
