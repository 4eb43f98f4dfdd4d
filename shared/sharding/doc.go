// Package sharding makes results independent of parallelism. It provides shards of data, the
// tree in which the values of shards are folded, and random draws. It imports no other package
// of this module.
//
// Data is divided into shards 0..S-1, where S is a power of two. Subtask i of p works on the
// shards [Split](S, p, i). Values are folded up the aligned binary tree over the shards, whose
// nodes are [Node]s, so that floating-point sums have the same bits for every p:
//
//	folder := sharding.NewFolder(sharding.Split(shards, p, i), merge, recycle)
//	for each own shard that has a value, in order {
//		folder.Push(shard, value)
//	}
//	send(folder.Forest())
//	...
//	total, ok, err := sharding.MergeForests(shards, forestsOfAllSubtasks, merge)
//
// A shard without a value is left out of the fold; it does not count as zero. [FoldSchedule]
// returns the same merges, in the same order, as a list of steps. Values that belong to
// subtasks rather than shards are folded in the tree over ranks of [RankSchedule]; the result
// of such a fold depends on p.
//
// A [Random] is a sequence of random draws, each of which is a function of (seed, purpose,
// shard, step, index) alone.
package sharding
