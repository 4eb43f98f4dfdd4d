// Package shared has the objects that the stages of an iterative queue share, and the
// arithmetic of shards, trees and random draws that makes results independent of parallelism.
// It imports nothing else of this module.
//
// # Objects
//
// A stage reaches its objects through typed keys, made once:
//
//	var centroids = shared.Replicated("centroids", shared.Float64s())
//
//	func update(ctx Context) error {      // a Context is a shared.Holder
//		c := centroids.Get(ctx)       // []float64
//		...
//		centroids.Put(ctx, next)
//		return nil
//	}
//
// The kind of a key says what checkpoints and rescaling do with the object: [Replicated]
// objects are the same on every subtask, [PerShard] objects move with their shard, [Scratch]
// objects are made anew. An object lives at (session, name, subtask): a [Store] has a [Session]
// for each queue of a job, each subtask has its own [Objects], which take no lock, and closing
// the session ends all of them, however the run ended. [Session.Regroup] replaces the subtasks
// by others. [Objects.Fingerprints] tell whether the replicated objects of two subtasks really
// are the same.
//
// Get panics with an [*AccessError] if there is no object. The caller of the stage recovers it
// and makes it the error of the subtask.
//
// # Arithmetic
//
// Data is cut into shards 0..S-1, S a power of two. Subtask i of p works on the shards
// [Split](S, p, i). Values are folded up the aligned binary tree over the shards, whose nodes
// are [Node]s, so that floating-point sums have the same bits for every p:
//
//	folder := shared.NewFolder(shared.Split(shards, p, i), merge, recycle)
//	for each own shard that has a value, in order {
//		folder.Push(shard, value)
//	}
//	send(folder.Forest())
//	...
//	total, ok, err := shared.MergeForests(shards, forestsOfAllSubtasks, merge)
//
// A shard without a value is absent, not zero. [FoldSchedule] is the order of the same merges
// as data. Values that belong to subtasks rather than shards are folded in the tree over ranks
// of [RankSchedule]; their result depends on p.
//
// A [Random] is a sequence of draws that is a function of (seed, purpose, shard, step, index)
// alone.
package shared
