package objective_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// wireBytes returns the size in bytes of a message with n elements, of which the given number
// set are nonzero. A message has one of three encodings, whichever is shortest: all elements,
// or the nonzero elements with their indices, or the nonzero elements with a mask of one bit
// per element. Sizes are multiples of 8 bytes.
func wireBytes(set, n int) int64 {
	if set == 0 {
		return 0
	}
	places, mask := (4*set+7)/8*8, ((n+31)/32*4+7)/8*8
	return int64(min(min(places, mask)+8*set, 8*n))
}

// TestGradientsTravelWithoutZeros trains with very many features, of which the rows of each
// subtask have few. Loss and gradient must be sent without their zeros, and the number of bytes
// must equal wireBytes. The parameters must have the same bits as after a training on one
// subtask, which sends nothing.
func TestGradientsTravelWithoutZeros(t *testing.T) {
	const p, entries = 8, 9
	const n = 3200
	record := wideRecord(n, 40_000, entries, 2)
	data := func(b *engine.Builder) *engine.Dataset { return arrowbridge.FromRecords(b, []arrow.Record{record}) }
	columns := rows.Columns{Vector: "features", Label: "label"}

	// Each subtask contributes the loss, the features of its rows, and the intercept.
	csr, ok := batch.SparseView(record.Column(0))
	require.True(t, ok)
	occur := slices.Clone(csr.Indices)
	slices.Sort(occur)
	occur = slices.Compact(occur)
	length := len(occur) + 2
	all := make([]bool, length)
	var want, whole int64
	for r := range p {
		set := make([]bool, length)
		set[0], set[length-1] = true, true
		own := sharding.Split(n, p, r) // there are as many shards as subtasks
		for _, j := range csr.Indices[csr.Indptr[own.Lo]:csr.Indptr[own.Hi]] {
			at, _ := slices.BinarySearch(occur, j)
			set[1+at] = true
		}
		for o := range p {
			part := sharding.Split(length, p, o)
			k := 0
			for i := part.Lo; i < part.Hi; i++ {
				all[i] = all[i] || set[i]
				if set[i] {
					k++
				}
			}
			if o != r {
				want += wireBytes(k, part.Len())
				whole += int64(8 * part.Len())
			}
		}
	}
	require.NotContains(t, all, false)
	require.Greater(t, length, 20_000)
	results := int64((p - 1) * 8 * length) // without zeros

	for _, s := range []optim.Settings{
		{Method: optim.LBFGS, L2: 1e-3, MaxIter: 3, Tol: -1},
		{Method: optim.OWLQN, L1: 1e-4, MaxIter: 2, Tol: -1},
	} {
		train := func(p int) (fitted, *engine.Result) {
			return fitOf(t, data, columns, objective.Linear{Loss: objective.Logistic{}}, s,
				engine.Parallelism(p), engine.Shards(8), engine.CheckBroadcasts(false))
		}
		one, _ := train(1)
		two, _ := train(2)
		f, r := train(p)
		for _, other := range []fitted{two, f} {
			require.Equal(t, bitsOf(one.Weights), bitsOf(other.Weights), "%v: the coefficients must have the bits of one subtask", s.Method)
			require.Equal(t, one.Loss, other.Loss)
		}
		sent := map[string]int64{}
		for _, stage := range r.Queue("fit").Stages {
			if strings.HasSuffix(stage.Name, `"optim gradient"`) {
				sent[strings.Fields(stage.Name)[0]] += stage.Bytes
				if stage.Bytes > 0 {
					require.Contains(t, stage.Program, "without zeros")
				}
			}
		}
		reads := int64(f.Reads)
		require.Equal(t, reads*want, sent["AllReduceSum"]+sent["AllReduceSend"], "%v: the number of bytes must equal the formula; sent were %v", s.Method, sent)
		require.Equal(t, reads*results, sent["AllReduceRecv"])
		require.Less(t, 4*want, whole)
	}
}
