// Package mapped keeps batches in memory-mapped files, for rows that are read again and again
// and do not fit in memory.
//
//	files := mapped.NewFiles(fs, dir)
//	rows, region, err := files.Hold(size, make, compare) // make concatenates batches into mem
//	...
//	err = region.Verify() // when all passes over the rows are made
//	rows.Release()        // releasing the last reference to a file's regions frees the file
//	files.Close()
//
// The rows can be used like any other rows. The system's page cache decides which of them are in
// memory. The page cache does not count in memory budgets: the system drops its pages when memory
// is needed, and reads them from the file again later. So a pass over rows that fit in the page
// cache runs at the speed of memory, and a pass over more rows runs at the speed of the disk.
//
// # Integrity
//
// Every region has CRC-32C checksums. For bytes (HoldBytes) they are computed before the bytes are
// copied into the file. For rows (Hold) they are computed from the file, so the caller must compare
// the rows with their source. Verify checks the checksums. It must be called before a result that
// was computed from the rows is used. Damage by the disk is permanent, so one check after the last
// pass detects as much as a check before every pass, and takes only the time of one pass.
//
// Access to a page that the disk cannot read is a memory fault. runtime/debug.SetPanicOnFault turns
// the fault into a panic of the goroutine; Verify returns it as an error. The file's name is
// removed once the file is mapped, so no other program can change or truncate it, and the file does
// not outlive a process that is killed.
//
// # Files that outlive a process
//
// Files of NewNamed keep their names. Region.Layout says where the rows are in them, and Reopened maps
// them in another process, which verifies them first.
package mapped
