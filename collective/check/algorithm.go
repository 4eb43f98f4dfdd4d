package check

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// Algorithm proves algorithm a for the parameters pr, and returns an error if a is incorrect or
// does not support pr. It makes the checks of Programs. It also checks that the programs have
// the parameters pr, that their claims equal the claims of a for pr.P ranks, that their cost
// equals the declared cost, and that they compute no unused values. If no layouts are given, it
// uses EvenLayouts and, unless the algorithm is EvenOnly, UnevenLayouts.
func Algorithm(a *algorithm.Algorithm, pr algorithm.Params, layouts ...Layouts) error {
	_, err := InspectAlgorithm(a, pr, layouts...)
	return err
}

// InspectAlgorithm makes the checks of Algorithm, and also returns a report if the algorithm is
// correct.
func InspectAlgorithm(a *algorithm.Algorithm, pr algorithm.Params, layouts ...Layouts) (*Report, error) {
	report, err := inspectAlgorithm(a, pr, layouts)
	if err != nil {
		what := fmt.Sprintf("%s %s, p=%d", a.Name, a.Collective, pr.P)
		if a.Collective.Rooted() {
			what += fmt.Sprintf(" root=%d", pr.Root)
		}
		if pr.Dims != nil {
			what += fmt.Sprintf(" dims=%v", pr.Dims)
		}
		if pr.Forest != nil {
			what += fmt.Sprintf(" forest=%v", pr.Forest)
		}
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return report, nil
}

func inspectAlgorithm(a *algorithm.Algorithm, pr algorithm.Params, layouts []Layouts) (*Report, error) {
	programs, err := Generate(a, pr)
	if err != nil {
		return nil, err
	}
	for r, p := range programs {
		if err := checkParams(a, pr, r, p); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
	}
	if layouts == nil {
		layouts = EvenLayouts(programs[0])
		if !a.EvenOnly {
			layouts = append(layouts, UnevenLayouts(programs[0])...)
		}
	}
	cost := a.Cost(pr)
	report, err := Inspect(programs, Options{Cost: &cost, Layouts: layouts})
	if err == nil && len(report.Unused) > 0 {
		return nil, fmt.Errorf("nobody needs it, but %s", report.Unused[0])
	}
	return report, err
}

// Generate returns the programs of all ranks, in rank order.
func Generate(a *algorithm.Algorithm, pr algorithm.Params) ([]*program.Program, error) {
	if err := a.Supports(pr); err != nil {
		return nil, err
	}
	programs := make([]*program.Program, pr.P)
	for r := range programs {
		programs[r] = a.Generate(pr, r)
	}
	return programs, nil
}

// checkParams returns an error unless program p of the given rank has the parameters pr, from
// which it was generated.
func checkParams(a *algorithm.Algorithm, pr algorithm.Params, rank int, p *program.Program) error {
	root := -1
	if a.Collective.Rooted() {
		root = pr.Root
	}
	claims := func(f func(int) bool) bool { return f != nil && f(pr.P) }
	switch {
	case p == nil:
		return fmt.Errorf("no program")
	case p.Collective != a.Collective || p.Algorithm != a.Name || p.P != pr.P || p.Rank != rank || p.Root != root:
		return fmt.Errorf("generated is the part of rank %d of %d (root %d) of %s %s", p.Rank, p.P, p.Root, p.Algorithm, p.Collective)
	case p.CanonicalTree != claims(a.Canonical):
		return fmt.Errorf("the program claims the canonical tree: %t, the algorithm for %d ranks: %t", p.CanonicalTree, pr.P, claims(a.Canonical))
	case p.RankOrder != claims(a.RankOrder):
		return fmt.Errorf("the program claims rank order: %t, the algorithm for %d ranks: %t", p.RankOrder, pr.P, claims(a.RankOrder))
	case pr.Forest == nil && p.Nodes != nil:
		return fmt.Errorf("the program takes a forest of nodes %v where whole buffers were asked for", p.Nodes)
	case pr.Forest != nil && (p.Nodes == nil || !slices.Equal(p.Nodes, pr.Forest[rank])):
		return fmt.Errorf("the program takes nodes %v of the forest's %v", p.Nodes, pr.Forest[rank])
	}
	return nil
}

// Underclaims reports whether an algorithm could claim the canonical tree, or rank order, for
// all numbers of ranks, but claims it for no number of ranks. It could claim a property if the
// property holds for every number of ranks up to p that the algorithm supports. If a property
// holds only for some numbers of ranks, by chance, the algorithm need not claim it.
func Underclaims(a *algorithm.Algorithm, p int) (canonical, rankOrder bool, err error) {
	if !a.Collective.Reduces() {
		return false, false, nil
	}
	canonical, rankOrder = a.Canonical == nil, a.RankOrder == nil
	for n := 1; n <= p; n++ {
		pr := algorithm.Params{P: n, Root: n / 2}
		if a.Supports(pr) != nil {
			continue
		}
		report, err := InspectAlgorithm(a, pr)
		if err != nil {
			return false, false, err
		}
		canonical = canonical && report.Canonical
		rankOrder = rankOrder && report.RankOrder
	}
	return canonical, rankOrder, nil
}
