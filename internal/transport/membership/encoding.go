package membership

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// encoder appends to a frame.
type encoder struct{ buf []byte }

func (e *encoder) u32(v uint32) { e.buf = binary.LittleEndian.AppendUint32(e.buf, v) }
func (e *encoder) u64(v uint64) { e.buf = binary.LittleEndian.AppendUint64(e.buf, v) }
func (e *encoder) num(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }

func (e *encoder) flag(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	e.buf = append(e.buf, b)
}

// text appends s as valid UTF-8, cut to at most limit bytes: a message about a failure must not
// fail because of its length.
func (e *encoder) text(s string, limit int) {
	s = peerlink.Clip(s, limit)
	e.num(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// ranks appends an ascending list as its gaps.
func (e *encoder) ranks(list []int) {
	e.num(uint64(len(list)))
	next := 0
	for _, r := range list {
		e.num(uint64(r - next))
		next = r + 1
	}
}

// decoder reads a body; after the first error all reads give zero.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	d.rest = nil
}

func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.fail("it ends %d bytes early", n-len(d.rest))
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// num reads a number of at most limit.
func (d *decoder) num(limit uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	switch {
	case d.err != nil:
		return 0
	case n <= 0:
		d.fail("a number does not end")
		return 0
	case v > limit:
		d.fail("number %d is more than %d", v, limit)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads the length of a list whose elements take at least one byte each, so
// that no list is longer than the frame.
func (d *decoder) count() int { return int(d.num(uint64(len(d.rest)))) }

func (d *decoder) flag() bool {
	b := d.take(1)
	if b == nil {
		return false
	}
	if b[0] > 1 {
		d.fail("a flag is %d", b[0])
	}
	return b[0] == 1
}

func (d *decoder) text(limit int) string {
	b := d.take(int(d.num(uint64(limit))))
	if !utf8.Valid(b) {
		d.fail("a text is not UTF-8")
	}
	return string(b)
}

func (d *decoder) ranks() []int {
	n := d.count()
	if n == 0 {
		return nil
	}
	list := make([]int, 0, n)
	next := 0
	for range n {
		r := next + int(d.num(maxRanks))
		if r >= maxRanks {
			d.fail("rank %d is too large", r)
		}
		if d.err != nil {
			return nil
		}
		list = append(list, r)
		next = r + 1
	}
	return list
}
