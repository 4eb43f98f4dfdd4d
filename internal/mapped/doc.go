// Package mapped keeps batches in memory-mapped files, for rows that are read again and again
// and do not fit in memory.
//
//	files := mapped.NewFiles(fs, dir)
//	rows, region, err := files.Hold(size, make, compare) // make concatenates batches into mem
//	...
//	err = region.Verify() // when all passes over the rows are made
//	rows.Release()        // the file is gone with the last reference to its regions
//	files.Close()
//
// The rows are used like any others. The system's page cache decides which of them are in
// memory: it counts in no budget, is dropped when memory is needed, and is read again from the
// file. So a pass over rows that fit in the cache runs at the speed of memory, and one over
// rows that do not at the speed of the disk.
//
// # Integrity
//
// Every mapping has a CRC-32C. For blocks it is computed before they are in the file. For rows
// it is computed from the file, so their maker compares them with their source. Verify checks
// it, and is called before a result of the rows is used. Damage by the disk is permanent, so
// one check after the last pass is as good as one before each, and takes the time of one pass.
// A page that the disk cannot read is a fault. runtime/debug.SetPanicOnFault turns it into a
// panic of the goroutine, and Verify into an error. The file has no name once it is mapped, so
// that nobody else can change or cut it, and nothing is left if the process is killed.
package mapped
