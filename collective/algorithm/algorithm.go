package algorithm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/spelling"
	"github.com/superstep-ml/superstep/shared"
)

// Params is what a program is generated from. It is the same on all ranks.
type Params struct {
	P    int // number of ranks, at least 1
	Root int // of a rooted collective; ignored by others

	// Dims are the factors that an algorithm arranges the ranks in: group size,
	// torus width and height, radices. Their meaning is the algorithm's; nil lets it
	// choose.
	Dims []int

	// Forest gives the nodes of the aligned tree over shards that each rank brings,
	// disjoint, in ascending order of shards. Nil stands for one whole buffer a rank.
	Forest [][]shared.Node
}

// ForestSupport says which inputs an algorithm takes.
type ForestSupport uint8

// The kinds of input.
const (
	WholeOnly  ForestSupport = iota // whole buffers
	OnePerRank                      // also forests of exactly one node a rank, in rank order, whose tree is the fold tree over ranks
	AnyForest                       // any forest
)

// Algorithm generates the programs of one way to carry out one collective.
type Algorithm struct {
	Name       string
	Collective program.Collective
	Summary    string // one line for people who choose

	// Canonical and RankOrder say for which numbers of ranks the programs make the
	// claims of these names; nil stands for none. See program.Program.
	Canonical func(p int) bool
	RankOrder func(p int) bool

	Forests ForestSupport

	// TakesDims says that Params.Dims mean something; for others they are an error.
	TakesDims bool

	// EvenOnly says that the chunks must be of even lengths (program.Even), so that
	// the algorithm cannot serve a collective with counts.
	EvenOnly bool

	// Check returns why the algorithm cannot serve the parameters, or nil; nil
	// stands for one that always can. What is common to all (P, Root, a forest that
	// the algorithm does not take) is checked before.
	Check func(Params) error

	// Generate makes one rank's part, in time proportional to its own steps. It is
	// called with parameters that Supports.
	Generate func(pr Params, rank int) *program.Program

	// Cost declares what the programs cost.
	Cost func(Params) program.Cost
}

// Always is true of every number of ranks.
func Always(int) bool { return true }

// Supports returns why an algorithm cannot serve the parameters, or nil.
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

// FoldsLikeRanks says whether each rank brings one node and the aligned tree over
// the nodes is the fold tree over the ranks, so that a program for whole buffers
// serves as it is.
func FoldsLikeRanks(forest [][]shared.Node) bool {
	nodes := make([]shared.Node, len(forest))
	for r, f := range forest {
		if len(f) != 1 {
			return false
		}
		nodes[r] = f[0]
	}
	aligned, err := shared.FoldSchedule(nodes, nil)
	if err != nil {
		return false
	}
	known := map[[2]int]int{} // equal trees have equal numbers
	tree := func(steps []shared.FoldStep) int {
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
	return tree(aligned) == tree(shared.RankSchedule(len(nodes), nil))
}

// For lists the algorithms of a collective, the one that serves everything first.
func For(c program.Collective) []*Algorithm {
	if c >= program.NumCollectives {
		return nil
	}
	return slices.Clone(registry()[c])
}

// Find returns the algorithm of a name.
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
