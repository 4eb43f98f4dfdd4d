package jobmanager

import (
	"encoding/binary"
	"errors"

	"github.com/zeebo/xxh3"
)

// Each value of the history is followed by a checksum of its bucket, its key and its bytes. The
// checksum detects changed bytes and values under a wrong key. The sum of all checksums, which
// is stored too, detects missing values.

const sealBytes = 16

var errSeal = errors.New("its checksum is wrong: it was damaged where it is kept")

// sealOf returns the checksum of a value under a key of a bucket.
func sealOf(bucket, key, value []byte) (sum [sealBytes]byte) {
	h := xxh3.New()
	var n [8]byte
	for _, part := range [][]byte{bucket, key, value} {
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return h.Sum128().Bytes()
}

// seal returns value followed by its checksum.
func seal(bucket, key, value []byte) []byte {
	sum := sealOf(bucket, key, value)
	return append(append(make([]byte, 0, len(value)+sealBytes), value...), sum[:]...)
}

// unseal checks the checksum in sealed, which seal made, and returns the value, a subslice of
// sealed.
func unseal(bucket, key, sealed []byte) ([]byte, error) {
	if len(sealed) < sealBytes {
		return nil, errSeal
	}
	value := sealed[:len(sealed)-sealBytes]
	if sum := sealOf(bucket, key, value); string(sum[:]) != string(sealed[len(value):]) {
		return nil, errSeal
	}
	return value, nil
}

// contentSum is the number of values, and the 128-bit sum of their checksums.
type contentSum struct{ count, low, high uint64 }

const contentSumBytes = 24

func (c *contentSum) add(sealed []byte, n uint64) {
	if len(sealed) < sealBytes {
		return
	}
	sum := sealed[len(sealed)-sealBytes:]
	c.count += n
	c.low += n * binary.LittleEndian.Uint64(sum)
	c.high += n * binary.LittleEndian.Uint64(sum[8:])
}

// enter adds a sealed value to the sum; leave removes it.
func (c *contentSum) enter(sealed []byte) { c.add(sealed, 1) }
func (c *contentSum) leave(sealed []byte) { c.add(sealed, ^uint64(0)) }

func (c contentSum) encode() []byte {
	b := make([]byte, 0, contentSumBytes)
	for _, n := range []uint64{c.count, c.low, c.high} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func decodeContentSum(b []byte) (c contentSum, err error) {
	if len(b) != contentSumBytes {
		return c, errSeal
	}
	return contentSum{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}, nil
}
