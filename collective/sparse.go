package collective

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// SparseVector is a vector of Length elements, most of which are zero. Value[i] is the element
// at Index[i], and all other elements are zero. Index is ascending. If Index is nil, the vector
// is dense, and Value has all elements.
type SparseVector[T float64 | float32] struct {
	Length int
	Index  []int32
	Value  []T
}

// SparseReduction is one rank's part in a sum of sparse vectors. The input of a rank is one
// vector or a forest of the tree over Shards shards, as in a Reduction.
type SparseReduction[T float64 | float32] struct {
	Name   string // for errors
	Length int    // length of every vector; the same on all ranks

	Value  *SparseVector[T] // input of a rank without a forest; nil if the rank has no vector
	Forest []sharding.Entry[SparseVector[T]]
	Shards int // 0 if each rank has a single vector as input

	Context context.Context
}

// AllReduceSparse sums sparse vectors. All ranks gather the vectors and merge them. If that
// would move more data than dense vectors, dense vectors are reduced instead. Both ways give
// the same bits: an absent element and −0 count as +0, and every NaN has the same bits.
//
// Each rank gets its own copy of the result. It is dense if the dense form takes less memory
// than the sparse form, and nil if the sum is zero. So whether the result is dense depends only
// on the sum. The given vectors are only read.
func AllReduceSparse[T float64 | float32](c *Comm, r *SparseReduction[T]) (*SparseVector[T], error) {
	entries, err := r.normalised(c.Rank())
	if err != nil {
		return nil, c.failed(fmt.Errorf("sparse AllReduce %q: %w", r.Name, err))
	}
	_, size := typeOf[T]()
	o := Option{ctx: r.Context, name: r.Name}

	total, err := r.agree(c, entries, o)
	if err != nil {
		return nil, err
	}
	if gathered, reduced := total*int64(4+size), 2*int64(r.Length)*int64(size); gathered <= reduced {
		return r.gather(c, entries, o)
	}
	return r.reduceDense(c, entries)
}

// agree returns the number of stored elements of all ranks together. It returns an error if
// ranks give different lengths or numbers of shards.
func (r *SparseReduction[T]) agree(c *Comm, entries []sharding.Entry[SparseVector[T]], o Option) (int64, error) {
	stored := int64(0)
	for i := range entries {
		stored += int64(len(entries[i].Value.Value))
	}
	heads, err := gatherNumbers(c, []int64{stored, int64(r.Length), int64(r.Shards)}, o)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for rank := range c.Size() {
		head := heads[3*rank:]
		if head[1] != int64(r.Length) || head[2] != int64(r.Shards) {
			const doing = "sparse AllReduce %q of %d elements over %d shards (0 stands for whole vectors)"
			return 0, c.failed(&MismatchError{
				Rank: c.Rank(), Doing: fmt.Sprintf(doing, r.Name, r.Length, r.Shards),
				Other: rank, OtherDoing: fmt.Sprintf(doing, r.Name, head[1], head[2]),
			})
		}
		total += head[0]
	}
	return total, nil
}

// normalised checks the input of this rank and returns the input as entries whose vectors are
// in normal form.
func (r *SparseReduction[T]) normalised(rank int) ([]sharding.Entry[SparseVector[T]], error) {
	entries := r.Forest
	switch {
	case r.Length < 0 || r.Length > math.MaxInt32:
		return nil, fmt.Errorf("vectors of %d elements", r.Length)
	case r.Shards == 0 && r.Forest != nil:
		return nil, fmt.Errorf("a forest without the number of shards")
	case r.Shards != 0 && r.Value != nil:
		return nil, fmt.Errorf("both a vector and shards to bring it for")
	case r.Shards != 0:
		if err := sharding.ValidShards(r.Shards); err != nil {
			return nil, err
		}
	case r.Value != nil:
		entries = []sharding.Entry[SparseVector[T]]{{Node: sharding.Leaf(rank), Value: *r.Value}}
	}
	normal := make([]sharding.Entry[SparseVector[T]], len(entries))
	for i := range entries {
		v, err := entries[i].Value.normalise(r.Length)
		if err != nil {
			return nil, err
		}
		normal[i] = sharding.Entry[SparseVector[T]]{Node: entries[i].Node, Value: v}
	}
	return normal, nil
}

// normalise returns a copy of a vector in normal form: sparse, without zeros, and with the
// same bits for every NaN.
func (v *SparseVector[T]) normalise(length int) (SparseVector[T], error) {
	n := SparseVector[T]{Length: length, Index: []int32{}}
	if v.Length != length {
		return n, fmt.Errorf("a vector of %d elements among those of %d", v.Length, length)
	}
	if v.Index == nil && len(v.Value) != length || v.Index != nil && len(v.Index) != len(v.Value) {
		return n, fmt.Errorf("a vector of %d elements with %d indices and %d values", length, len(v.Index), len(v.Value))
	}
	for i, x := range v.Value {
		at := int32(i)
		if v.Index != nil {
			at = v.Index[i]
			if at < 0 || int(at) >= length || i > 0 && at <= v.Index[i-1] {
				return n, fmt.Errorf("index %d at place %d of a vector of %d elements: indices ascend from 0", at, i, length)
			}
		}
		if x != 0 { // true for a NaN
			n.Index = append(n.Index, at)
			n.Value = append(n.Value, kernel.OneNaNOf(x))
		}
	}
	return n, nil
}

// gather computes the sum from the vectors of all ranks, which every rank gathers and merges in
// the same order.
func (r *SparseReduction[T]) gather(c *Comm, entries []sharding.Entry[SparseVector[T]], o Option) (*SparseVector[T], error) {
	v := ObjectReduction[SparseVector[T]]{
		Name: r.Name, Codec: sparseCodec[T]{r.Length}, Merge: addSparse[T], Shards: r.Shards, Context: o.ctx,
	}
	if r.Shards > 0 {
		v.Forest = entries
	} else if len(entries) > 0 {
		v.Value = &entries[0].Value
	}
	sum, any, err := AllReduceObject(c, &v)
	if err != nil || !any {
		return nil, err
	}
	n, err := sum.normalise(r.Length) // drops elements that cancelled out
	if err != nil {
		return nil, err
	}
	return n.compact(), nil
}

// reduceDense computes the sum by an AllReduce of dense vectors.
func (r *SparseReduction[T]) reduceDense(c *Comm, entries []sharding.Entry[SparseVector[T]]) (*SparseVector[T], error) {
	req := &Reduction[T]{Name: r.Name, Op: Sum[T](), Shards: r.Shards, Out: make([]T, r.Length), Context: r.Context}
	for i := range entries {
		dense := make([]T, r.Length)
		for k, at := range entries[i].Value.Index {
			dense[at] = entries[i].Value.Value[k]
		}
		if r.Shards == 0 {
			req.Whole = dense
		} else {
			req.Forest = append(req.Forest, sharding.Entry[[]T]{Node: entries[i].Node, Value: dense})
		}
	}
	if r.Shards == 0 && req.Whole == nil {
		req.Whole = make([]T, r.Length)
	}
	if err := AllReduce(c, req); err != nil {
		return nil, err
	}
	n, err := (&SparseVector[T]{Length: r.Length, Value: req.Out}).normalise(r.Length)
	if err != nil {
		return nil, err
	}
	return n.compact(), nil
}

// compact returns the normalised vector v in the sparse or the dense form, whichever takes less
// memory. It returns nil if v is zero.
func (v *SparseVector[T]) compact() *SparseVector[T] {
	_, size := typeOf[T]()
	if len(v.Value) == 0 {
		return nil
	}
	if len(v.Value)*(4+size) <= v.Length*size {
		return v
	}
	dense := &SparseVector[T]{Length: v.Length, Value: make([]T, v.Length)}
	for k, at := range v.Index {
		dense.Value[at] = v.Value[k]
	}
	return dense
}

// addSparse returns the sum of two normalised vectors. Where both vectors have an element, the
// result has the sum of the two, which is never −0. Where only one vector has an element, it is
// copied, since adding +0 does not change it.
func addSparse[T float64 | float32](a, b SparseVector[T]) SparseVector[T] {
	n := len(a.Index) + len(b.Index)
	s := SparseVector[T]{Length: a.Length, Index: make([]int32, 0, n), Value: make([]T, 0, n)}
	i, j := 0, 0
	for i < len(a.Index) && j < len(b.Index) {
		switch x, y := a.Index[i], b.Index[j]; {
		case x < y:
			s.Index, s.Value = append(s.Index, x), append(s.Value, a.Value[i])
			i++
		case x > y:
			s.Index, s.Value = append(s.Index, y), append(s.Value, b.Value[j])
			j++
		default:
			s.Index, s.Value = append(s.Index, x), append(s.Value, kernel.OneNaNOf(a.Value[i]+b.Value[j]))
			i++
			j++
		}
	}
	s.Index, s.Value = append(s.Index, a.Index[i:]...), append(s.Value, a.Value[i:]...)
	s.Index, s.Value = append(s.Index, b.Index[j:]...), append(s.Value, b.Value[j:]...)
	return s
}

// sparseCodec encodes normalised vectors: the gaps between indices as varints, then the
// values as bits.
type sparseCodec[T float64 | float32] struct{ length int }

func (sparseCodec[T]) Append(dst []byte, v SparseVector[T]) ([]byte, error) {
	dst = binary.AppendUvarint(dst, uint64(len(v.Index)))
	next := int32(0)
	for _, at := range v.Index {
		dst = binary.AppendUvarint(dst, uint64(at-next))
		next = at + 1
	}
	return append(dst, bytesOf(v.Value)...), nil
}

func (s sparseCodec[T]) Decode(src []byte) (SparseVector[T], error) {
	v := SparseVector[T]{Length: s.length, Index: []int32{}}
	_, size := typeOf[T]()
	n, k := binary.Uvarint(src)
	if k <= 0 || n > uint64(len(src)) || n > uint64(s.length) {
		return v, fmt.Errorf("a sparse vector of %d elements in %d bytes", n, len(src))
	}
	src = src[k:]
	v.Index = make([]int32, 0, n)
	next := uint64(0)
	for range n {
		gap, k := binary.Uvarint(src)
		if k <= 0 || gap >= uint64(s.length) || next+gap >= uint64(s.length) {
			return v, fmt.Errorf("an index beyond the %d elements of a sparse vector", s.length)
		}
		v.Index = append(v.Index, int32(next+gap))
		next += gap + 1
		src = src[k:]
	}
	if len(src) != int(n)*size {
		return v, fmt.Errorf("%d bytes for the %d values of a sparse vector", len(src), n)
	}
	v.Value = make([]T, n)
	copy(bytesOf(v.Value), src)
	return v, nil
}
