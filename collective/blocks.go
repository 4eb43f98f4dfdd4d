package collective

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/shared/sharding"
	"github.com/zeebo/xxh3"
)

// A Reduction with Blocks is a ReduceScatter of forests, or of whole buffers:
//
//	in memory        each rank folds its block out of all inputs and writes it to its own
//	                 Out
//	among processes  each process sends its input to the blocks of other processes, node by
//	                 node of its forest, packed where the packed form is smaller; the process of a
//	                 rank folds the block of that rank up the tree
//
// For each node of its input, a rank sends the elements of all blocks except its own. No
// results are sent, so a ReduceScatter sends about half as many bytes as an AllReduce. No rank
// needs memory for all n elements of the result.

// length returns the number of elements of each input, and a hash of the lengths of the blocks,
// which is 0 without blocks. rank is the number of the caller's rank, and size is the number of
// ranks.
func (r *Reduction[T]) length(rank, size int) (n int, hash uint64, err error) {
	if r.Blocks == nil {
		return len(r.Out), 0, nil
	}
	switch {
	case len(r.Blocks) != size:
		return 0, 0, fmt.Errorf("ReduceScatter %q has %d blocks for %d ranks", r.Name, len(r.Blocks), size)
	case r.Algorithm != "":
		return 0, 0, fmt.Errorf("ReduceScatter %q is to be done by %s, which gives every rank the whole result: leave Algorithm or Blocks away", r.Name, r.Algorithm)
	}
	_, bytes := typeOf[T]()
	hash = uint64(size)
	var word [8]byte
	for i, l := range r.Blocks {
		if l < 0 || l > math.MaxInt/bytes-n {
			return 0, 0, fmt.Errorf("ReduceScatter %q has a block of %d elements for rank %d, after %d", r.Name, l, i, n)
		}
		binary.LittleEndian.PutUint64(word[:], uint64(l))
		hash = xxh3.HashSeed(word[:], hash)
		n += l
	}
	if len(r.Out) != r.Blocks[rank] {
		return 0, 0, fmt.Errorf("ReduceScatter %q has room for %d elements where its block has %d", r.Name, len(r.Out), r.Blocks[rank])
	}
	return n, hash | 1, nil
}

// part returns the range of elements that rank i of p ranks folds, out of n elements.
func (r *Reduction[T]) part(n, p, i int) sharding.Range {
	if r.Blocks == nil {
		return sharding.Split(n, p, i)
	}
	lo := 0
	for _, l := range r.Blocks[:i] {
		lo += l
	}
	return sharding.Range{Lo: lo, Hi: lo + r.Blocks[i]}
}
