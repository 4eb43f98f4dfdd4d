// Package mapped gives batches memory that is the contents of a file, for rows that are read
// again and again and are more than memory holds.
//
//	rows, region, err := mapped.Hold(fs, dir, size, func(mem memory.Allocator) (arrow.Record, error) {
//		return batch.Concat(mem, batches)
//	})
//	...
//	err = region.Verify() // when all passes over the rows are made
//	rows.Release()        // the file is gone with the last reference
//
// The rows are used like any others: what of them is in memory is the system's page cache to
// decide, which counts in no budget, is given up when others need it, and is read again from
// the file. So a pass over rows that fit in the cache runs at the speed of memory, and at that
// of the disk where they do not.
//
// # Integrity
//
// Every mapping has a CRC-32C. That of blocks is taken before a file has them. That of rows is
// taken from the file: whoever made them compares them with what they were made of. Verify
// compares it, and is called before what was made of the rows is believed: what the disk has
// damaged stays damaged, so that once after the last pass is as good as before each, and takes
// the time of one pass. A page that the disk does not give
// back is a fault, which runtime/debug.SetPanicOnFault makes a panic of the goroutine, and of
// Verify an error. Nobody else can change or cut off the file, as it has no name any more
// once it is mapped, which also leaves nothing behind where the process is killed.
package mapped
