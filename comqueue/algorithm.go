package comqueue

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Algorithm makes a communicate function use an algorithm of package collective/algorithm,
// given by name, with its dimensions if it takes any:
//
//	comqueue.AllReduce(sums, comqueue.Algorithm("ring"))
//	comqueue.AllReduce(sums, comqueue.Algorithm("torus:2x4"))
//
// Without it the algorithm is chosen among those that give the same bits. A named algorithm may
// fold in an order of its own. If its result then depends on the number of subtasks, also for a
// buffer that ForEachShard filled, the plan says so. A wrong name or wrong dimensions are
// errors when the job is built. So is an algorithm that never keeps the order of subtasks with
// an operator that does not commute. Errors that depend on the number of subtasks are reported
// before the first superstep.
func Algorithm(name string) AlgorithmOption { return AlgorithmOption{name: name} }

// AlgorithmOption is an option of every communicate function but Barrier and those of
// objects and sparse vectors.
type AlgorithmOption struct{ name string }

func (a AlgorithmOption) applyReduce(c *reduceConfig) { c.by = &a }
func (a AlgorithmOption) applyMove(c *moveConfig)     { c.by = &a }

// asked returns the name in the option, "" without an option.
func (a *AlgorithmOption) asked() string {
	if a == nil {
		return ""
	}
	return a.name
}

// find returns the algorithm and its dimensions, both nil without an option. The error says
// what is wrong for any number of subtasks.
func (a *AlgorithmOption) find(c program.Collective) (*algorithm.Algorithm, []int, error) {
	if a == nil {
		return nil, nil, nil
	}
	name, dims, err := algorithm.ParseName(a.name)
	if err != nil {
		return nil, nil, err
	}
	by, err := algorithm.Find(c, name)
	if err != nil {
		return nil, nil, err
	}
	if dims == nil {
		return by, nil, nil
	}
	ranks := 1
	for _, d := range dims {
		if ranks > maxRanks/d {
			return nil, nil, fmt.Errorf("algorithm %q: the dimensions are those of more than %d subtasks", a.name, maxRanks)
		}
		ranks *= d
	}
	if err := by.Supports(algorithm.Params{P: ranks, Dims: dims}); err != nil {
		return nil, nil, fmt.Errorf("algorithm %q: %w", a.name, err)
	}
	return by, dims, nil
}

// maxRanks is larger than any number of subtasks, which is at most that of shards.
const maxRanks = 1 << 20

// serves returns why the requested algorithm cannot serve p subtasks, or nil.
func (a *AlgorithmOption) serves(c program.Collective, p, root int, operator string, commutes bool) error {
	by, dims, err := a.find(c)
	if err != nil || by == nil {
		return err
	}
	if err := by.Supports(algorithm.Params{P: p, Root: root, Dims: dims}); err != nil {
		return err
	}
	if !commutes && !keepsOrder(by, p) {
		return fmt.Errorf("%s %s among %d subtasks does not keep their order, and operator %q does not commute", by.Name, c, p, operator)
	}
	return nil
}

// needsEveryone reports whether the algorithm folds the forest of each of p subtasks into one
// whole buffer first, and needs such a buffer of every subtask.
func (a *AlgorithmOption) needsEveryone(c program.Collective, p, shards int) bool {
	by, dims, err := a.find(c)
	if err != nil || by == nil {
		return false
	}
	forest := make([][]sharding.Node, p)
	for r := range forest {
		forest[r] = sharding.Cover(sharding.Split(shards, p, r))
	}
	return by.Supports(algorithm.Params{P: p, Dims: dims, Forest: forest}) != nil
}

// keepsOrder reports whether an algorithm keeps the order of p subtasks.
func keepsOrder(by *algorithm.Algorithm, p int) bool { return by.RankOrder != nil && by.RankOrder(p) }

// misusedBy returns why an algorithm cannot go with an operator, or nil if it can for some
// number of subtasks. One or two subtasks do not count, as any algorithm keeps their order: the
// job is to run with any number.
func misusedBy(by *algorithm.Algorithm, operator string, commutes bool) error {
	if by == nil || commutes {
		return nil
	}
	for p := 3; p <= 64; p++ {
		if keepsOrder(by, p) {
			return nil
		}
	}
	return fmt.Errorf("%s %s does not keep the order of subtasks, and operator %q may not commute: make it with CommutativeOperator if it does, or name another algorithm", by.Name, by.Collective, operator)
}

// inShardTree reports whether an algorithm folds any forest up the tree over shards.
func inShardTree(by *algorithm.Algorithm) bool {
	return by == nil || by.Forests == algorithm.AnyForest && by.Canonical != nil && by.Canonical(3) && by.Canonical(8)
}
