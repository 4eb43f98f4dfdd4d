//go:build unix && !linux

package mesh

import "syscall"

// gathered is empty: only Linux writes two pieces at once.
type gathered struct{}

// writeBoth writes the first of two pieces that is not empty.
func (*gathered) writeBoth(fd uintptr, head, tail []byte) (int, error) {
	if len(head) == 0 {
		head = tail
	}
	return syscall.Write(int(fd), head)
}
