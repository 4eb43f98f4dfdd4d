package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow/bitutil"
)

// runs reads numbers of the same width, up to 32 bits, that are stored in the Parquet format's
// hybrid of run-length encoding and bit packing: levels, indices of dictionaries and booleans.
// A run is either a count and one number that is repeated, or a number of groups of eight
// bit-packed numbers. The lowest bit of the run's header distinguishes the two kinds.
type runs struct {
	width  int
	data   []byte // runs after the current one
	same   int    // number of numbers left in the current run, if the run repeats one number; else 0
	number int32  // the number that the current run repeats
	packed int    // number of numbers left in the current run, if they are bit-packed; else 0
	groups []byte // the bytes of the current run, if its numbers are bit-packed
	bit    int    // index of the bit of groups at which the next number begins
}

// mostOfRuns returns the largest number of bytes that n numbers can take: 4 bytes for the
// length of the data, and then a run for each number.
func mostOfRuns(n int64) int64 { return 4 + (binary.MaxVarintLen32+4)*n }

// errRunsEnd says that runs have fewer numbers than requested.
var errRunsEnd = errors.New("runs end early")

// next proceeds to the next run if the current run has no numbers left.
func (r *runs) next() error {
	if r.same > 0 || r.packed > 0 {
		return nil
	}
	head, size := binary.Uvarint(r.data)
	if size <= 0 || head>>1 == 0 || head > math.MaxInt32 {
		return errRunsEnd
	}
	r.data = r.data[size:]
	count, size := int(head>>1), (r.width+7)/8
	if head&1 == 0 {
		if size > len(r.data) {
			return errRunsEnd
		}
		var number [4]byte
		copy(number[:], r.data[:size])
		r.same, r.number, r.data = count, int32(binary.LittleEndian.Uint32(number[:])), r.data[size:]
		return nil
	}
	r.packed, size = count*8, count*r.width
	if missing := size - len(r.data); missing > 0 {
		// Some writers omit the unused bytes of the last group.
		if missing >= r.width {
			return errRunsEnd
		}
		size -= missing
		r.packed = size * 8 / r.width
	}
	r.groups, r.bit, r.data = r.data[:size], 0, r.data[size:]
	return nil
}

// take marks n numbers of the current run as read. The run must have at least n.
func (r *runs) take(n int) {
	if r.same > 0 {
		r.same -= n
		return
	}
	r.packed -= n
	r.bit += n * r.width
}

// read fills dst with the next numbers.
func (r *runs) read(dst []int32) error {
	for len(dst) > 0 {
		if err := r.next(); err != nil {
			return err
		}
		n := min(len(dst), r.same+r.packed)
		if r.same > 0 {
			for i := range dst[:n] {
				dst[i] = r.number
			}
		} else {
			unpack(dst[:n], r.groups, r.bit, r.width)
		}
		r.take(n)
		dst = dst[n:]
	}
	return nil
}

// bits reads the next n numbers, which have one bit each. It stores them in the bitmap dst,
// beginning at the bit with index at, and returns how many are 1.
func (r *runs) bits(dst []byte, at, n int) (ones int, err error) {
	for n > 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
		k := min(n, r.same+r.packed)
		if r.same > 0 {
			if r.number > 1 {
				return 0, fmt.Errorf("a page has a bool of %d", r.number)
			}
			bitutil.SetBitsTo(dst, int64(at), int64(k), r.number == 1)
			ones += k * int(r.number)
		} else {
			bitutil.CopyBitmap(r.groups, r.bit, k, dst, at)
			ones += bitutil.CountSetBits(r.groups, r.bit, k)
		}
		r.take(k)
		at, n = at+k, n-k
	}
	return ones, nil
}

// count returns how many of the next n levels are equal to most, the highest possible level.
// The levels stay unread, because r is a copy.
func (r runs) count(n int, most int32) (highest int, err error) {
	var levels [128]int32
	for n > 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
		k := min(n, r.same+r.packed)
		if r.same > 0 {
			if r.number > most {
				return 0, levelAbove(r.number, most)
			}
			if r.number == most {
				highest += k
			}
		} else if r.width == 1 {
			highest += bitutil.CountSetBits(r.groups, r.bit, k)
		} else {
			k = min(k, len(levels))
			unpack(levels[:k], r.groups, r.bit, r.width)
			for _, level := range levels[:k] {
				if level > most {
					return 0, levelAbove(level, most)
				}
				if level == most {
					highest++
				}
			}
		}
		r.take(k)
		n -= k
	}
	return highest, nil
}

func levelAbove(level, most int32) error {
	return fmt.Errorf("a page has a level of %d, where %d is the highest", level, most)
}

// unpack fills dst with numbers of width bits each, at most 64. The first number begins at the
// bit of data with index bit. The lowest bit of a byte comes first.
func unpack[T int32 | int64](dst []T, data []byte, bit, width int) {
	i, mask := 0, uint64(1)<<width-1
	if width <= 57 {
		for ; i < len(dst) && bit>>3+8 <= len(data); i++ {
			dst[i] = T(binary.LittleEndian.Uint64(data[bit>>3:]) >> (bit & 7) & mask)
			bit += width
		}
	}
	for ; i < len(dst); i++ {
		number, shift := uint64(0), bit&7
		for k := 0; 8*k < shift+width; k++ {
			if b := uint64(data[bit>>3+k]); k == 0 {
				number = b >> shift
			} else {
				number |= b << (8*k - shift)
			}
		}
		dst[i] = T(number & mask)
		bit += width
	}
}
