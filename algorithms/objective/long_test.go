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
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestLongParametersAreSplit trains with so many parameters that each subtask stores one block
// of them. It requires the bits of a training on one subtask: with probed margins, with an L1
// penalty, in rounds over smooth approximations, and without a penalty. A read must send to
// each subtask only the results of the other subtasks for its block, without zeros. The number
// of bytes must equal the formula in the test.
func TestLongParametersAreSplit(t *testing.T) {
	const n, most, shards = 2400, 8, 16
	record := wideRecord(n, 100_000, 60, 2)
	data := func(b *engine.Builder) *engine.Dataset { return arrowbridge.FromRecords(b, []arrow.Record{record}) }
	columns := rows.Columns{Vector: "features", Label: "label"}

	csr, ok := batch.SparseView(record.Column(0))
	require.True(t, ok)
	occur := slices.Clone(csr.Indices)
	slices.Sort(occur)
	occur = slices.Compact(occur)
	length := len(occur)
	require.Greater(t, length, 1<<16)
	block := (length + shards - 1) / shards
	var want int64
	for r := range most {
		set := make([]bool, 1+length)
		set[0] = true
		own := sharding.Range{Lo: sharding.Split(n, shards, 2*r).Lo, Hi: sharding.Split(n, shards, 2*r+1).Hi}
		for _, j := range csr.Indices[csr.Indptr[own.Lo]:csr.Indptr[own.Hi]] {
			at, _ := slices.BinarySearch(occur, j)
			set[1+at] = true
		}
		for o := range most {
			part := sharding.Range{Lo: 1 + min(2*o*block, length), Hi: 1 + min((2*o+2)*block, length)}
			if o == 0 {
				part.Lo = 0 // the first element is the loss
			}
			k := 0
			for _, s := range set[part.Lo:part.Hi] {
				if s {
					k++
				}
			}
			if o != r {
				want += wireBytes(k, part.Len())
			}
		}
	}
	for _, c := range []struct {
		loss objective.Loss
		s    optim.Settings
	}{
		{objective.Logistic{}, optim.Settings{Method: optim.LBFGS, L2: 1e-3, MaxIter: 3, Tol: -1}},
		{objective.Logistic{}, optim.Settings{Method: optim.OWLQN, L1: 1e-4, MaxIter: 4, Tol: -1}},
		{objective.Smooth{Loss: objective.Hinge{}}, optim.Settings{Method: optim.LBFGS, L2: 1e-2, GapTol: 1e-2, MaxIter: 3}},
		{objective.Logistic{}, optim.Settings{Method: optim.LBFGS, MaxIter: 4}},
	} {
		if !testsize.Soak && c.s.L1 == 0 && c.s.Tol == 0 { // tests of package optim cover these with few parameters
			continue
		}
		train := func(p int) (fitted, *engine.Result) {
			return fitOf(t, data, columns, objective.Linear{Loss: c.loss, NoIntercept: true}, c.s,
				engine.Parallelism(p), engine.Shards(shards), engine.CheckBroadcasts(false))
		}
		one, _ := train(1)
		for _, p := range []int{3, most} {
			if p == 3 && !testsize.Soak && c.s.L1 == 0 {
				continue
			}
			f, r := train(p)
			require.Equal(t, bitsOf(one.Weights), bitsOf(f.Weights), "%+v: the coefficients must have the bits of one subtask", c.s)
			f.Weights = one.Weights
			require.Equal(t, one, f)
			var sent, reduced int64
			for _, stage := range r.Queue("fit").Stages {
				if strings.HasSuffix(stage.Name, `"optim gradient"`) {
					sent += stage.Bytes
				}
				if strings.HasPrefix(stage.Name, "AllReduce") && stage.Bytes > 0 {
					reduced = max(reduced, stage.Bytes)
				}
			}
			if c.s.GapTol > 0 { // the sums of a bound are as long as the parameters
				continue
			}
			require.Less(t, reduced, int64(8*length), "no AllReduce may have the length of the parameters")
			if p == most {
				require.Equal(t, int64(f.Reads)*want, sent, "%+v: the number of bytes must equal the formula", c.s)
			}
		}
	}
}
