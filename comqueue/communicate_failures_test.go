package comqueue_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
)

// TestMisuseOfCommunicateFunctions requires that misuses that depend neither on data nor on
// parallelism are reported when the job is built, with the user's line that adds the stage.
func TestMisuseOfCommunicateFunctions(t *testing.T) {
	buffer, other := shared.Scratch[[]float64]("buffer"), shared.Scratch[[]float64]("other")
	model := shared.Replicated("model", shared.Float64s())
	object, parts := shared.Replicated("object", shared.String()), shared.PerShard("parts", shared.String())
	scratch := shared.Scratch[string]("scratch")
	vectors := shared.PerShard("vectors", shared.Msgpack[comqueue.SparseVector[float64]]())
	mine := comqueue.Operator("mine", 0, func(dst, src []float64) {})
	each := comqueue.ForEachShard(buffer, func(*comqueue.ComContext, int, []float64) error { return nil })
	integers := shared.Scratch[[]int64]("buffer")
	for name, c := range map[string]struct {
		stages []comqueue.Stage
		want   string
	}{
		"unknown algorithm":         {[]comqueue.Stage{comqueue.AllReduce(buffer, comqueue.Algorithm("rings"))}, `AllReduce("buffer"): no algorithm "rings" for allreduce (did you mean ring?): there are direct, linear,`},
		"empty algorithm":           {[]comqueue.Stage{comqueue.AllReduce(buffer, comqueue.Algorithm(""))}, `no algorithm ""`},
		"no dimension":              {[]comqueue.Stage{comqueue.AllReduce(buffer, comqueue.Algorithm("torus:2x"))}, `algorithm "torus:2x": "" is no dimension`},
		"dimensions for a ring":     {[]comqueue.Stage{comqueue.AllReduce(buffer, comqueue.Algorithm("ring:4"))}, `algorithm "ring:4": ring allreduce takes no dimensions`},
		"dimensions for direct":     {[]comqueue.Stage{comqueue.AllReduce(buffer, comqueue.Algorithm("direct:4"))}, `algorithm "direct:4": direct allreduce takes no dimensions`},
		"three dimensions":          {[]comqueue.Stage{comqueue.AllReduce(buffer, comqueue.Algorithm("torus:2x2x2"))}, `AllReduce("buffer"): algorithm "torus:2x2x2": torus allreduce: 3 dimensions`},
		"two dimensions":            {[]comqueue.Stage{comqueue.AllReduce(buffer, comqueue.Algorithm("hierarchical:2x4"))}, `algorithm "hierarchical:2x4": hierarchical allreduce: dimensions [2 4]: want one`},
		"more than all":             {[]comqueue.Stage{comqueue.AllReduce(buffer, comqueue.Algorithm("blueconnect:4294967296x4294967296"))}, `the dimensions are those of more than 1048576 subtasks`},
		"order not kept":            {[]comqueue.Stage{comqueue.AllReduce(buffer, mine, comqueue.Algorithm("ring"))}, `AllReduce("buffer"): ring allreduce does not keep the order of subtasks, and operator "mine" may not commute: make it with CommutativeOperator`},
		"order not kept, scattered": {[]comqueue.Stage{comqueue.ReduceScatter(buffer, other, mine, comqueue.Algorithm("ring"))}, `ReduceScatter("buffer", "other"): ring reduce-scatter does not keep the order`},
		"algorithm of another":      {[]comqueue.Stage{comqueue.ReduceScatter(buffer, other, comqueue.Algorithm("torus"))}, `no algorithm "torus" for reduce-scatter`},
		"broadcast algorithm":       {[]comqueue.Stage{comqueue.Broadcast(buffer, comqueue.Algorithm("ring"))}, `Broadcast("buffer"): no algorithm "ring" for broadcast`},
		"nil option":                {[]comqueue.Stage{comqueue.Broadcast(buffer, nil)}, `Broadcast("buffer"): an option is nil`},
		"nil reduce option":         {[]comqueue.Stage{comqueue.ReduceScatter(buffer, other, nil)}, `ReduceScatter: an option is nil`},
		"negative root":             {[]comqueue.Stage{comqueue.Broadcast(buffer, comqueue.Root(-1))}, `Broadcast("buffer"): the root is subtask -1`},
		"root of all-gather":        {[]comqueue.Stage{comqueue.AllGather(buffer, other, comqueue.Root(0))}, `AllGather("buffer", "other"): Root is given, but every subtask gets the result`},
		"one key":                   {[]comqueue.Stage{comqueue.AllGather(buffer, buffer)}, `AllGather("buffer", "buffer"): the result would overwrite what it is made of`},
		"gather everywhere":         {[]comqueue.Stage{comqueue.Gather(buffer, model)}, `Gather("buffer", "model"): the result is not the same on every subtask, so that the key "model" cannot be replicated`},
		"scatter everywhere":        {[]comqueue.Stage{comqueue.ReduceScatter(buffer, model)}, `ReduceScatter("buffer", "model"): the result is not the same on every subtask`},
		"unmade key":                {[]comqueue.Stage{comqueue.AllGather(buffer, shared.Key[[]float64]{})}, `the key was not made by Replicated, PerShard or Scratch`},
		"unmade key of a broadcast": {[]comqueue.Stage{comqueue.Broadcast(shared.Key[[]float64]{})}, `the key was not made by`},
		"unmade sparse key":         {[]comqueue.Stage{comqueue.AllReduceShardSparse(shared.ShardKey[comqueue.SparseVector[float64]]{}, shared.Scratch[comqueue.SparseVector[float64]]("sum"))}, `the key was not made by`},
		"operator of another type":  {[]comqueue.Stage{comqueue.ReduceScatter(integers, shared.Scratch[[]int64]("b"), mine)}, `ReduceScatter("buffer", "b"): operator "mine" is not one for int64`},
		"scratch object":            {[]comqueue.Stage{comqueue.AllReduceObject(scratch, joined)}, `AllReduceObject("scratch"): a scratch key has no codec to carry its objects: make the key with shared.Replicated`},
		"scratch object broadcast":  {[]comqueue.Stage{comqueue.BroadcastObject(scratch)}, `BroadcastObject("scratch"): a scratch key has no codec`},
		"no merge":                  {[]comqueue.Stage{comqueue.AllReduceObject(object, nil)}, `AllReduceObject("object"): the function that merges is nil`},
		"no merge of shards":        {[]comqueue.Stage{comqueue.AllReduceShardObjects(parts, object, nil)}, `AllReduceShardObjects("parts", "object"): the function that merges is nil`},
		"one name":                  {[]comqueue.Stage{comqueue.AllReduceShardObjects(parts, shared.Replicated("parts", shared.String()), joined)}, `needs a key of its own`},
		"one name for vectors":      {[]comqueue.Stage{comqueue.AllReduceShardSparse(vectors, shared.Scratch[comqueue.SparseVector[float64]]("vectors"))}, `AllReduceShardSparse("vectors", "vectors"): the result would overwrite`},
		"forest of another type":    {[]comqueue.Stage{each, comqueue.ReduceScatter(integers, shared.Scratch[[]int64]("b"))}, `the key "buffer" is used with two types: ForEachShard has []float64, ReduceScatter []int64`},
		"forest in another loop":    {[]comqueue.Stage{each, comqueue.Repeat(2, nil, comqueue.ReduceScatter(buffer, other))}, `ForEachShard("buffer") and its ReduceScatter are not in the same loop`},
		"forest gathered":           {[]comqueue.Stage{each, comqueue.AllGather(buffer, other)}, `ForEachShard("buffer") is followed by no AllReduce or ReduceScatter of that buffer`},
		"within a repeat":           {[]comqueue.Stage{comqueue.Repeat(2, nil, comqueue.Broadcast(buffer, comqueue.Root(-3)))}, `Repeat: Broadcast("buffer"): the root is subtask -3`},
		"a name":                    {[]comqueue.Stage{comqueue.Named("mine", comqueue.Barrier())}, `Named("mine"): only compute functions and ForEachShard take a name`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := supersteps(t, 3, 2, c.stages...)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "communicate_test.go:") // where supersteps calls Add
		})
	}
}

// TestFailuresOfCommunicateFunctions requires that misuses that depend on parallelism are
// reported before the first superstep, and misuses that depend on data by the stage, and that
// no subtask hangs.
func TestFailuresOfCommunicateFunctions(t *testing.T) {
	buffer, other := shared.Scratch[[]float64]("buffer"), shared.Scratch[[]float64]("other")
	object := shared.Replicated("object", shared.String())
	vectors := shared.PerShard("vectors", shared.Msgpack[comqueue.SparseVector[float64]]())
	sum := shared.Scratch[comqueue.SparseVector[float64]]("sum")
	var ran atomic.Bool
	fill := do(func(ctx *comqueue.ComContext) {
		ran.Store(true)
		buffer.Put(ctx, make([]float64, 4+ctx.TaskID()/2))
		object.Put(ctx, "x")
	})
	bad := func(v comqueue.SparseVector[float64]) comqueue.Stage {
		return do(func(ctx *comqueue.ComContext) {
			if ctx.Shards().Contains(9) {
				vectors.Put(ctx, 8, comqueue.SparseVector[float64]{Length: 3, Index: []int32{}})
				vectors.Put(ctx, 9, v)
			}
		})
	}
	for name, c := range map[string]struct {
		before bool // fails before the first superstep
		stages []comqueue.Stage
		want   []string
	}{
		"root":            {true, []comqueue.Stage{comqueue.Broadcast(buffer, comqueue.Root(3))}, []string{`Broadcast("buffer"): the root is subtask 3, and there are 3`}},
		"gather root":     {true, []comqueue.Stage{comqueue.Gather(buffer, other, comqueue.Root(7))}, []string{`Gather("buffer", "other"): the root is subtask 7, and there are 3`}},
		"object root":     {true, []comqueue.Stage{comqueue.BroadcastObject(object, comqueue.Root(7))}, []string{`BroadcastObject("object"): the root is subtask 7`}},
		"torus":           {true, []comqueue.Stage{comqueue.AllReduce(buffer, comqueue.Algorithm("torus:2x4"))}, []string{`AllReduce("buffer"): torus allreduce: `, "3 ranks"}},
		"power of two":    {true, []comqueue.Stage{comqueue.AllGather(buffer, other, comqueue.Algorithm("recursive-doubling"))}, []string{`AllGather("buffer", "other"): recursive-doubling allgather: 3 ranks are not a power of two`}},
		"never put":       {false, []comqueue.Stage{comqueue.AllGather(other, buffer)}, []string{`get of scratch key "other" ([]float64) in session "q", subtask `, "never put"}},
		"root without":    {false, []comqueue.Stage{comqueue.Broadcast(other)}, []string{`get of scratch key "other" ([]float64) in session "q", subtask 0: never put`, "Broadcast"}},
		"unequal lengths": {false, []comqueue.Stage{comqueue.ReduceScatter(buffer, other)}, []string{`ranks disagree: rank `, `ReduceScatter "buffer" #1 (4 float64, sum)`, `ReduceScatter "buffer" #1 (5 float64, sum)`}},
		"negative shard":  {false, []comqueue.Stage{bad(comqueue.SparseVector[float64]{Length: -2}), comqueue.AllReduceShardSparse(vectors, sum)}, []string{`sparse vectors "vectors": one of -2 elements`, "shard 9"}},
		"unequal vectors": {false, []comqueue.Stage{do(func(ctx *comqueue.ComContext) {
			vectors.Put(ctx, ctx.Shards().Lo, comqueue.SparseVector[float64]{Length: 4 + ctx.TaskID()/2, Index: []int32{}})
		}), comqueue.AllReduceShardSparse(vectors, sum)}, []string{`sparse vectors "vectors": subtask 2 has one of 5 elements, and subtask 0 one of 4`}},
		"unequal shards":     {false, []comqueue.Stage{bad(comqueue.SparseVector[float64]{Length: 4, Index: []int32{}}), comqueue.AllReduceShardSparse(vectors, sum)}, []string{`sparse vectors "vectors": one of 4 elements, and of a shard before it one of 3`, "shard 9"}},
		"indices":            {false, []comqueue.Stage{bad(comqueue.SparseVector[float64]{Length: 3, Index: []int32{2, 1}, Value: []float64{1, 1}}), comqueue.AllReduceShardSparse(vectors, sum)}, []string{`sparse vectors "vectors": index 1 at place 1 of a vector of 3 elements`, "shard 9"}},
		"not to be encoded":  {false, []comqueue.Stage{do(func(ctx *comqueue.ComContext) { object.Put(ctx, "\xff") }), comqueue.AllReduceObject(object, joined)}, []string{`AllReduce of objects "object": shared: encode string`}},
		"not to be sent":     {false, []comqueue.Stage{do(func(ctx *comqueue.ComContext) { object.Put(ctx, "\xff") }), comqueue.BroadcastObject(object)}, []string{`object "object": shared: encode string`}},
		"merge panics":       {false, []comqueue.Stage{comqueue.AllReduceObject(object, func(_, _ string) string { panic("apart") })}, []string{"AllReduceObject", "apart"}},
		"another collective": {false, []comqueue.Stage{comqueue.Do(func(ctx *comqueue.ComContext) error { return nil }), comqueue.AllReduce(buffer, comqueue.Algorithm("halving-doubling"))}, []string{`ranks disagree`, ` float64, sum, whole buffers, by halving-doubling)`}},
	} {
		t.Run(name, func(t *testing.T) {
			ran.Store(false)
			_, err := supersteps(t, 3, 2, append([]comqueue.Stage{fill}, c.stages...)...)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.Equal(t, !c.before, ran.Load())
		})
	}
	_, err := supersteps(t, 8, 1, fill, comqueue.AllReduce(vectorBuffer, comqueue.Algorithm("torus:2x4")))
	require.ErrorContains(t, err, "never put", "with eight subtasks, a torus of 2x4 is no misuse")
}

var vectorBuffer = shared.Scratch[[]float64]("elsewhere")
