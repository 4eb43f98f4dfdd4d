// Package checkpoint stores the states of a run's queues, so that another process can continue
// the run. A Store is a directory, or a place in an S3-compatible store; see package s3store.
//
//	store, err := checkpoint.OpenDir(disk.OS(), "checkpoints")
//	journal, err := checkpoint.Open(ctx, store, run)
//	found, refused, err := journal.Load(ctx)    // what an earlier process wrote, or nil
//	written, err := journal.Write(ctx, states)  // again and again
//	err = journal.Remove(ctx)                   // after the run has succeeded
//
// A checkpoint consists of blobs with the pieces of the states and of one manifest, which has the
// names, sizes and checksums of the blobs. The manifest is written last. So a checkpoint is either
// complete or does not exist, whenever the process is killed. Checkpoints are numbered. The newest
// and the one before it are kept. If a piece of the newest is damaged or missing, the one before
// is loaded.
//
// A manifest is a line of JSON and a line with its XXH3 checksum. A blob is a piece compressed by
// Zstandard.
package checkpoint
