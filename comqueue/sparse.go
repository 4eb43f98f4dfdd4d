package comqueue

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// SparseVector is a vector of Length elements most of which are zero: Value[i] is the element
// at Index[i], and indices ascend. If Index is nil, the vector is dense and Value has all
// elements. So a sparse vector of zeros has an Index that is empty but not nil. Use
// shared.Msgpack as the codec of keys of sparse vectors.
type SparseVector[T float64 | float32] = collective.SparseVector[T]

// AllReduceShardSparse sums the vectors that all shards have under from, up the tree over
// shards, and gives every subtask the sum under into. The sum is the same at any parallelism.
// Shards without a vector are absent from the tree. If no shard has a vector, a vector under
// into is removed. The vectors of the shards are not changed.
//
// Absent elements and −0 are replaced by +0, and all NaNs by the same NaN. So the sum has the
// same bits whether the vectors are gathered and merged or, if that moves less data, reduced as
// dense vectors. The sum is dense if that takes fewer bytes than the indices and values of its
// nonzero elements. The vectors must have the same length; otherwise the error names two shards
// or subtasks.
func AllReduceShardSparse[T float64 | float32](from shared.ShardKey[SparseVector[T]], into shared.Key[SparseVector[T]]) Stage {
	return &reduceShardSparse[T]{from: from, into: into}
}

type reduceShardSparse[T float64 | float32] struct {
	from shared.ShardKey[SparseVector[T]]
	into shared.Key[SparseVector[T]]
}

func (s *reduceShardSparse[T]) misuse() error {
	if err := distinct(s.from, s.into); err != nil {
		return fmt.Errorf("AllReduceShardSparse(%q, %q): %w", s.from.Name(), s.into.Name(), err)
	}
	return nil
}

func (s *reduceShardSparse[T]) describe(*layout, int) []engine.StageSpec {
	return []engine.StageSpec{{
		Kind: engine.StageCommunicate, Op: "AllReduceShardSparse", Name: s.from.Name(), Order: engine.ShardTree,
		Attrs: []engine.Attr{{Key: "into", Value: s.into.Name()}},
	}}
}

func (s *reduceShardSparse[T]) bind(b *body, _ int) ([]engine.Stage, error) {
	c := &b.context
	lengths := b.newLengths(s.from.Name())
	folder := sharding.NewFolder(c.Shards(), SparseVector[T].Plus, nil)
	request := collective.SparseReduction[T]{Name: s.from.Name(), Shards: c.TotalShards(), Context: c.Context()}
	return b.communicate(func() error {
		folder.Reset(c.Shards())
		length := -1
		err := c.eachShard(func(shard int) error {
			v, ok := s.from.Lookup(c, shard)
			if !ok {
				return nil
			}
			if err := checkLength(s.from.Name(), v.Length); err != nil {
				return err
			}
			if length >= 0 && v.Length != length {
				return fmt.Errorf("sparse vectors %q: one of %d elements, and of a shard before it one of %d", s.from.Name(), v.Length, length)
			}
			length = v.Length
			normal, err := v.Normal()
			if err != nil {
				return fmt.Errorf("sparse vectors %q: %w", s.from.Name(), err)
			}
			folder.Push(shard, normal)
			return nil
		})
		if err != nil {
			return err
		}
		request.Forest = folder.Forest()
		defer func() { request.Forest = nil }()
		return sumSparse(c, b.comm, lengths, length, &request, s.into)
	}, describeSparse), nil
}

// describeSparse names the algorithm and executor of sums of sparse vectors.
func describeSparse(c *communication) string {
	how := "all-gather and merge, or dense AllReduce, "
	switch c.dense {
	case 0:
		how = "all-gather and merge, "
	case c.runs:
		how = "dense AllReduce, "
	}
	return how + c.latest.String()
}

// checkLength returns an error for a negative length, as −1 means an absent vector.
func checkLength(name string, length int) error {
	if length < 0 {
		return fmt.Errorf("sparse vectors %q: one of %d elements", name, length)
	}
	return nil
}

// lengths has the buffers of the method agree.
type lengths struct {
	name    string
	options []collective.Option
	own     [1]int64
	all     []int64
}

func (b *body) newLengths(name string) *lengths {
	return &lengths{name: name, options: b.options(name, nil), all: make([]int64, b.context.NumTask())}
}

// agree returns the common length of the vectors of all subtasks, or −1 if no subtask has a
// vector. own is the length of this subtask's vector, or −1.
func (l *lengths) agree(comm *collective.Comm, own int) (int, error) {
	l.own[0] = int64(own)
	if err := collective.AllGather(comm, l.own[:], l.all, l.options...); err != nil {
		return 0, err
	}
	first := -1
	for subtask, n := range l.all {
		switch {
		case n < 0:
		case first < 0:
			first = subtask
		case n != l.all[first]:
			return 0, fmt.Errorf("sparse vectors %q: subtask %d has one of %d elements, and subtask %d one of %d", l.name, subtask, n, first, l.all[first])
		}
	}
	if first < 0 {
		return -1, nil
	}
	return int(l.all[first]), nil
}

// sumSparse sums the vectors of a request and puts the sum under into. own is the length of
// this subtask's vectors, or −1 if it has none.
func sumSparse[T float64 | float32](c *ComContext, comm *collective.Comm, l *lengths, own int, request *collective.SparseReduction[T], into shared.Key[SparseVector[T]]) error {
	length, err := l.agree(comm, own)
	if err != nil {
		return err
	}
	if length < 0 {
		into.Remove(c)
		return nil
	}
	request.Length = length
	sum, err := collective.AllReduceSparse(comm, request)
	if err != nil {
		return err
	}
	if sum == nil {
		sum = &SparseVector[T]{Length: length, Index: []int32{}, Value: []T{}}
	}
	into.Put(c, *sum)
	return nil
}
