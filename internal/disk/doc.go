// Package disk is used for the temporary files of a run. It has an interface to file systems,
// and three file formats that detect bytes that have changed since they were written.
//
//	fs := disk.OS()                               // or the file system of a test
//	f, err := fs.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
//	blocks := disk.NewBlocks(f)                   // keeps positions and checksums in memory
//	_, err = blocks.Write(data)
//	place := blocks.End()
//	err = blocks.Flush()
//	data, err = disk.ReadBlock(f, place, scratch) // verified
//
// The formats differ in what they keep in memory to verify the data:
//
//   - Blocks: the offset, the length and the checksum of every block are in memory.
//   - Frames: a stream of blocks, each in a frame, is read from its start to its end. The offset,
//     the length, the number of frames and the number of rows of the stream are in memory. Every
//     frame has a head with a checksum, which covers the file's name and the frame's offset too,
//     so that a frame at a wrong offset is detected.
//   - Spool: the bytes can be read at any offset. The checksum of every piece of 64 KiB is in
//     memory.
//
// All three return a *DamagedError if the bytes read are not the bytes written. The error never
// matches io.EOF, so a truncated file is not taken for the end of the data.
//
// Checksums are CRC-32C (Castagnoli), which processors compute faster than they read memory. A
// checksum detects every burst error of up to 32 bits, and misses other damage with probability
// 2^-32.
package disk
