// Package checksum has the checksums of what connections carry: of small heads a CRC-32C, and of
// bulk data XXH3 of pieces, chained, which takes a fifth of the time.
//
// XXH3 is by Yann Collet, https://github.com/Cyan4973/xxHash.
package checksum

import (
	"errors"
	"hash/crc32"

	"github.com/zeebo/xxh3"
)

// ErrDamaged is wrapped by the errors of all networks about bytes that were changed in transit.
// All networks share it, so that it is recognized in a failure that is passed on.
var ErrDamaged = errors.New("damaged in transit")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C returns the CRC-32C of what has the given sum, which begins with 0, and data after it.
func CRC32C(sum uint32, data []byte) uint32 { return crc32.Update(sum, castagnoli, data) }

// PieceBytes is the length of every piece but the last: short enough to stay in the cache from
// the copy to the checksum.
const PieceBytes = 64 << 10

// chain is odd, so that a changed or moved piece changes the total sum.
const chain = 0x9e3779b97f4a7c15

// Sum is the sum of the pieces so far. It begins with 0.
type Sum uint64

// Add returns the sum with one more piece.
func (s Sum) Add(piece []byte) Sum { return s*chain + Sum(xxh3.Hash(piece)) }

// Bits returns the part of a sum that is sent.
func (s Sum) Bits() uint32 { return uint32(s >> 32) }

// AddAll returns the sum with b appended, in pieces of PieceBytes and a last shorter one.
// Nothing may be added after a shorter piece.
func (s Sum) AddAll(b []byte) Sum {
	for len(b) > PieceBytes {
		s, b = s.Add(b[:PieceBytes]), b[PieceBytes:]
	}
	if len(b) > 0 {
		s = s.Add(b)
	}
	return s
}

// Of returns the sum of bytes; without bytes it is 0.
func Of(b []byte) Sum { return Sum(0).AddAll(b) }

// A Stream sums bytes that arrive little by little. The result is that of Of.
type Stream struct {
	sum   Sum
	carry []byte // copy of an incomplete piece whose buffer was given up
}

// Reset starts a new sum.
func (s *Stream) Reset() { s.sum, s.carry = 0, s.carry[:0] }

// Arrived adds the whole pieces in the first have bytes of b, which have arrived. It returns
// the rest of b that is not summed yet, and how many of its bytes have arrived. The caller
// passes the rest to Arrived again when more has arrived, or to Leave.
func (s *Stream) Arrived(b []byte, have int) (rest []byte, left int) {
	for have >= PieceBytes-len(s.carry) {
		k := PieceBytes - len(s.carry)
		if len(s.carry) > 0 {
			s.carry = append(s.carry, b[:k]...)
			s.sum, s.carry = s.sum.Add(s.carry), s.carry[:0]
		} else {
			s.sum = s.sum.Add(b[:k])
		}
		b, have = b[k:], have-k
	}
	return b, have
}

// Leave keeps a copy of the bytes that Arrived returned, if their buffer is given up.
func (s *Stream) Leave(b []byte) { s.carry = append(s.carry, b...) }

// End returns the sum of all bytes. rest are the bytes that Arrived returned last.
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
