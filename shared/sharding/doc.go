// Package sharding has what makes results independent of parallelism: shards of data, the tree
// that folds their values, and random draws. It imports nothing else of this module.
//
// Data is cut into shards 0..S-1, S a power of two. Subtask i of p works on the shards
// [Split](S, p, i). Values are folded up the aligned binary tree over the shards, whose nodes
// are [Node]s, so that floating-point sums have the same bits for every p:
//
//	folder := sharding.NewFolder(sharding.Split(shards, p, i), merge, recycle)
//	for each own shard that has a value, in order {
//		folder.Push(shard, value)
//	}
//	send(folder.Forest())
//	...
//	total, ok, err := sharding.MergeForests(shards, forestsOfAllSubtasks, merge)
//
// A shard without a value is absent, not zero. [FoldSchedule] is the order of the same merges
// as data. Values that belong to subtasks rather than shards are folded in the tree over ranks
// of [RankSchedule]; their result depends on p.
//
// A [Random] is a sequence of draws that is a function of (seed, purpose, shard, step, index)
// alone.
package sharding
