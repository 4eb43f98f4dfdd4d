package membership

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// coder writes values to the body of a frame or, if reading is set, reads values from a body.
// The same calls write and read, so that each message lists its fields only once. After the
// first error, all values that are read are zero.
type coder struct {
	buf     []byte // bytes that were written, or bytes that are still to be read
	reading bool
	err     error
}

func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.buf = nil
}

// take reads n bytes.
func (c *coder) take(n int) []byte {
	if n > len(c.buf) {
		c.fail("it ends %d bytes early", n-len(c.buf))
		return nil
	}
	b := c.buf[:n]
	c.buf = c.buf[n:]
	return b
}

// num writes or reads a number from 0 to limit. When it writes, it replaces a number outside of
// this range by the nearest number in the range, since numbers may come from callers of the
// package.
func num[T int | int64 | uint64](c *coder, v *T, limit uint64) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, min(uint64(max(0, *v)), limit))
		return
	}
	u, n := binary.Uvarint(c.buf)
	switch {
	case c.err != nil:
	case n <= 0:
		c.fail("a number does not end")
	case u > limit:
		c.fail("number %d is more than %d", u, limit)
	default:
		*v, c.buf = T(u), c.buf[n:]
	}
}

// fixed writes or reads a number of eight bytes.
func (c *coder) fixed(v *uint64) {
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, *v)
	} else if b := c.take(8); b != nil {
		*v = binary.LittleEndian.Uint64(b)
	}
}

func (c *coder) flag(v *bool) {
	if !c.reading {
		b := byte(0)
		if *v {
			b = 1
		}
		c.buf = append(c.buf, b)
	} else if b := c.take(1); b != nil {
		if *v = b[0] == 1; b[0] > 1 {
			c.fail("a flag is %d", b[0])
		}
	}
}

// text writes or reads a text. It writes valid UTF-8 and truncates the text to at most limit
// bytes, so that a failure with a long text can still be reported.
func (c *coder) text(v *string, limit int) {
	s := ""
	if !c.reading {
		s = peerlink.Clip(*v, limit)
	}
	n := len(s)
	num(c, &n, uint64(limit))
	if !c.reading {
		c.buf = append(c.buf, s...)
		return
	}
	if *v = string(c.take(n)); !utf8.ValidString(*v) {
		c.fail("a text is not UTF-8")
	}
}

// items writes or reads a list of at most maxLen elements. name is the name of the elements in
// errors. Each element takes at least one byte, so a list has at most as many elements as its
// frame has bytes.
func items[T any](c *coder, elements *[]T, name string, maxLen int, each func(v *T)) {
	n, limit := len(*elements), uint64(maxFrame)
	if c.reading {
		limit = uint64(len(c.buf))
	}
	if num(c, &n, limit); n > maxLen && c.reading {
		c.fail("%d %s are more than %d", n, name, maxLen)
		return
	}
	for i := range n {
		if c.reading {
			*elements = append(*elements, *new(T))
		}
		if each(&(*elements)[i]); c.err != nil {
			return
		}
	}
}

// ranks writes or reads an ascending list of ranks. The encoding has the differences between
// consecutive ranks.
func (c *coder) ranks(ranks *[]int) {
	next := 0
	items(c, ranks, "ranks", maxRanks, func(r *int) {
		gap := *r - next
		num(c, &gap, maxRanks)
		next += gap
		if c.reading {
			if *r = next; next >= maxRanks {
				c.fail("rank %d is too large", next)
			}
		}
		next++
	})
}
