//go:build unix

package operators

import (
	"io/fs"
	"syscall"
)

// fileID returns the inode number, which no other file of the file system has at the same time,
// or 0 if it is unknown.
func fileID(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
