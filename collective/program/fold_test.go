package program_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	. "github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
	"pgregory.net/rapid"
)

// expression returns the expression over m leaves that the steps compute, as text.
func expression(m int, steps []sharding.FoldStep) string {
	v := make([]string, m)
	for i := range v {
		v[i] = fmt.Sprint(i)
	}
	for _, s := range steps {
		v[s.Left] = "(" + v[s.Left] + " " + v[s.Right] + ")"
	}
	return v[0]
}

// run returns the expression that plan p computes, as text.
func run(t require.TestingT, p *FoldPlan) string {
	if p.Leaves == 1 {
		require.Empty(t, p.Steps)
		return "0"
	}
	blocks := make([]string, p.Blocks)
	operand := func(x int) string {
		if x >= 0 {
			require.Less(t, x, p.Leaves)
			return fmt.Sprint(x)
		}
		require.NotEmpty(t, blocks[-1-x], "a block must be written before it is read")
		return blocks[-1-x]
	}
	for i, s := range p.Steps {
		value := "(" + operand(s.A) + " " + operand(s.B) + ")"
		if s.Dst == ToResult {
			require.Equal(t, len(p.Steps)-1, i, "only the last step may write the result")
			return value
		}
		blocks[-1-s.Dst] = value
	}
	require.Fail(t, "a step must write the result")
	return ""
}

// TestPlansKeepTheExpression requires that the plan of an arbitrary tree computes the same
// expression as the steps from which it was compiled.
func TestPlansKeepTheExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 40).Draw(t, "leaves")
		open := make([]int, m)
		for i := range open {
			open[i] = i
		}
		var steps []sharding.FoldStep
		for len(open) > 1 { // join any two of the remaining slots; slot 0 always remains
			a := rapid.IntRange(0, len(open)-1).Draw(t, "left")
			b := rapid.IntRange(1, len(open)-1).Draw(t, "right")
			if a == b {
				a = 0
			}
			steps = append(steps, sharding.FoldStep{Left: open[a], Right: open[b]})
			open = append(open[:b], open[b+1:]...)
		}
		plan, err := CompileFold(m, steps)
		require.NoError(t, err)
		require.Equal(t, expression(m, steps), run(t, plan))
	})
}

func TestPlansNeedFewBlocks(t *testing.T) {
	for m := 1; m <= 300; m++ {
		steps := sharding.RankSchedule(m, nil)
		plan, err := CompileFold(m, steps)
		require.NoError(t, err)
		require.Equal(t, expression(m, steps), run(t, plan))
		require.LessOrEqual(t, plan.Blocks, bits.Len(uint(m))+1, m)

		chain := make([]sharding.FoldStep, m-1)
		for k := range chain {
			chain[k] = sharding.FoldStep{Left: 0, Right: k + 1}
		}
		plan, err = CompileFold(m, chain)
		require.NoError(t, err)
		require.Equal(t, expression(m, chain), run(t, plan))
		require.LessOrEqual(t, plan.Blocks, 1, "a chain must accumulate in place")
	}
	plan, err := CompileFold(0, nil)
	require.NoError(t, err)
	require.Equal(t, &FoldPlan{}, plan)
}

func TestBrokenFoldsAreRefused(t *testing.T) {
	type steps = []sharding.FoldStep
	for want, fold := range map[string]steps{
		"1 steps for 3 operands": {{Left: 0, Right: 1}},
		"3 steps for 3 operands": {{Left: 0, Right: 1}, {Left: 0, Right: 2}, {Left: 0, Right: 2}},
		"step 1 joins 0 and 1":   {{Left: 0, Right: 1}, {Left: 0, Right: 1}},
		"step 1 joins 1 and 2":   {{Left: 0, Right: 1}, {Left: 1, Right: 2}},
		"step 0 joins 0 and 3":   {{Left: 0, Right: 3}, {Left: 0, Right: 1}},
		"step 0 joins -1 and 1":  {{Left: -1, Right: 1}, {Left: 0, Right: 2}},
		"step 0 joins 2 and 2":   {{Left: 2, Right: 2}, {Left: 0, Right: 1}},
		"slot 0 is used up":      {{Left: 1, Right: 0}, {Left: 1, Right: 2}},
	} {
		_, err := CompileFold(3, fold)
		require.ErrorIs(t, err, ErrFoldShape)
		require.ErrorContains(t, err, want)
	}
	_, err := CompileFold(0, steps{{Left: 0, Right: 1}})
	require.ErrorIs(t, err, ErrFoldShape)
}
