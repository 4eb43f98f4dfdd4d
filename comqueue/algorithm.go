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

func (a AlgorithmOption) applyReduce(c *reduceConfig) { c.algorithm = &a }
func (a AlgorithmOption) applyMove(c *moveConfig)     { c.algorithm = &a }

// requestedName returns the name in the option, or "" if a is nil.
func (a *AlgorithmOption) requestedName() string {
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
	alg, err := algorithm.Find(c, name)
	if err != nil {
		return nil, nil, err
	}
	if dims == nil {
		return alg, nil, nil
	}
	ranks := 1
	for _, d := range dims {
		if ranks > maxRanks/d {
			return nil, nil, fmt.Errorf("algorithm %q: the dimensions are those of more than %d subtasks", a.name, maxRanks)
		}
		ranks *= d
	}
	if err := alg.Supports(algorithm.Params{P: ranks, Dims: dims}); err != nil {
		return nil, nil, fmt.Errorf("algorithm %q: %w", a.name, err)
	}
	return alg, dims, nil
}

// maxRanks is larger than the number of subtasks of any job, which is at most its number of
// shards.
const maxRanks = 1 << 20

// checkSupports returns an error if the requested algorithm cannot run on p subtasks.
func (a *AlgorithmOption) checkSupports(c program.Collective, p, root int, operator string, commutes bool) error {
	alg, dims, err := a.find(c)
	if err != nil || alg == nil {
		return err
	}
	if err := alg.Supports(algorithm.Params{P: p, Root: root, Dims: dims}); err != nil {
		return err
	}
	if !commutes && !keepsOrder(alg, p) {
		return fmt.Errorf("%s %s among %d subtasks does not keep their order, and operator %q does not commute", alg.Name, c, p, operator)
	}
	return nil
}

// needsEveryone reports whether the algorithm first folds, on each of p subtasks, the parts of
// its shards into one whole buffer, so that every subtask must contribute such a buffer.
func (a *AlgorithmOption) needsEveryone(c program.Collective, p, shards int) bool {
	alg, dims, err := a.find(c)
	if err != nil || alg == nil {
		return false
	}
	forest := make([][]sharding.Node, p)
	for r := range forest {
		forest[r] = sharding.Cover(sharding.Split(shards, p, r))
	}
	return alg.Supports(algorithm.Params{P: p, Dims: dims, Forest: forest}) != nil
}

// keepsOrder reports whether an algorithm keeps the order of p subtasks.
func keepsOrder(alg *algorithm.Algorithm, p int) bool {
	return alg.RankOrder != nil && alg.RankOrder(p)
}

// misuseOfAlgorithm returns why an algorithm cannot be used with an operator, or nil if it can
// be used for some number of subtasks above two. One and two subtasks do not count, as every
// algorithm keeps their order, and the job should run with any number of subtasks.
func misuseOfAlgorithm(alg *algorithm.Algorithm, operator string, commutes bool) error {
	if alg == nil || commutes {
		return nil
	}
	for p := 3; p <= 64; p++ {
		if keepsOrder(alg, p) {
			return nil
		}
	}
	return fmt.Errorf("%s %s does not keep the order of subtasks, and operator %q may not commute: make it with CommutativeOperator if it does, or name another algorithm", alg.Name, alg.Collective, operator)
}

// inShardTree reports whether an algorithm folds any forest up the tree over shards.
func inShardTree(alg *algorithm.Algorithm) bool {
	return alg == nil || alg.Forests == algorithm.AnyForest && alg.Canonical != nil && alg.Canonical(3) && alg.Canonical(8)
}
