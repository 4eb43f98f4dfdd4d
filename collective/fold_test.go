package collective

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// randomFold returns steps that join m neighbouring slots in random order. want is the value of
// the tree of these steps over the leaves in leaf, computed with the operator chain.
func randomFold(r *rand.Rand, m int, leaf []int64) (steps []sharding.FoldStep, want int64) {
	alive := make([]int, m)
	for i := range alive {
		alive[i] = i
	}
	value := append([]int64(nil), leaf...)
	for len(alive) > 1 {
		i := r.IntN(len(alive) - 1)
		// A step stores Left ∘ Right in slot Left and consumes slot Right. Either of two
		// neighbouring slots may be Left, but slot 0 is never consumed.
		left, right := alive[i], alive[i+1]
		if left != 0 && r.IntN(2) == 0 {
			left, right = right, left
			alive = append(alive[:i], alive[i+1:]...)
		} else {
			alive = append(alive[:i+1], alive[i+2:]...)
		}
		steps = append(steps, sharding.FoldStep{Left: left, Right: right})
		x := []int64{value[left]}
		chain().fold(x, []int64{value[right]})
		value[left] = x[0]
	}
	return steps, value[0]
}

func TestCompiledFoldsKeepTheTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		m := 1 + r.IntN(40)
		n := []int{1, 3, foldBlock, foldBlock + 1, 2*foldBlock + 7}[r.IntN(5)]
		leaf := make([]int64, m)
		leaves := make([][]int64, m)
		before := make([][]int64, m)
		for i := range leaf {
			leaf[i] = r.Int64()
			leaves[i] = make([]int64, n)
			for j := range leaves[i] {
				leaves[i][j] = leaf[i]
			}
			before[i] = append([]int64(nil), leaves[i]...)
		}
		steps, want := randomFold(r, m, leaf)
		plan, err := program.CompileFold(m, steps)
		require.NoError(t, err)

		// The result is written to separate memory, or to the memory of one of the leaves.
		outs := [][]int64{make([]int64, n), make([]int64, n)}
		over := r.IntN(2 * m)
		if over < m {
			outs[r.IntN(2)] = leaves[over]
		}
		f := folder[int64]{table: reducersOf[int64]()}
		op := chain()
		f.fold(plan, &op, leaves, outs, 0, n, nil)
		for _, out := range outs {
			for j := range out {
				require.Equal(t, want, out[j], "m=%d n=%d element %d, steps %v", m, n, j, steps)
			}
		}
		for i := range leaves {
			if i != over {
				require.Equal(t, before[i], leaves[i], "leaf %d must not be modified", i)
			}
		}
	}
}

func TestFoldsOfTreesNeedFewBlocks(t *testing.T) {
	for p := 1; p <= 300; p++ {
		plan, err := program.CompileFold(p, sharding.RankSchedule(p, nil))
		require.NoError(t, err)
		require.LessOrEqual(t, plan.Blocks, bits.Len(uint(p)), "p=%d", p)
	}
}

func TestStepsThatAreNoTreeAreRefused(t *testing.T) {
	for name, x := range map[string]struct {
		m     int
		steps []sharding.FoldStep
	}{
		"too few":             {3, []sharding.FoldStep{{Left: 0, Right: 1}}},
		"too many":            {2, []sharding.FoldStep{{Left: 0, Right: 1}, {Left: 0, Right: 1}}},
		"with itself":         {2, []sharding.FoldStep{{Left: 0, Right: 0}}},
		"used up":             {3, []sharding.FoldStep{{Left: 0, Right: 1}, {Left: 0, Right: 1}}},
		"used up on the left": {3, []sharding.FoldStep{{Left: 1, Right: 2}, {Left: 2, Right: 0}}},
		"not into slot 0":     {2, []sharding.FoldStep{{Left: 1, Right: 0}}},
		"out of range":        {2, []sharding.FoldStep{{Left: 0, Right: 2}}},
		"negative":            {2, []sharding.FoldStep{{Left: -1, Right: 1}}},
	} {
		_, err := program.CompileFold(x.m, x.steps)
		require.ErrorIs(t, err, program.ErrFoldShape, name)
	}
}
