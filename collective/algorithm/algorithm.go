package algorithm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/spelling"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Params are the parameters of a generated program. All ranks have the same Params.
type Params struct {
	P    int // number of ranks, at least 1
	Root int // rank of the root in rooted collectives; other collectives ignore it

	// Dims are the dimensions in which an algorithm arranges the ranks, for example a group
	// size, the width and height of a torus, or radices. Their meaning depends on the
	// algorithm. If Dims is nil, the algorithm chooses them.
	Dims []int

	// Forest has, for each rank, the nodes of the aligned tree over shards that the rank
	// contributes, in ascending order of shards. All nodes are disjoint. Nil means one whole
	// buffer per rank.
	Forest [][]sharding.Node
}

// ForestSupport says which inputs an algorithm accepts.
type ForestSupport uint8

// The kinds of input.
const (
	WholeOnly  ForestSupport = iota // whole buffers
	OnePerRank                      // also forests with one node per rank, in rank order, whose aligned tree is the fold tree over ranks
	AnyForest                       // any forest
)

// Algorithm generates the programs of one algorithm for one collective.
type Algorithm struct {
	Name       string
	Collective program.Collective
	Summary    string // one line for users who choose an algorithm

	// Canonical and RankOrder report whether CanonicalTree and RankOrder of program.Program are
	// set in the programs for p ranks. A nil function means false for every p.
	Canonical func(p int) bool
	RankOrder func(p int) bool

	Forests ForestSupport

	// TakesDims is set if the algorithm uses Params.Dims. If it is not set, Supports returns an
	// error for non-empty Dims.
	TakesDims bool

	// EvenOnly is set if the chunks must have even lengths (program.Even). Such an algorithm
	// cannot carry out a collective with counts.
	EvenOnly bool

	// Check returns an error if the algorithm does not support the parameters. A nil Check
	// accepts all parameters. Before Supports calls Check, it checks what all algorithms have
	// in common: P, Root, Dims and the kind of forest.
	Check func(Params) error

	// Generate returns the program of one rank, in time proportional to the number of its
	// steps. It is called only with parameters that Supports accepts.
	Generate func(pr Params, rank int) *program.Program

	// Cost returns the cost of the programs.
	Cost func(Params) program.Cost
}

// Always returns true for every number of ranks. It is a value for Canonical and RankOrder.
func Always(int) bool { return true }

// Supports returns an error with the reason if the algorithm does not support the parameters.
func (a *Algorithm) Supports(pr Params) error {
	switch {
	case pr.P < 1:
		return fmt.Errorf("%s %s among %d ranks", a.Name, a.Collective, pr.P)
	case a.Collective.Rooted() && (pr.Root < 0 || pr.Root >= pr.P):
		return fmt.Errorf("%s %s with root %d among %d ranks", a.Name, a.Collective, pr.Root, pr.P)
	case len(pr.Dims) > 0 && !a.TakesDims:
		return fmt.Errorf("%s %s takes no dimensions", a.Name, a.Collective)
	case pr.Forest != nil && len(pr.Forest) != pr.P:
		return fmt.Errorf("%s %s: forests of %d ranks among %d", a.Name, a.Collective, len(pr.Forest), pr.P)
	case pr.Forest != nil && a.Forests == WholeOnly:
		return fmt.Errorf("%s %s takes one whole buffer of each rank, not a forest", a.Name, a.Collective)
	case pr.Forest != nil && a.Forests == OnePerRank && !FoldsLikeRanks(pr.Forest):
		return fmt.Errorf("%s %s takes a forest only if each rank brings one node and they fold like the ranks", a.Name, a.Collective)
	}
	if a.Check != nil {
		if err := a.Check(pr); err != nil {
			return fmt.Errorf("%s %s: %w", a.Name, a.Collective, err)
		}
	}
	return nil
}

// FoldsLikeRanks reports whether each rank contributes one node and the aligned tree over the
// nodes is the fold tree over the ranks. If so, a program for whole buffers can be used for the
// forest unchanged.
func FoldsLikeRanks(forest [][]sharding.Node) bool {
	nodes := make([]sharding.Node, len(forest))
	for r, f := range forest {
		if len(f) != 1 {
			return false
		}
		nodes[r] = f[0]
	}
	aligned, err := sharding.FoldSchedule(nodes, nil)
	if err != nil {
		return false
	}
	known := map[[2]int]int{} // equal trees have equal numbers
	tree := func(steps []sharding.FoldStep) int {
		v := make([]int, len(nodes))
		for r := range v {
			v[r] = r
		}
		for _, s := range steps {
			pair := [2]int{v[s.Left], v[s.Right]}
			id, ok := known[pair]
			if !ok {
				id = len(nodes) + len(known)
				known[pair] = id
			}
			v[s.Left] = id
		}
		return v[0]
	}
	return tree(aligned) == tree(sharding.RankSchedule(len(nodes), nil))
}

// For returns the algorithms of a collective. The first of them accepts all parameters.
func For(c program.Collective) []*Algorithm {
	if c >= program.NumCollectives {
		return nil
	}
	return slices.Clone(registry()[c])
}

// Find returns the algorithm of collective c with the given name. If there is none, it returns
// an error that lists the names of all algorithms of c.
func Find(c program.Collective, name string) (*Algorithm, error) {
	var names []string
	for _, a := range For(c) {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	meant := ""
	if near := spelling.Near(name, names); len(near) > 0 {
		meant = fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
	}
	return nil, fmt.Errorf("no algorithm %q for %s%s: there are %s", name, c, meant, strings.Join(names, ", "))
}
