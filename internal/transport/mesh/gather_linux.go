package mesh

import (
	"syscall"
	"unsafe"
)

// gathered are the pieces of a write, as the kernel takes them.
type gathered [2]syscall.Iovec

// writeBoth writes two pieces behind each other in one call, so that the receiver is
// woken once and finds all of it.
func (g *gathered) writeBoth(fd uintptr, head, tail []byte) (int, error) {
	pieces := 0
	for _, p := range [...][]byte{head, tail} {
		if len(p) > 0 {
			g[pieces].Base = &p[0]
			g[pieces].SetLen(len(p))
			pieces++
		}
	}
	// It does not wait: the socket is in non-blocking mode.
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&g[0])), uintptr(pieces))
	*g = gathered{}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
