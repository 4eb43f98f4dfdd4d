package execute

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// errStopped is the error with which a half ends after another half of the run has failed.
var errStopped = errors.New("stopped")

// foldBufferBytes is the number of bytes of a message that are received at a time for folding.
// It is small enough that the bytes are still in the cache when they are folded.
const foldBufferBytes = 64 << 10

// executor runs parts of steps. Each half has its own executor. A serial run uses one executor
// for all halves. An executor owns the temporary memory of parts.
type executor struct {
	r    *Runner
	half *half // nil in serial runs, which never wait

	out, in    mesh.Header
	foldBuffer []byte        // buffer for received bytes to fold
	lender     mesh.Borrower // connection from which bytes are borrowed and must be given back, or nil
	folder
	receiveBuffer
}

// release frees the temporary memory.
func (h *executor) release() {
	h.foldBuffer, h.folder, h.receiveBuffer = nil, folder{}, receiveBuffer{}
}

// do runs one part of step s: the sending part if sends is set, otherwise the receiving or
// local part.
func (h *executor) do(s *step, sends bool) error {
	switch {
	case sends:
		return h.send(s)
	case s.op == program.DoCopy:
		return h.copy(s)
	case s.op == program.DoReduce:
		return h.reduce(s)
	default:
		return h.receive(s)
	}
}

// await waits until the dependencies of segment k of a part of step s are met.
func (h *executor) await(s *step, k int) error {
	if h.half == nil {
		return nil
	}
	return h.half.await(s, k)
}

// awaitAll waits until the dependencies of all segments of a part are met. f is the reference
// on which the step works.
func (h *executor) awaitAll(s *step, f ref) error { return h.await(s, h.r.segments(h.r.size(f))-1) }

// publish records that segments 0 to k of the n segments of step s are done.
func (h *executor) publish(s *step, k, n int) {
	if h.half == nil {
		return
	}
	done := uint32(k + 1)
	if k+1 == n {
		done = whole
	}
	h.half.publish(s, done)
}

// send sends the step's source, segment by segment.
func (h *executor) send(s *step) error {
	if err := h.await(s, 0); err != nil {
		return err
	}
	r, from := h.r, s.source()
	if r.forest {
		if p := r.presence.extentOf(from); p != all {
			return h.sendForest(s, from, p)
		}
	}
	data := r.bytes(from)
	n := r.segments(len(data))
	for k := range n {
		if k > 0 {
			if err := h.await(s, k); err != nil {
				return err
			}
		}
		lo := k * r.segment
		if err := h.sendSegment(s, k, uint32(k), lo, data[lo:min(lo+r.segment, len(data))], false); err != nil {
			return err
		}
		h.publish(s, k, n)
	}
	return nil
}

// sendSegment sends one segment, with its number and its offset in bytes. The segment is
// message k of the step; k selects the connection.
func (h *executor) sendSegment(s *step, k int, number uint32, offset int, data []byte, absent bool) error {
	r := h.r
	h.out = mesh.Header{
		Seq: r.op.Seq, Hash: r.hash,
		Lane: uint16(s.lane.index), Step: s.sendIndex,
		Segment: number, Offset: uint64(offset), Length: uint32(len(data)), Absent: absent,
	}
	conn := s.lane.send[k%len(s.lane.send)]
	var err error
	if r.serial {
		err = conn.Post(&h.out, data)
	} else {
		err = conn.Send(&h.out, data)
	}
	h.progress(len(data))
	return err
}

// receive receives a message into the step's destination, segment by segment. If the step
// reduces, it folds the message with the step's source.
func (h *executor) receive(s *step) error {
	if err := h.await(s, 0); err != nil {
		return err
	}
	if err := h.next(s, 0); err != nil {
		return err
	}
	r, reduces := h.r, s.op.Reduces()
	if r.forest {
		done, copies, err := h.receiveForest(s)
		if done || err != nil {
			return err
		}
		reduces = reduces && !copies
	}
	dst := r.bytes(s.dst)
	var src []byte
	if reduces {
		src = r.bytes(s.src[0])
	}
	n := r.segments(len(dst))
	for k := range n {
		if k > 0 {
			if err := h.await(s, k); err != nil {
				return err
			}
			if err := h.next(s, k); err != nil {
				return err
			}
		}
		lo := k * r.segment
		hi := min(lo+r.segment, len(dst))
		if err := h.expect(s, uint32(k), lo, hi-lo, false); err != nil {
			return err
		}
		if reduces {
			if err := h.readFold(s, k, dst[lo:hi], src[lo:hi]); err != nil {
				return err
			}
		} else if err := h.read(s, k, dst[lo:hi]); err != nil {
			return err
		}
		h.publish(s, k, n)
	}
	return nil
}

// next waits for message k of step s and reads its header.
func (h *executor) next(s *step, k int) error {
	return s.lane.recv[k%len(s.lane.recv)].Next(&h.in)
}

// read reads len(dst) bytes of the data of message k into dst.
func (h *executor) read(s *step, k int, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	err := s.lane.recv[k%len(s.lane.recv)].Read(dst)
	h.progress(len(dst))
	return err
}

// readFold reads len(dst) bytes of the data of message k and folds them with src into dst. If
// the connection can lend its memory, the data is folded from that memory. Otherwise the data
// is received and folded in pieces of foldBufferBytes.
func (h *executor) readFold(s *step, k int, dst, src []byte) error {
	if len(dst) == 0 {
		return nil
	}
	if lender := s.lane.borrowers[k%len(s.lane.borrowers)]; lender != nil {
		received, err := lender.Borrow(len(dst))
		if err != nil {
			return err
		}
		h.lender = lender
		h.pair(s, dst, src, received)
		h.giveBack()
		h.progress(len(dst))
		return nil
	}
	for lo := 0; lo < len(dst); {
		land := h.receiveBufferFor(len(dst) - lo)
		hi := lo + len(land)
		if err := h.read(s, k, land); err != nil {
			return err
		}
		h.pair(s, dst[lo:hi], src[lo:hi], land)
		lo = hi
	}
	return nil
}

// giveBack gives borrowed bytes, if there are any, back to the connection.
func (h *executor) giveBack() {
	if h.lender != nil {
		h.lender.Return()
		h.lender = nil
	}
}

// pair folds src, which is data of the step's source, and the received bytes into dst.
func (h *executor) pair(s *step, dst, src, received []byte) {
	if s.recvLeft {
		h.r.op.Reducer.Fold(dst, received, src)
	} else {
		h.r.op.Reducer.Fold(dst, src, received)
	}
}

// receiveBufferFor returns the memory for received elements to fold. It holds whole elements
// and has at most n bytes.
func (h *executor) receiveBufferFor(n int) []byte {
	n = min(n, blockOf(foldBufferBytes, h.r.op.Elem))
	if n > len(h.foldBuffer) {
		h.foldBuffer = aligned(n)
	}
	return h.foldBuffer[:n]
}

// copy copies the step's source to its destination, unless they are the same memory.
func (h *executor) copy(s *step) error {
	if err := h.await(s, 0); err != nil {
		return err
	}
	r := h.r
	if r.forest {
		if done, err := h.copyForest(s); done || err != nil {
			return err
		}
	}
	src, dst := r.bytes(s.src[0]), r.bytes(s.dst)
	n := r.segments(len(dst))
	for k := range n {
		if err := h.await(s, k); err != nil {
			return err
		}
		lo := k * r.segment
		hi := min(lo+r.segment, len(dst))
		copyUnlessSame(dst[lo:hi], src[lo:hi])
		h.publish(s, k, n)
	}
	return nil
}

// expect returns an error unless the received header has the expected segment number, offset,
// length and absent flag. It is called before the data is used.
func (h *executor) expect(s *step, number uint32, offset, length int, absent bool) error {
	in, op := &h.in, h.r.op
	if in.Seq == op.Seq && in.Hash == h.r.hash && in.Step == s.recvIndex && in.Segment == number &&
		in.Offset == uint64(offset) && in.Length == uint32(length) && in.Absent == absent {
		return nil
	}
	return h.mismatch(s, number, offset, length)
}

// mismatch returns the error for an unexpected message.
func (h *executor) mismatch(s *step, number uint32, offset, length int) error {
	in, op := &h.in, h.r.op
	e := membership.Disagreement(h.r.prog.Rank, membership.Describe(op.Seq, op.What), s.lane.recvFrom, in.Seq)
	if in.Seq != op.Seq || in.Hash != h.r.hash {
		return e // the membership adds the operation of the other rank
	}
	e.OtherDoing = fmt.Sprintf("%s, of which it sends %s", e.Doing, describe(in.Step, in.Segment, in.Offset, uint64(in.Length), in.Absent))
	e.Doing += fmt.Sprintf(", of which it expects %s in lane %d step %d",
		describe(s.recvIndex, number, uint64(offset), uint64(length), false), s.lane.index, s.index)
	return e
}

// describe returns a description of a segment for errors.
func describe(step uint16, number uint32, offset, length uint64, absent bool) string {
	if absent {
		return fmt.Sprintf("an absent value at byte %d of message %d", offset, step)
	}
	return fmt.Sprintf("%d bytes at byte %d of message %d (segment %d)", length, offset, step, number&^uint32(mixed))
}

func (h *executor) progress(n int) {
	if p := h.r.opt.Progress; p != nil {
		p.Add(uint64(n))
	}
}

// blockOf returns size rounded down to a multiple of elem, but at least elem.
func blockOf(size, elem int) int { return max(size/elem, 1) * elem }

// aligned returns a new buffer of n bytes that is aligned for elements of any type.
func aligned(n int) []byte { return bytesOf(make([]uint64, (n+7)/8))[:n] }

// bytesOf returns the bytes in the memory of words.
func bytesOf(words []uint64) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
}

// copyUnlessSame copies src to dst, unless src and dst are the same memory.
func copyUnlessSame(dst, src []byte) {
	if len(dst) > 0 && &dst[0] != &src[0] {
		copy(dst, src)
	}
}
