package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// deltas reads whole numbers that are stored as differences (DELTA_BINARY_PACKED of the Parquet
// format). The data begin with a head, which has the count and the first number. Blocks follow.
// A block has its smallest difference, the bit widths of its miniblocks, and the miniblocks. A
// miniblock stores differences in its bit width; the smallest difference of the block was
// subtracted from each of them. The differences are unpacked only when they are read, so large
// miniblocks take no additional memory.
type deltas[T int32 | int64] struct {
	left  int // number of numbers that have not been read
	first bool
	last  T
	least T

	block int // number of miniblocks in a block
	mini  int // number of differences in a miniblock

	data   []byte // data after the current miniblock
	widths []byte // widths of the block's miniblocks after the current one
	here   int    // number of differences of the current miniblock that have not been read
	packed []byte // bytes of the current miniblock; a difference has width bits, and the next one begins at index bit
	width  int
	bit    int
}

var errDeltasEnd = errors.New("a page has deltas that end early")

// newDeltas returns a reader of the n numbers at the beginning of data, and the rest of data.
// It returns an error if data is too short for the numbers.
func newDeltas[T int32 | int64](n int, data []byte) (*deltas[T], []byte, error) {
	var head [4]uint64 // numbers per block, miniblocks per block, count of numbers, and first number
	for i := range head {
		v, size := binary.Uvarint(data)
		if size <= 0 {
			return nil, nil, errDeltasEnd
		}
		head[i], data = v, data[size:]
	}
	if head[2] != uint64(n) {
		return nil, nil, fmt.Errorf("a page with %d values that are not null says it has %d deltas", n, head[2])
	}
	if head[0] == 0 || head[0] > math.MaxInt32 || head[1] == 0 || head[0]%(32*min(head[1], math.MaxInt32)) != 0 {
		return nil, nil, fmt.Errorf("a page has deltas in blocks of %d, in %d parts each, and parts have a multiple of 32", head[0], head[1])
	}
	if first := zigzag[T](head[3]); head[3]>>1 != uint64(max(first, ^first)) {
		return nil, nil, errors.New("a page has deltas whose first number has too many bits")
	}
	d := &deltas[T]{left: n, first: true, last: zigzag[T](head[3]), block: int(head[1]), mini: int(head[0] / head[1]), data: data}
	ahead := *d
	for ahead.left--; ahead.left > 0; ahead.left -= ahead.mini {
		if err := ahead.turn(); err != nil {
			return nil, nil, err
		}
	}
	return d, ahead.data, nil
}

// zigzag decodes a number that is stored as v, in which the lowest bit is the sign.
func zigzag[T int32 | int64](v uint64) T { return T(int64(v>>1) ^ -int64(v&1)) }

// turn proceeds to the next miniblock.
func (d *deltas[T]) turn() error {
	if len(d.widths) == 0 {
		v, size := binary.Uvarint(d.data)
		if size <= 0 || len(d.data)-size < d.block {
			return errDeltasEnd
		}
		d.least = zigzag[T](v)
		d.widths, d.data = d.data[size:size+d.block], d.data[size+d.block:]
	}
	d.width, d.widths = int(d.widths[0]), d.widths[1:]
	if d.width > 64 {
		return fmt.Errorf("a page has deltas of %d bits", d.width)
	}
	size := d.mini / 8 * d.width
	if size > len(d.data) {
		return errDeltasEnd
	}
	d.here, d.packed, d.bit, d.data = d.mini, d.data[:size], 0, d.data[size:]
	return nil
}

// read fills dst with the next numbers.
func (d *deltas[T]) read(dst []T) error {
	if len(dst) > d.left {
		return errDeltasEnd
	}
	d.left -= len(dst)
	if d.first && len(dst) > 0 {
		d.first = false
		dst[0], dst = d.last, dst[1:]
	}
	for len(dst) > 0 {
		if d.here == 0 {
			if err := d.turn(); err != nil {
				return err
			}
		}
		n := min(len(dst), d.here)
		unpack(dst[:n], d.packed, d.bit, d.width)
		for i, v := range dst[:n] {
			d.last += d.least + v
			dst[i] = d.last
		}
		d.bit += n * d.width
		d.here -= n
		dst = dst[n:]
	}
	return nil
}
