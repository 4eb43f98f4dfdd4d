// Package checksum computes checksums of bytes that are sent over connections or written to
// temporary files. The checksum of headers and of files is a CRC-32C. The checksum of bulk data
// on connections is a chain of the XXH3 hashes of its pieces, whose computation takes a fifth of
// the time of a CRC-32C.
//
// XXH3 is by Yann Collet, https://github.com/Cyan4973/xxHash.
package checksum

import (
	"errors"
	"hash/crc32"

	"github.com/zeebo/xxh3"
)

// ErrDamaged is wrapped by errors about bytes that were changed in transit. All networks of the
// project wrap it, so that errors.Is finds it even in a failure that one network reports to
// another.
var ErrDamaged = errors.New("damaged in transit")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C returns the CRC-32C of earlier bytes followed by data. sum is the CRC-32C of the
// earlier bytes, or 0 if there are none.
func CRC32C(sum uint32, data []byte) uint32 { return crc32.Update(sum, castagnoli, data) }

// PieceBytes is the length in bytes of every piece except the last. A piece that has just been
// copied is still in the cache when it is summed.
const PieceBytes = 64 << 10

// chain is the multiplier of the chain of hashes. It is odd, so that a change of a piece, or of
// the order of pieces, changes the sum.
const chain = 0x9e3779b97f4a7c15

// Sum is the checksum of the pieces that were added to it. The sum of no pieces is 0.
type Sum uint64

// Add returns the sum with one more piece.
func (s Sum) Add(piece []byte) Sum { return s*chain + Sum(xxh3.Hash(piece)) }

// Bits returns the upper 32 bits of the sum. Only these are sent.
func (s Sum) Bits() uint32 { return uint32(s >> 32) }

// AddAll returns the sum with b added in pieces of PieceBytes; the last piece may be shorter.
// After a shorter piece, nothing may be added.
func (s Sum) AddAll(b []byte) Sum {
	for len(b) > PieceBytes {
		s, b = s.Add(b[:PieceBytes]), b[PieceBytes:]
	}
	if len(b) > 0 {
		s = s.Add(b)
	}
	return s
}

// Of returns the sum of b; it is 0 if b is empty.
func Of(b []byte) Sum { return Sum(0).AddAll(b) }

// A Stream sums bytes that arrive in parts of any lengths. The result equals Of(b), where b has
// all the bytes.
type Stream struct {
	sum   Sum
	carry []byte // copy of the beginning of an incomplete piece; set by Leave
}

// Reset starts a new sum.
func (s *Stream) Reset() { s.sum, s.carry = 0, s.carry[:0] }

// Arrived adds the whole pieces in b[:arrived], the bytes of b that have arrived. rest is the
// part of b that is not summed yet, and restArrived is how many bytes of rest have arrived. When
// more bytes have arrived, the caller passes rest to Arrived again. If the caller does not keep
// the buffer until then, it passes rest[:restArrived] to Leave.
func (s *Stream) Arrived(b []byte, arrived int) (rest []byte, restArrived int) {
	for arrived >= PieceBytes-len(s.carry) {
		k := PieceBytes - len(s.carry)
		if len(s.carry) > 0 {
			s.carry = append(s.carry, b[:k]...)
			s.sum, s.carry = s.sum.Add(s.carry), s.carry[:0]
		} else {
			s.sum = s.sum.Add(b[:k])
		}
		b, arrived = b[k:], arrived-k
	}
	return b, arrived
}

// Leave keeps a copy of b, the arrived bytes that Arrived has not summed. The caller may then
// reuse their buffer.
func (s *Stream) Leave(b []byte) { s.carry = append(s.carry, b...) }

// End returns the sum of all bytes. rest has the arrived bytes that the last Arrived has not
// summed.
func (s *Stream) End(rest []byte) Sum {
	switch {
	case len(s.carry) > 0:
		s.carry = append(s.carry, rest...)
		return s.sum.Add(s.carry)
	case len(rest) > 0:
		return s.sum.Add(rest)
	}
	return s.sum
}
