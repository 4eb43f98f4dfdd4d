// Package disk has the temporary files of a run: the file system, and file formats that detect
// bytes that have changed since they were written.
//
//	fs := disk.OS()                               // or that of a test
//	f, err := fs.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
//	blocks := disk.NewBlocks(f)                   // places and checksums in memory
//	_, err = blocks.Write(data)
//	place := blocks.End()
//	err = blocks.Flush()
//	data, err = disk.ReadBlock(f, place, scratch) // verified
//
// There are three formats. They differ in what memory holds of the written data:
//
//   - Blocks: memory holds the place, the length and the checksum of every block, where damage
//     of the file cannot reach them.
//   - Frames: a stream of blocks that is read from its start to its end. Memory holds the
//     place, the length and the number of frames of the stream. Every frame has a head with its
//     own checksum, which covers the file's name and the place in it, so that a frame at a
//     wrong place is noticed.
//   - Spool: bytes that are read at any offset. Memory holds the checksum of every piece.
//
// All of them return a *DamagedError if the bytes read are not those that were written. It is
// never io.EOF, so an early end of a file is never taken for the end of the data.
//
// Checksums are CRC-32C (Castagnoli), which processors compute faster than memory
// delivers. They find every burst of up to 32 bits, and miss other damage once in
// four thousand million times.
package disk
