// Package disk is where bytes go that a run writes and reads back: the files
// themselves, and forms of them that notice when what is read is not what was
// written.
//
//	fs := disk.OS()                               // or that of a test
//	f, err := fs.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
//	blocks := disk.NewBlocks(f)                   // places and checksums in memory
//	_, err = blocks.Write(data)
//	place := blocks.End()
//	err = blocks.Flush()
//	data, err = disk.ReadBlock(f, place, scratch) // verified
//
// There are three forms, by who knows what was written:
//
//   - Blocks: whoever reads a block has its place, its length and its checksum in
//     memory. Damage of the file cannot reach them.
//   - Frames: a stream of blocks that is read from its start to its end, of which
//     memory holds the place, the length and the number of frames. Every frame has
//     a head with a checksum of its own, which covers the file's name and the place
//     in it, so that a frame that stands elsewhere than where it was written is
//     noticed.
//   - Spool: bytes that are read anywhere, with the checksum of every piece in
//     memory.
//
// All of them say *DamagedError where what is read is not what was written. It is
// never io.EOF: a file that ends early does not pass for the end of anything.
//
// Checksums are CRC-32C (Castagnoli), which processors compute faster than memory
// delivers. They find every burst of up to 32 bits, and miss other damage once in
// four thousand million times.
package disk
