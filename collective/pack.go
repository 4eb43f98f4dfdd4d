package collective

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// Buffers with mostly zeros are sent packed: only the elements that have at least one bit set
// are sent, with their positions. Such elements are called set. A piece of n elements, k of
// which are set, is written in the form that takes the fewest bytes. If several forms take the
// fewest bytes, the first of them is used. The reader finds the form from k and n:
//
//	places  the positions of the set elements, ascending, in 4 bytes each, then the k elements
//	mask    a bit for each of the n elements, in words of 4 bytes, then the k set elements
//	plain   all n elements
//
// If k is 0, nothing is written. Both the positions or mask and the elements are padded to a
// multiple of 8 bytes. Only +0 has no bit set. So −0 and every NaN are sent as they are, the
// receiver restores all bits, and the form does not change the result.

// absentPiece is used as the number of set elements of a piece that does not exist.
const absentPiece = -1

// even returns n, a number of bytes, rounded up to a multiple of 8.
func even(n int) int { return (n + 7) &^ 7 }

// packedBytes returns the number of bytes of a packed piece of n elements, k of which are set.
// An element has size bytes.
func packedBytes(k, n, size int) int {
	if k <= 0 {
		return 0
	}
	return min(even(4*min(k, maskWords(n)))+even(k*size), even(n*size))
}

func maskWords(n int) int { return (n + 31) / 32 }

// plain reports whether a piece is written in the plain form.
func plain(k, n, size int) bool { return packedBytes(k, n, size) == even(n*size) }

// setOf returns the number of set elements of a buffer.
func setOf[T Number](x []T) int {
	if _, size := typeOf[T](); size == 8 {
		return countSet(viewAs[uint64](x))
	} else if size == 4 {
		return countSet(viewAs[uint32](x))
	}
	return countSet(viewAs[uint8](x))
}

// word is an unsigned integer type for the bits of an element.
type word interface{ uint64 | uint32 | uint8 }

// viewAs views elements as words of their size.
func viewAs[W word, T Number](x []T) []W {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*W)(unsafe.Pointer(&x[0])), len(x))
}

// isSet returns 1 if a bit of v is set, else 0. It has no branch, since a processor cannot
// predict which elements are zero.
func isSet[W word](v W) int { return int((uint64(v) | -uint64(v)) >> 63) }

func countSet[W word](x []W) int {
	var a, b, c, d int
	for ; len(x) >= 4; x = x[4:] {
		a += isSet(x[0])
		b += isSet(x[1])
		c += isSet(x[2])
		d += isSet(x[3])
	}
	for _, v := range x {
		a += isSet(v)
	}
	return a + b + c + d
}

// packPiece writes a piece with k set elements to dst and returns the number of bytes written.
// dst is aligned to 8 bytes and has room for one element more than packedBytes returns.
func packPiece[T Number](dst []byte, x []T, k int) int {
	switch _, size := typeOf[T](); size {
	case 8:
		return packWords(dst, viewAs[uint64](x), k, size)
	case 4:
		return packWords(dst, viewAs[uint32](x), k, size)
	default:
		return packWords(dst, viewAs[uint8](x), k, size)
	}
}

func packWords[W word](dst []byte, x []W, k, size int) int {
	total := packedBytes(k, len(x), size)
	if total == 0 {
		return 0
	}
	if plain(k, len(x), size) {
		copy(wordsOf[W](dst, len(x)), x)
		return total
	}
	words := min(k, maskWords(len(x)))
	index := wordsOf[uint32](dst, words)
	next, values := 0, wordsOf[W](dst[even(4*words):], k+1) // one more: the last loop also writes zeros
	if words == k && k < maskWords(len(x)) {
		for i, v := range x {
			if v != 0 {
				index[next], values[next] = uint32(i), v
				next++
			}
		}
		return total
	}
	for w := range index {
		var mask uint32
		for b, v := range x[32*w : min(32*w+32, len(x))] {
			values[next] = v
			set := isSet(v)
			mask |= uint32(set) << b
			next += set
		}
		index[w] = mask
	}
	return total
}

// wordBytes views words as bytes.
func wordBytes(x []uint64) []byte {
	if len(x) == 0 {
		return noBytes
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 8*len(x))
}

// wordsOf views bytes as n words. The bytes are aligned for words.
func wordsOf[W word](b []byte, n int) []W {
	var zero W
	b = b[:n*int(unsafe.Sizeof(zero))]
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*W)(unsafe.Pointer(&b[0])), n)
}

// unpackPiece writes all elements of a piece with k set elements to dst. src has the length
// that packedBytes returns and is aligned to 8 bytes.
func unpackPiece[T Number](dst []T, src []byte, k int) error {
	switch _, size := typeOf[T](); size {
	case 8:
		return unpackWords(viewAs[uint64](dst), src, k, size)
	case 4:
		return unpackWords(viewAs[uint32](dst), src, k, size)
	default:
		return unpackWords(viewAs[uint8](dst), src, k, size)
	}
}

func unpackWords[W word](dst []W, src []byte, k, size int) error {
	if k > 0 && plain(k, len(dst), size) {
		copy(dst, wordsOf[W](src, len(dst)))
		return nil
	}
	clear(dst)
	if k <= 0 {
		return nil
	}
	words := min(k, maskWords(len(dst)))
	index, values := wordsOf[uint32](src, words), wordsOf[W](src[even(4*words):], k)
	if words == k && k < maskWords(len(dst)) {
		for i, at := range index {
			if int(at) >= len(dst) {
				return fmt.Errorf("a packed piece has element %d of %d", at, len(dst))
			}
			dst[at] = values[i]
		}
		return nil
	}
	set := 0
	for _, mask := range index {
		set += bits.OnesCount32(mask)
	}
	if last := index[words-1]; set != k || last>>((len(dst)-1)%32)>>1 != 0 {
		return fmt.Errorf("the mask of a packed piece of %d elements has %d, not %d, or one beyond the end", len(dst), set, k)
	}
	for w, mask := range index {
		part := dst[32*w : min(32*w+32, len(dst))]
		for ; mask != 0; mask &= mask - 1 {
			part[bits.TrailingZeros32(mask)] = values[0]
			values = values[1:]
		}
	}
	return nil
}

// packFrom is the least number of elements for which a Sparse reduction looks for zeros.
const packFrom = 16384

// packs reports whether the current operation may send its parts packed.
func (a *AllReducer[T]) packs() bool {
	return a.req.Sparse && a.n >= a.c.group.packFrom && a.c.Size() > 1
}

// worthPacking reports whether packing saves at least an eighth of the bytes, in which case
// parts are packed. All ranks call it with the bytes of the parts of all ranks, so all make the
// same decision.
func worthPacking(packed, whole int64) bool { return packed <= whole-whole/8 }
