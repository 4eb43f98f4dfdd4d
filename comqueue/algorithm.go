package comqueue

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Algorithm makes a communicate function use the given algorithm of package
// collective/algorithm. The name may include dimensions, if the algorithm takes any:
//
//	comqueue.AllReduce(sums, comqueue.Algorithm("ring"))
//	comqueue.AllReduce(sums, comqueue.Algorithm("torus:2x4"))
//
// Without this option, the stage chooses among the algorithms that give the same bits. A named
// algorithm may fold in another order. If that makes the result depend on the number of
// subtasks, even for a buffer that ForEachShard filled, the plan says so. A wrong name or wrong
// dimensions are errors when the job is built. It is also an error to combine an algorithm that
// never keeps the order of subtasks with an operator that does not commute. Errors that depend
// on the number of subtasks are reported before the first superstep.
func Algorithm(name string) AlgorithmOption { return AlgorithmOption{name: name} }

// AlgorithmOption is an option of the communicate functions of buffers. Barrier and the
// functions for objects and sparse vectors do not take it.
type AlgorithmOption struct{ name string }

func (a AlgorithmOption) applyReduce(c *reduceConfig) { c.by = &a }
func (a AlgorithmOption) applyMove(c *moveConfig)     { c.by = &a }

// asked returns the name in the option, or "" if a is nil.
func (a *AlgorithmOption) asked() string {
	if a == nil {
		return ""
	}
	return a.name
}

// find returns the algorithm and its dimensions, or nil for both if a is nil. It returns an
// error if the option is wrong for every number of subtasks.
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

// maxRanks is larger than the number of subtasks of any job, which is at most its number of
// shards.
const maxRanks = 1 << 20

// serves returns an error if the requested algorithm cannot run on p subtasks.
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

// needsEveryone reports whether the algorithm first folds, on each of p subtasks, the parts of
// its shards into one whole buffer, so that every subtask must contribute such a buffer.
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

// misusedBy returns why an algorithm cannot be used with an operator, or nil if it can be used
// for some number of subtasks above two. One and two subtasks do not count, as every algorithm
// keeps their order, and the job should run with any number of subtasks.
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
