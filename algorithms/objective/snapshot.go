package objective

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/shared"
)

// The state of a shard between supersteps has three parts. The first part is the margins of its
// rows: they are sums over steps, and computing them from the parameters would not give the
// same bits. The second part is the margins of the latest steps for the rows that are probed.
// The third part, for a Smooth loss, is the current μ and the multipliers. A snapshot of this
// state has, little-endian,
//
//	1 byte                   bits: which of the vectors below are present
//	1 byte                   position of the next step in the ring of latest steps
//	8 bytes                  μ of a Smooth loss
//	8·k bytes per row        margins, where k is the number of margins of a row
//	3·8·k bytes per row      margins of the latest steps, for the rows that are probed, 4096 in all
//	8 bytes per row          multipliers
//
// A snapshot is empty before the shard was first read.

// These are the bits of the first byte of a snapshot.
const (
	hasMargins = 1 << iota
	hasMultipliers
)

const snapshotHead = 10

// appendSnapshot implements Append of optim.Snapshot.
func (e *evaluator) appendSnapshot(shard int, dst []byte) ([]byte, error) {
	s := e.at(shard)
	var has, next byte
	var vectors [][]float64
	if s.m != nil && s.probed != nil {
		has, next = has|hasMargins, byte(s.probed.next)
		vectors = append(append(vectors, s.m), s.probed.past[:]...)
	}
	if s.prox != nil {
		has |= hasMultipliers
		vectors = append(vectors, s.prox)
	}
	if has == 0 && s.mu == 0 {
		return dst, nil
	}
	out := binary.LittleEndian.AppendUint64(append(dst, has, next), math.Float64bits(s.mu))
	for _, v := range vectors {
		var err error
		if out, err = shared.Float64s().Append(out, v); err != nil {
			return dst, err
		}
	}
	return out, nil
}

// restoreSnapshot implements Restore of optim.Snapshot.
func (e *evaluator) restoreSnapshot(shard int, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	s := e.at(shard)
	if len(src) < snapshotHead || src[0]&^(hasMargins|hasMultipliers) != 0 {
		return fmt.Errorf("a snapshot of %d bytes that is not of an objective", len(src))
	}
	var vectors [][]float64
	s.mu = math.Float64frombits(binary.LittleEndian.Uint64(src[2:]))
	if src[0]&hasMargins != 0 {
		e.keep(s)
		e.choose(s)
		if s.probed.next = int(src[1]); s.probed.next >= len(s.probed.past) {
			return fmt.Errorf("a snapshot whose next step is number %d", s.probed.next)
		}
		vectors = append(append(vectors, s.m), s.probed.past[:]...)
	}
	if src[0]&hasMultipliers != 0 {
		s.prox = make([]float64, s.N)
		vectors = append(vectors, s.prox)
	}
	src = src[snapshotHead:]
	want := 0
	for _, v := range vectors {
		want += 8 * len(v)
	}
	if len(src) != want {
		return fmt.Errorf("a snapshot of other rows: it has %d bytes of numbers, and %d rows with %d margins have %d", len(src), s.N, e.k, want)
	}
	for _, v := range vectors {
		kept, err := shared.Float64s().Decode(src[:8*len(v)])
		if err != nil {
			return err
		}
		copy(v, kept)
		src = src[8*len(v):]
	}
	return nil
}
