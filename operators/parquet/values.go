package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	pq "github.com/apache/arrow/go/v15/parquet"
)

// number lists the Go types of numbers in a file.
type number interface {
	int32 | int64 | float32 | float64
}

// numbers reads the numbers of pages.
type numbers[T number] struct {
	times96 bool // the file has times of 96 bits, which next converts to nanoseconds since 1970
	dict    []T
	indices indices
	rest    []byte // unread bytes of plain numbers
	split   split
	// next fills dst with the next numbers of the page.
	next func(dst []T) error
}

// width returns the number of bytes of a number in the encoding PLAIN.
func (v *numbers[T]) width() int {
	if v.times96 {
		return pq.Int96SizeBytes
	}
	return len(arrow.GetBytes([]T{0}))
}

func (v *numbers[T]) dictionary(n int, data []byte) error {
	if n > len(data)/v.width() {
		return fmt.Errorf("a dictionary that says it has %d values has %d bytes", n, len(data))
	}
	v.rest, v.dict = data, slices.Grow(v.dict[:0], n)[:n]
	return v.plain(v.dict)
}

func (v *numbers[T]) open(encoding int64, n int, data []byte) error {
	switch encoding {
	case plain:
		if n > len(data)/v.width() {
			return fewValues(n)
		}
		if extra := len(data) - n*v.width(); extra > 4 && int64(binary.LittleEndian.Uint32(data)) == int64(extra-4) {
			return errors.New("a page begins with levels, which its column has none of, as the footer says that it is never null")
		}
		v.rest, v.next = data, v.plain
		return nil
	case plainDictionary, rleDictionary:
		v.next = v.look
		return v.indices.open(data)
	case byteStreamSplit:
		if v.times96 {
			break
		}
		if n*v.width() != len(data) {
			return fmt.Errorf("a page with %d values that are not null, in bytes that are split, has %d bytes, where they have %d each", n, len(data), v.width())
		}
		v.split, v.next = split{bytes: data, count: n}, v.join
		return nil
	case deltaBinary:
		switch v := any(v).(type) {
		case *numbers[int32]:
			return openDeltas(v, n, data)
		case *numbers[int64]:
			if !v.times96 {
				return openDeltas(v, n, data)
			}
		}
	}
	return unsupported(encoding)
}

func (v *numbers[T]) most(encoding int64, n int64) int64 {
	switch encoding {
	case plain, byteStreamSplit:
		return n * int64(v.width())
	case plainDictionary, rleDictionary:
		return mostOfRuns(n)
	}
	return unbounded
}

// unbounded is the result of most for values that may take any number of bytes.
const unbounded = math.MaxInt64 / 2

func openDeltas[T int32 | int64](v *numbers[T], n int, data []byte) error {
	d, _, err := newDeltas[T](n, data)
	if err == nil {
		v.next = d.read
	}
	return err
}

func unsupported(encoding int64) error {
	return fmt.Errorf("the encoding %v of a page is not one of its column's type that is supported", pq.Encoding(encoding))
}

// plain fills dst with the next numbers of the encoding PLAIN. The page must have len(dst)
// unread numbers.
func (v *numbers[T]) plain(dst []T) error {
	if times, ok := any(dst).([]int64); ok && v.times96 {
		for i := range times {
			times[i] = nanoseconds(pq.Int96(v.rest[:pq.Int96SizeBytes]))
			v.rest = v.rest[pq.Int96SizeBytes:]
		}
		return nil
	}
	v.rest = v.rest[copy(arrow.GetBytes(dst), v.rest):]
	return nil
}

// split has the bytes of numbers in the encoding BYTE_STREAM_SPLIT: the lowest bytes of all
// numbers, then the second bytes of all numbers, and so on.
type split struct {
	bytes []byte
	count int // number of numbers
	at    int // index of the next number
}

// join fills dst with the next numbers of the encoding BYTE_STREAM_SPLIT.
func (v *numbers[T]) join(dst []T) error {
	s := &v.split
	if len(dst) > s.count-s.at {
		return errors.New("a page has fewer split numbers than values")
	}
	out, width := arrow.GetBytes(dst), v.width()
	for k := range width {
		for i, b := range s.bytes[k*s.count+s.at:][:len(dst)] {
			out[i*width+k] = b
		}
	}
	s.at += len(dst)
	return nil
}

// nanoseconds returns a time as nanoseconds since 1970. It returns 0 if the number of the
// time's day is 0.
func nanoseconds(t pq.Int96) int64 {
	if binary.LittleEndian.Uint32(t[8:]) == 0 {
		return 0
	}
	return t.ToTime().UnixNano()
}

// look reads indices of the dictionary and fills dst with the numbers at these indices.
func (v *numbers[T]) look(dst []T) error {
	for len(dst) > 0 {
		at, err := v.indices.next(len(dst), len(v.dict))
		if err != nil {
			return err
		}
		for i, k := range at {
			dst[i] = v.dict[k]
		}
		dst = dst[len(at):]
	}
	return nil
}

// indices reads indices of a dictionary.
type indices struct {
	runs   runs
	buffer [512]int32
}

func (x *indices) open(data []byte) error {
	if len(data) == 0 || data[0] > 32 {
		return errors.New("a page has indices of a dictionary that do not say how many bits they have")
	}
	x.runs = runs{width: int(data[0]), data: data[1:]}
	return nil
}

// next returns the next indices; their number is at most the parameter most. It returns an
// error if an index is not below values, the size of the dictionary.
func (x *indices) next(most, values int) ([]int32, error) {
	at := x.buffer[:min(most, len(x.buffer))]
	if err := x.runs.read(at); err != nil {
		return nil, errors.New("a page has fewer indices of its dictionary than values")
	}
	for _, k := range at {
		if uint32(k) >= uint32(values) {
			return nil, fmt.Errorf("a page has an index of %d into a dictionary of %d values", uint32(k), values)
		}
	}
	return at, nil
}

// texts reads the texts, or other byte arrays, of pages.
type texts struct {
	// data has the texts that were read, one after another. The caller sets its initial value
	// before calls of next.
	data    []byte
	dict    []byte   // the texts of the dictionary, each after its length
	starts  []uint32 // the position in dict of the length of each text
	indices indices
	rest    []byte // unread bytes of plain texts, or of the suffixes of delta encodings

	prefixes, lengths *deltas[int32]
	last              []byte // the previous text of a page in DELTA_BYTE_ARRAY
	buffer            [2][256]int32

	// next appends the next texts of the page to data, and stores in ends the position in data
	// at which each text ends.
	next func(ends []int32) error
}

func (v *texts) dictionary(n int, data []byte) error {
	if n > len(data)/4 {
		return fmt.Errorf("a dictionary that says it has %d values has %d bytes", n, len(data))
	}
	v.dict, v.starts = data, slices.Grow(v.starts[:0], n)
	for range n {
		start := len(v.dict) - len(data)
		_, rest, ok := cutText(data)
		if !ok {
			return fmt.Errorf("a dictionary that says it has %d values has fewer", n)
		}
		v.starts, data = append(v.starts, uint32(start)), rest
	}
	return nil
}

func (v *texts) most(encoding int64, n int64) int64 {
	if encoding == plainDictionary || encoding == rleDictionary {
		return mostOfRuns(n)
	}
	return unbounded
}

// cutText splits texts in the encoding PLAIN into the first text and the rest.
func cutText(data []byte) (text, rest []byte, ok bool) {
	if len(data) < 4 {
		return nil, nil, false
	}
	n := uint64(binary.LittleEndian.Uint32(data))
	if data = data[4:]; n > uint64(len(data)) {
		return nil, nil, false
	}
	return data[:n], data[n:], true
}

func (v *texts) open(encoding int64, n int, data []byte) (err error) {
	v.rest = data
	switch encoding {
	case plain:
		v.next = v.plain
	case plainDictionary, rleDictionary:
		v.next = v.look
		err = v.indices.open(data)
	case deltaLengthBytes:
		v.next = v.cut
		v.lengths, v.rest, err = newDeltas[int32](n, data)
	case deltaBytes:
		v.next, v.last = v.join, v.last[:0]
		if v.prefixes, v.rest, err = newDeltas[int32](n, data); err == nil {
			v.lengths, v.rest, err = newDeltas[int32](n, v.rest)
		}
	default:
		err = unsupported(encoding)
	}
	return err
}

// add appends a text to data, and returns the position at which it ends. It returns an error if
// data would be too large for an array.
func (v *texts) add(text []byte) (int32, error) {
	if len(v.data) > math.MaxInt32-len(text) {
		return 0, fmt.Errorf("%d bytes of text are in rows that are read together, which can have 2 GiB; read fewer rows at a time, if they are more than %d, or leave the column out", len(v.data)+len(text), leastRows)
	}
	v.data = append(v.data, text...)
	return int32(len(v.data)), nil
}

func (v *texts) plain(ends []int32) (err error) {
	for i := range ends {
		text, rest, ok := cutText(v.rest)
		if !ok {
			return errors.New("a page has a text of more bytes than are left of it, or fewer texts than values")
		}
		if ends[i], err = v.add(text); err != nil {
			return err
		}
		v.rest = rest
	}
	return nil
}

func (v *texts) look(ends []int32) (err error) {
	for len(ends) > 0 {
		at, err := v.indices.next(len(ends), len(v.starts))
		if err != nil {
			return err
		}
		for i, k := range at {
			text, _, _ := cutText(v.dict[v.starts[k]:])
			if ends[i], err = v.add(text); err != nil {
				return err
			}
		}
		ends = ends[len(at):]
	}
	return nil
}

// cut reads texts of the encoding DELTA_LENGTH_BYTE_ARRAY, in which the lengths of all texts
// precede the concatenated texts.
func (v *texts) cut(ends []int32) error {
	for len(ends) > 0 {
		lengths := v.buffer[0][:min(len(ends), len(v.buffer[0]))]
		if err := v.lengths.read(lengths); err != nil {
			return err
		}
		for i, n := range lengths {
			text, err := v.suffix(n)
			if err != nil {
				return err
			}
			if ends[i], err = v.add(text); err != nil {
				return err
			}
		}
		ends = ends[len(lengths):]
	}
	return nil
}

// suffix returns the next n bytes of rest.
func (v *texts) suffix(n int32) ([]byte, error) {
	if n < 0 || int(n) > len(v.rest) {
		return nil, fmt.Errorf("a page has a text of %d bytes, where %d are left of it", n, len(v.rest))
	}
	text := v.rest[:n]
	v.rest = v.rest[n:]
	return text, nil
}

// join reads texts of the encoding DELTA_BYTE_ARRAY. A text consists of a prefix of the
// previous text and a suffix. The page stores the length of the prefix and the bytes of the
// suffix.
func (v *texts) join(ends []int32) error {
	for len(ends) > 0 {
		prefixes, lengths := v.buffer[0][:min(len(ends), len(v.buffer[0]))], v.buffer[1][:min(len(ends), len(v.buffer[1]))]
		if err := v.prefixes.read(prefixes); err != nil {
			return err
		}
		if err := v.lengths.read(lengths); err != nil {
			return err
		}
		for i, n := range lengths {
			suffix, err := v.suffix(n)
			if err != nil {
				return err
			}
			if prefixes[i] < 0 || int(prefixes[i]) > len(v.last) {
				return fmt.Errorf("a page has a text of which the first %d bytes are those of one of %d bytes", prefixes[i], len(v.last))
			}
			v.last = append(v.last[:prefixes[i]], suffix...)
			if ends[i], err = v.add(v.last); err != nil {
				return err
			}
		}
		ends = ends[len(lengths):]
	}
	return nil
}

// truths reads the booleans of pages, as numbers of one bit.
type truths struct{ runs }

func (v *truths) dictionary(n int, _ []byte) error {
	if n > 0 {
		return errors.New("bools have a dictionary")
	}
	return nil
}

func (v *truths) most(encoding int64, n int64) int64 {
	if encoding == plain {
		return (n + 7) / 8
	}
	return mostOfRuns(n)
}

func (v *truths) open(encoding int64, n int, data []byte) error {
	switch encoding {
	case plain:
		if n > 8*len(data) {
			return fewValues(n)
		}
		v.runs = runs{width: 1, packed: n, groups: data}
		return nil
	case rle:
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			return fewValues(n)
		}
		v.runs = runs{width: 1, data: data[4 : 4+binary.LittleEndian.Uint32(data)]}
		return nil
	}
	return unsupported(encoding)
}
