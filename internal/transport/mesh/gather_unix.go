//go:build unix && !linux

package mesh

import "syscall"

// gathered is empty, because writeBoth writes two buffers in one system call only on Linux.
type gathered struct{}

// writeBoth writes head, or tail if head is empty.
func (*gathered) writeBoth(fd uintptr, head, tail []byte) (int, error) {
	if len(head) == 0 {
		head = tail
	}
	return syscall.Write(int(fd), head)
}
