package comqueue_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// joined returns a text that shows how values were merged.
func joined(left, right string) string { return "(" + left + " " + right + ")" }

// upTheTree folds the values under a node of the aligned tree recursively: it joins the results
// of the two halves if both have a value.
func upTheTree[V any](lo, hi int, of func(shard int) (V, bool), join func(a, b V) V) (v V, ok bool) {
	if hi == lo+1 {
		return of(lo)
	}
	left, hasLeft := upTheTree(lo, (lo+hi)/2, of, join)
	right, hasRight := upTheTree((lo+hi)/2, hi, of, join)
	switch {
	case hasLeft && hasRight:
		return join(left, right), true
	case hasLeft:
		return left, true
	}
	return right, hasRight
}

func TestObjectsMergeInTheFoldTreeOverSubtasks(t *testing.T) {
	key := shared.Replicated("object", shared.String())
	has := map[string]func(r, step int) bool{
		"all":  func(int, int) bool { return true },
		"none": func(int, int) bool { return false },
		"some": func(r, step int) bool { return (r+step)%3 == 0 },
	}
	for name, has := range has {
		for _, p := range parallelisms {
			_, err := supersteps(t, p, 4,
				do(func(ctx *comqueue.ComContext) {
					key.Remove(ctx)
					if has(ctx.TaskID(), ctx.StepNo()) {
						key.Put(ctx, fmt.Sprint(ctx.TaskID()))
					}
				}),
				comqueue.AllReduceObject(key, joined),
				comqueue.Do(func(ctx *comqueue.ComContext) error {
					// A subtask without a value is an absent leaf of the tree.
					brought, any := make([]string, p), false
					for r := range p {
						if has(r, ctx.StepNo()) {
							brought[r], any = fmt.Sprint(r), true
						}
					}
					want := sharding.FoldRanks(brought, func(left, right string) string {
						if left == "" || right == "" {
							return left + right
						}
						return joined(left, right)
					})
					if got, ok := key.Lookup(ctx); got != want || ok != any {
						return fmt.Errorf("got %q, %t, want %q", got, ok, want)
					}
					return nil
				}))
			require.NoError(t, err, "%s, parallelism %d", name, p)
		}
	}
}

func TestObjectsOfShardsMergeUpTheTree(t *testing.T) {
	from, into := shared.PerShard("from", shared.String()), shared.Replicated("into", shared.String())
	of := func(step int) func(shard int) (string, bool) {
		return func(shard int) (string, bool) {
			return fmt.Sprint(shard), step == 1 || step == 2 && shard%5 == 3 || step == 3 && shard == 11
		}
	}
	for _, p := range append(parallelisms, 16) {
		_, err := supersteps(t, p, 4, // in the last superstep, no shard has an object
			do(func(ctx *comqueue.ComContext) {
				for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
					from.Remove(ctx, shard)
					if v, ok := of(ctx.StepNo())(shard); ok {
						from.Put(ctx, shard, v)
					}
				}
			}),
			comqueue.AllReduceShardObjects(from, into, joined),
			comqueue.Do(func(ctx *comqueue.ComContext) error {
				want, has := upTheTree(0, 16, of(ctx.StepNo()), joined)
				if !has {
					want = ""
				}
				if got, ok := into.Lookup(ctx); got != want || ok != has {
					return fmt.Errorf("step %d: got %q, %t, want %q", ctx.StepNo(), got, ok, want)
				}
				for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
					if _, ok := of(ctx.StepNo())(shard); ok && from.Get(ctx, shard) != fmt.Sprint(shard) {
						return fmt.Errorf("shard %d has %q", shard, from.Get(ctx, shard))
					}
				}
				return nil
			}))
		require.NoError(t, err, "parallelism %d", p)
	}
}

// counts adds the counts of right to left, and returns left.
func counts(left, right map[string]int) map[string]int {
	for word, n := range right {
		left[word] += n
	}
	return left
}

// TestMergedObjectsAreCopies requires that a merge function may change both of its operands
// without a change of the objects of shards or of other subtasks' results.
func TestMergedObjectsAreCopies(t *testing.T) {
	codec := shared.Msgpack[map[string]int]()
	from, into := shared.PerShard("from", codec), shared.Replicated("into", codec)
	whole := shared.Replicated("whole", codec)
	for _, p := range parallelisms {
		_, err := supersteps(t, p, 3,
			do(func(ctx *comqueue.ComContext) {
				for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
					if ctx.StepNo() == 1 {
						from.Put(ctx, shard, map[string]int{"all": 1, fmt.Sprint(shard % 3): shard})
					}
				}
				whole.Put(ctx, map[string]int{"subtasks": 1})
			}),
			comqueue.AllReduceShardObjects(from, into, counts),
			comqueue.AllReduceObject(whole, counts),
			comqueue.Do(func(ctx *comqueue.ComContext) error {
				want := map[string]int{"all": 16, "0": 45, "1": 35, "2": 40}
				if got := into.Get(ctx); !maps.Equal(want, got) {
					return fmt.Errorf("got %v, want %v", got, want)
				}
				if got := whole.Get(ctx)["subtasks"]; got != p {
					return fmt.Errorf("%d subtasks", got)
				}
				into.Get(ctx)["all"] = -ctx.TaskID() // changes only the subtask's own copy
				return nil
			}),
			do(func(ctx *comqueue.ComContext) { into.Get(ctx)["all"] = 0 })) // so that the check finds equal replicas
		require.NoError(t, err, "parallelism %d", p)
	}
}

func TestBroadcastObject(t *testing.T) {
	key := shared.Replicated("model", shared.Msgpack[map[string]int]())
	for _, p := range parallelisms {
		for _, by := range []string{"", "binomial"} {
			options := []comqueue.MoveOption{comqueue.Root(p - 1)}
			if by != "" {
				options = append(options, comqueue.Algorithm(by))
			}
			_, err := supersteps(t, p, 3,
				do(func(ctx *comqueue.ComContext) {
					if ctx.TaskID() == p-1 {
						key.Put(ctx, map[string]int{strings.Repeat("x", 10-ctx.StepNo()): ctx.StepNo()})
					}
				}),
				comqueue.BroadcastObject(key, options...),
				comqueue.Do(func(ctx *comqueue.ComContext) error {
					want := map[string]int{strings.Repeat("x", 10-ctx.StepNo()): ctx.StepNo()}
					if got := key.Get(ctx); !maps.Equal(want, got) {
						return fmt.Errorf("got %v, want %v", got, want)
					}
					return nil
				}))
			require.NoError(t, err)
		}
	}
}

// released counts released objects.
type released struct{ n *atomic.Int64 }

func (r *released) Release() { r.n.Add(1) }

type releasedCodec struct{ n *atomic.Int64 }

func (releasedCodec) Append(dst []byte, _ *released) ([]byte, error) { return append(dst, 1), nil }
func (c releasedCodec) Decode([]byte) (*released, error)             { return &released{c.n}, nil }

func TestReplacedObjectsAreReleased(t *testing.T) {
	var n atomic.Int64
	key := shared.Replicated("held", shared.Codec[*released](releasedCodec{&n}))
	_, err := supersteps(t, 3, 4,
		do(func(ctx *comqueue.ComContext) {
			if ctx.StepNo() == 1 {
				key.Put(ctx, &released{&n})
			}
		}),
		comqueue.AllReduceObject(key, func(left, _ *released) *released { return left }))
	require.NoError(t, err)
	require.Equal(t, int64(runs(3)*(3*4+3)), n.Load(), "an object must be released in each superstep, and the last one when the queue ends")
}

// vector makes a sparse vector from the elements of x that are not zero, or a dense one.
func vector(x []float64, dense bool) comqueue.SparseVector[float64] {
	if dense {
		return comqueue.SparseVector[float64]{Length: len(x), Value: slices.Clone(x)}
	}
	v := comqueue.SparseVector[float64]{Length: len(x), Index: []int32{}}
	for i, e := range x {
		if e != 0 || math.Signbit(e) && i%2 == 0 { // and some negative zeros
			v.Index, v.Value = append(v.Index, int32(i)), append(v.Value, e)
		}
	}
	return v
}

// expand returns all elements of a sparse vector.
func expand(v comqueue.SparseVector[float64]) []float64 {
	if v.Index == nil {
		return v.Value
	}
	x := make([]float64, v.Length)
	for i, at := range v.Index {
		x[at] = v.Value[i]
	}
	return x
}

// sparseValues returns n elements; about one in `every` is not zero.
func sparseValues(seed, n, every int) []float64 {
	x := make([]float64, n)
	for i := range x {
		if (i*7919+seed*104729)%every == 0 {
			if x[i] = odd(seed*31 + i); math.IsInf(x[i], 0) && seed%2 == 0 {
				x[i] = -x[i] // so that infinities of both signs are added, which gives NaN
			}
		}
	}
	return x
}

// plus adds dense vectors by the definition of AllReduceShardSparse: absent elements and −0
// count as +0, and all NaNs are replaced by the same NaN.
func plus(a, b []float64) []float64 {
	s := make([]float64, len(a))
	for i := range s {
		s[i] = normal(normal(a[i]) + normal(b[i]))
	}
	return s
}

func normal(x float64) float64 {
	if x == 0 {
		return 0
	}
	if x != x {
		return math.NaN()
	}
	return x
}

func TestSparseSumsAreThoseOfDenseVectors(t *testing.T) {
	codec := shared.Msgpack[comqueue.SparseVector[float64]]()
	from, into := shared.PerShard("from", codec), shared.Replicated("into", codec)
	for _, n := range []int{0, 1, 300} {
		for _, every := range []int{1, 3, 40, 100000} {
			for _, p := range parallelisms {
				_, err := supersteps(t, p, 2,
					do(func(ctx *comqueue.ComContext) {
						for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
							if shard%3 > 0 {
								from.Put(ctx, shard, vector(sparseValues(shard+ctx.StepNo(), n, every), shard%4 == 1))
							}
						}
					}),
					comqueue.AllReduceShardSparse(from, into),
					comqueue.Do(func(ctx *comqueue.ComContext) error {
						want, _ := upTheTree(0, 16, func(shard int) ([]float64, bool) {
							return plus(sparseValues(shard+ctx.StepNo(), n, every), make([]float64, n)), shard%3 > 0
						}, plus)
						if got := into.Get(ctx); got.Length != n || !slices.Equal(bits(want), bits(expand(got))) {
							return fmt.Errorf("shards: got %v, want %v", got, want)
						}
						return nil
					}))
				require.NoError(t, err, "%d elements, one in %d, parallelism %d", n, every, p)
			}
		}
	}
}

func TestSparseSumsWithoutVectors(t *testing.T) {
	codec := shared.Msgpack[comqueue.SparseVector[float32]]()
	from, into := shared.PerShard("from", codec), shared.Replicated("into", codec)
	one := comqueue.SparseVector[float32]{Length: 9, Index: []int32{4}, Value: []float32{2.5}}
	for _, p := range parallelisms {
		_, err := supersteps(t, p, 3,
			do(func(ctx *comqueue.ComContext) { // in superstep 2, one shard has a vector
				from.Remove(ctx, ctx.Shards().Lo)
				if ctx.StepNo() == 2 && ctx.TaskID() == p/2 {
					from.Put(ctx, ctx.Shards().Lo, one)
				}
			}),
			comqueue.AllReduceShardSparse(from, into),
			comqueue.Do(func(ctx *comqueue.ComContext) error {
				v, ok := into.Lookup(ctx)
				if ok != (ctx.StepNo() == 2) || ok && (v.Length != 9 || !slices.Equal(v.Index, one.Index) || !slices.Equal(v.Value, one.Value)) {
					return fmt.Errorf("superstep %d: the sum is %v, %t", ctx.StepNo(), v, ok)
				}
				return nil
			}))
		require.NoError(t, err, "parallelism %d", p)
	}
}
