// Package shared provides the objects that the stages of an iterative queue share. Package
// shared/sharding provides the shards, trees and random draws that make results independent of
// parallelism.
//
// # Objects
//
// A stage accesses its objects through typed keys, which are made once:
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
// objects are the same on every subtask, [PerShard] objects move with their shard, and
// [Scratch] objects are dropped, and the subtask makes them again. An object is identified by
// (session, name, subtask), and a per-shard object by its shard too. A [Store] has a [Session]
// for each queue of a job. In a session each subtask has its own [Objects], whose methods take
// no lock. Closing the session removes all objects, whether the run succeeded or failed.
// [Session.Regroup] replaces the subtasks when the parallelism changes. [Objects.Fingerprints]
// returns hashes that show whether the replicated objects of two subtasks really are the same.
//
// Get panics with an [*AccessError] if there is no object. The engine, which calls the stage,
// recovers the panic and makes it the error of the subtask.
package shared
