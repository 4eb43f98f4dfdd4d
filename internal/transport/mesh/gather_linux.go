package mesh

import (
	"syscall"
	"unsafe"
)

// gathered has the arguments of a sendmsg system call for two buffers.
type gathered struct {
	pieces [2]syscall.Iovec
	all    syscall.Msghdr
}

// writeBoth writes head and tail in one system call, so that the receiver wakes up only once,
// when both have arrived. It does not wait, even if the socket is in blocking mode.
func (g *gathered) writeBoth(fd uintptr, head, tail []byte) (int, error) {
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	n, errno := uintptr(0), syscall.Errno(0)
	if len(head) == 0 {
		head, tail = tail, nil
	}
	if len(tail) == 0 {
		n, _, errno = syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&head[0])), uintptr(len(head)), flags, 0, 0)
	} else {
		for i, p := range [...][]byte{head, tail} {
			g.pieces[i].Base = &p[0]
			g.pieces[i].SetLen(len(p))
		}
		g.all.Iov, g.all.Iovlen = &g.pieces[0], 2
		n, _, errno = syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&g.all)), flags)
		*g = gathered{}
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
