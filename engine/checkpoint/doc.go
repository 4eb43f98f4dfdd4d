// Package checkpoint stores the states of a run's queues, so that another process can continue
// the run. A Store is a directory, or a place in an S3-compatible store; see package s3store.
//
//	store, err := checkpoint.OpenDir(disk.OS(), "checkpoints")
//	journal, err := checkpoint.Open(ctx, store, run)
//	found, refused, err := journal.Load(ctx, nil)         // what an earlier process wrote, or nil
//	written, leftover, err := journal.Write(ctx, states)  // again and again
//	err = journal.Remove(ctx)                             // after the run has succeeded
//
// A checkpoint consists of blobs with the pieces of the states and of one manifest, which has the
// names, sizes and checksums of the blobs. The manifest is written last. So a checkpoint is either
// complete or does not exist, whenever the process is killed. Checkpoints are numbered. The newest
// and the one before it are kept. If a piece of the newest is damaged or missing, the one before
// is loaded. If it cannot be read, which may pass, nothing is loaded.
//
// If a run has several processes, one of them has the Journal, and each of the others a PartWriter:
//
//	err = journal.Announce(ctx, key)                                       // before the others join
//	parts, err := checkpoint.Join(ctx, store, generation, process, key)    // in the others
//	found, err := checkpoint.LoadNumber(ctx, store, found.Number, needed)  // what the Journal has loaded
//	err = parts.Write(ctx, states)                                         // what this process has of the states
//
// Each process writes the pieces that it has, and then a list of them. The Journal waits for the lists
// before it writes the manifest.
//
// A manifest is a line of JSON and a line with its XXH3 checksum. A blob is a piece compressed by
// Zstandard.
package checkpoint
