package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// altered returns a copy of the direct algorithm for AllReduce that applies change to each
// program.
func altered(t *testing.T, change func(p *program.Program)) *algorithm.Algorithm {
	t.Helper()
	a, err := algorithm.Find(program.AllReduce, "direct")
	require.NoError(t, err)
	b := *a
	b.Generate = func(pr algorithm.Params, rank int) *program.Program {
		p := a.Generate(pr, rank)
		change(p)
		return p
	}
	return &b
}

// TestFalseClaimsAreFound requires an error if the claims of an algorithm and of its programs
// differ, and if a claim of a program is false.
func TestFalseClaimsAreFound(t *testing.T) {
	pr := algorithm.Params{P: 5}
	same := func(*program.Program) {}
	require.NoError(t, check.Algorithm(altered(t, same), pr))

	a := altered(t, same)
	a.Canonical = nil
	require.ErrorContains(t, check.Algorithm(a, pr), "direct allreduce, p=5: rank 0: the program claims the canonical tree: true, the algorithm for 5 ranks: false")
	a = altered(t, same)
	a.RankOrder = func(p int) bool { return p < 5 }
	require.ErrorContains(t, check.Algorithm(a, pr), "the program claims rank order: true, the algorithm for 5 ranks: false")
	require.NoError(t, check.Algorithm(a, algorithm.Params{P: 4}))
	a = altered(t, func(p *program.Program) { p.CanonicalTree = false })
	require.ErrorContains(t, check.Algorithm(a, pr), "the program claims the canonical tree: false, the algorithm for 5 ranks: true")

	chain := func(p *program.Program) {
		for i := range p.Lanes[0].Steps {
			in := &p.Lanes[0].Steps[i]
			for k := range in.Fold {
				in.Fold[k] = sharding.FoldStep{Left: 0, Right: k + 1}
			}
		}
	}
	require.NoError(t, check.Algorithm(altered(t, chain), algorithm.Params{P: 3}), "the claim must hold for three ranks, for which the chain is the canonical tree")
	require.ErrorContains(t, check.Algorithm(altered(t, chain), pr),
		"out[0] is ((((0[0] 1[0]) 2[0]) 3[0]) 4[0]), which is not the canonical tree (((0[0] 1[0]) 2[0]) (3[0] 4[0]))")
	backwards := func(p *program.Program) {
		chain(p)
		p.CanonicalTree = false
		for i := range p.Lanes[0].Steps {
			if in := &p.Lanes[0].Steps[i]; len(in.Src) > 1 {
				in.Src[0], in.Src[1] = in.Src[1], in.Src[0]
			}
		}
	}
	a = altered(t, backwards)
	a.Canonical = nil
	require.ErrorContains(t, check.Algorithm(a, pr), "which does not keep the order of ranks")
}

func TestUnderclaims(t *testing.T) {
	modest := altered(t, func(p *program.Program) { p.CanonicalTree, p.RankOrder = false, false })
	modest.Canonical, modest.RankOrder = nil, nil
	canonical, rankOrder, err := check.Underclaims(modest, 9)
	require.NoError(t, err)
	require.True(t, canonical)
	require.True(t, rankOrder)

	modest.Cost = func(algorithm.Params) program.Cost { return program.Cost{Steps: 2} }
	_, _, err = check.Underclaims(modest, 9)
	require.ErrorContains(t, err, "declared are 2")

	mover, err := algorithm.Find(program.AllGather, "ring")
	require.NoError(t, err)
	canonical, rankOrder, err = check.Underclaims(mover, 9)
	require.NoError(t, err)
	require.False(t, canonical || rankOrder, "an algorithm that folds nothing must not be reported, since it makes no claims")
}

// TestOtherProgramsThanAskedForAreFound requires an error if a generator makes no program, or a
// correct program for other parameters.
func TestOtherProgramsThanAskedForAreFound(t *testing.T) {
	pr := algorithm.Params{P: 3}
	for want, change := range map[string]func(p *program.Program){
		"generated is the part of rank 0 of 3 (root -1) of indirect allreduce": func(p *program.Program) { p.Algorithm = "indirect" },
		"generated is the part of rank 0 of 3 (root -1) of direct scan":        func(p *program.Program) { p.Collective = program.Scan },
		"generated is the part of rank 1 of 3":                                 func(p *program.Program) { p.Rank++ },
		"generated is the part of rank 0 of 3 (root 2)":                        func(p *program.Program) { p.Root = 2 },
		"takes a forest of nodes":                                              func(p *program.Program) { p.Nodes = []sharding.Node{} },
	} {
		require.ErrorContains(t, check.Algorithm(altered(t, change), pr), want)
	}
	a := altered(t, func(*program.Program) {})
	generate := a.Generate
	a.Generate = func(pr algorithm.Params, rank int) *program.Program {
		pr.Forest = nil
		return generate(pr, rank)
	}
	require.ErrorContains(t, check.Algorithm(a, algorithm.Params{P: 3, Forest: oneNodeEach(3)}), "the program takes nodes [] of the forest's [0:0]")
	a.Generate = func(algorithm.Params, int) *program.Program { return nil }
	require.ErrorContains(t, check.Algorithm(a, pr), "rank 0: no program")
	require.ErrorContains(t, check.Algorithm(a, algorithm.Params{P: 0}), "direct allreduce among 0 ranks")

	idle := altered(t, func(p *program.Program) {
		p.Scratch = append(p.Scratch, sharding.Range{Lo: 0, Hi: 1})
		p.Lanes = append(p.Lanes, program.Lane{SendPeer: program.NoPeer, RecvPeer: program.NoPeer,
			Steps: []program.Instruction{move(scratch(len(p.Scratch)-1), in0)}})
		for _, s := range [][2]int{{0, 0}, {1, 3}, {2, 3}} {
			if in := &p.Lanes[s[0]].Steps[s[1]]; in.Dst == out0 {
				in.After = append(in.After, program.Dep{Lane: len(p.Lanes) - 1, Step: 0})
			}
		}
	})
	require.ErrorContains(t, check.Algorithm(idle, pr), "nobody needs it, but rank 0 lane 3 step 0 (copy scratch2[0] = in[0]) makes scratch2[0], which nothing reads")
}
