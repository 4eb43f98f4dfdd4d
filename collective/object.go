package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// ObjectReduction is one rank's part in a reduction of objects. Objects are values of any type
// that a codec can encode and a function can merge. All ranks gather all values and merge them
// in the same order. So the objects should be of moderate size, such as sketches, sets of
// candidates or statistics.
//
// The input of a rank is one value, or a forest of the tree over Shards shards, as in a
// Reduction. A shard or rank without a value is left out.
type ObjectReduction[V any] struct {
	Name  string // for errors
	Codec shared.Codec[V]

	// Merge folds two values; left comes from the lower shard or rank. Merge may modify both
	// values. Its result must depend only on the two values.
	Merge func(left, right V) V

	Value  *V // input of a rank without a forest; nil if the rank has no value
	Forest []sharding.Entry[V]
	Shards int // 0 if each rank has a single value as input

	Context context.Context
}

// AllReduceObject merges the values of all ranks. Each rank gets its own copy of the result.
// The result present reports whether at least one rank had a value. The given values are only
// read.
func AllReduceObject[V any](c *Comm, r *ObjectReduction[V]) (result V, present bool, err error) {
	o := Option{ctx: r.Context, name: r.Name}
	finished := false
	defer func() {
		if !finished { // the codec or Merge panicked or called runtime.Goexit
			cause := errors.New("the goroutine ended within it")
			if v := recover(); v != nil {
				cause = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			}
			present, err = false, c.failed(fmt.Errorf("AllReduce of objects %q: %w", r.Name, cause))
		}
	}()
	result, present, err = r.reduce(c, o)
	finished = true
	return result, present, err
}

// reduce gathers the values of all ranks and merges them.
func (r *ObjectReduction[V]) reduce(c *Comm, o Option) (result V, present bool, err error) {
	payload, err := r.encode(c.Rank(), c.Size())
	if err != nil {
		return result, false, c.failed(fmt.Errorf("AllReduce of objects %q: %w", r.Name, err))
	}
	parts, err := gatherBytes(c, payload, r.Shards, o)
	if err != nil {
		return result, false, err
	}
	var entries []sharding.Entry[V]
	for rank, p := range parts {
		if entries, err = r.decode(p, entries); err != nil {
			return result, false, c.failed(fmt.Errorf("AllReduce of objects %q: what rank %d sent: %w", r.Name, rank, err))
		}
	}
	result, present, err = r.merge(entries, c.Size())
	if err != nil {
		return result, false, c.failed(fmt.Errorf("AllReduce of objects %q: %w", r.Name, err))
	}
	return result, present, nil
}

// encode returns the encoded values of a rank. Each value is preceded by its node and by its
// length in bytes. size is the number of ranks.
func (r *ObjectReduction[V]) encode(rank, size int) ([]byte, error) {
	if r.Codec == nil || r.Merge == nil {
		return nil, fmt.Errorf("there is no codec, or no function to merge with")
	}
	entries := r.Forest
	if r.Shards == 0 {
		if r.Forest != nil {
			return nil, fmt.Errorf("a forest without the number of shards")
		}
		if r.Value != nil {
			entries = []sharding.Entry[V]{{Node: rankNode(rank, size), Value: *r.Value}}
		}
	} else if err := sharding.ValidShards(r.Shards); err != nil {
		return nil, err
	} else if r.Value != nil {
		return nil, fmt.Errorf("both a value and shards to bring it for")
	}
	var payload, body []byte
	for i := range entries {
		var err error
		if body, err = r.Codec.Append(body[:0], entries[i].Value); err != nil {
			return nil, err
		}
		payload = binary.AppendUvarint(payload, uint64(entries[i].Node.Level))
		payload = binary.AppendUvarint(payload, uint64(entries[i].Node.Index))
		payload = binary.AppendUvarint(payload, uint64(len(body)))
		payload = append(payload, body...)
	}
	return payload, nil
}

// decode appends the values of a payload to dst.
func (r *ObjectReduction[V]) decode(payload []byte, dst []sharding.Entry[V]) ([]sharding.Entry[V], error) {
	for len(payload) > 0 {
		node, body, rest, err := cutEntry(payload)
		if err != nil {
			return dst, err
		}
		v, err := r.Codec.Decode(body)
		if err != nil {
			return dst, err
		}
		dst = append(dst, sharding.Entry[V]{Node: node, Value: v})
		payload = rest
	}
	return dst, nil
}

// cutEntry returns the node and the encoded value of the first entry of a payload, and the rest
// of the payload.
func cutEntry(payload []byte) (node sharding.Node, body, rest []byte, err error) {
	var field [3]uint64
	rest = payload
	for i := range field {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return node, nil, nil, fmt.Errorf("it ends within the head of an entry")
		}
		field[i], rest = v, rest[n:]
	}
	if field[0] > 62 || field[1] >= 1<<(62-field[0]) {
		return node, nil, nil, fmt.Errorf("there is no node %d:%d", field[0], field[1])
	}
	if field[2] > uint64(len(rest)) {
		return node, nil, nil, fmt.Errorf("an entry of %d bytes where %d are left", field[2], len(rest))
	}
	return sharding.Node{Level: int(field[0]), Index: int(field[1])}, rest[:field[2]], rest[field[2]:], nil
}

// merge folds the entries of all ranks up the tree over shards or the canonical tree over
// ranks. Missing leaves do not change the shape of the tree.
func (r *ObjectReduction[V]) merge(entries []sharding.Entry[V], size int) (V, bool, error) {
	shards := r.Shards
	if shards == 0 {
		shards = rankLeaves(size)
	}
	slices.SortStableFunc(entries, func(a, b sharding.Entry[V]) int { return a.Node.Range().Lo - b.Node.Range().Lo })
	return sharding.MergeForests(shards, entries, r.Merge)
}

// gatherBytes gathers the slices mine of all ranks on every rank. It returns them in rank
// order. It returns an error if the ranks give different numbers of shards.
func gatherBytes(c *Comm, mine []byte, shards int, o Option) ([][]byte, error) {
	if c.group.net != nil {
		return gatherRemotely(c, mine, shards, o)
	}
	heads := make([]int64, 2*c.Size())
	if err := AllGather(c, []int64{int64(len(mine)), int64(shards)}, heads, o); err != nil {
		return nil, err
	}
	counts := make([]int, c.Size())
	total := 0
	for r := range counts {
		n := heads[2*r]
		if other := heads[2*r+1]; other != int64(shards) {
			mine := header{kind: callObjects, name: o.name, shards: shards}
			theirs := mine
			theirs.shards = int(other)
			return nil, c.failed(&MismatchError{Rank: c.Rank(), Doing: mine.describe(), Other: r, OtherDoing: theirs.describe()})
		}
		if n < 0 || n > maxGathered || total+int(n) > maxGathered {
			return nil, c.failed(fmt.Errorf("ranks bring more than %d MiB to %q in all", maxGathered>>20, o.name))
		}
		counts[r] = int(n)
		total += counts[r]
	}
	all := make([]byte, total)
	if err := AllGatherV(c, mine, all, counts, o); err != nil {
		return nil, err
	}
	parts := make([][]byte, len(counts))
	for r, n := range counts {
		parts[r], all = all[:n:n], all[n:]
	}
	return parts, nil
}

// maxGathered bounds the bytes of all ranks together in a gathering of objects.
const maxGathered = 1 << 30

// gatherNumbers gathers the slices mine of all ranks on every rank. It returns them
// concatenated in rank order. mine has the same length on all ranks.
func gatherNumbers(c *Comm, mine []int64, o Option) ([]int64, error) {
	all := make([]int64, len(mine)*c.Size())
	if c.group.net == nil {
		return all, AllGather(c, mine, all, o)
	}
	parts, err := gatherRemotely(c, bytesOf(mine), 0, o)
	if err != nil {
		return nil, err
	}
	for r, p := range parts {
		if len(p) != len(bytesOf(mine)) {
			return nil, c.failed(fmt.Errorf("rank %d brings %d bytes to %q where %d are expected", r, len(p), o.name, len(bytesOf(mine))))
		}
		copy(bytesOf(all[r*len(mine):][:len(mine)]), p)
	}
	return all, nil
}
