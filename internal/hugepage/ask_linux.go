package hugepage

import "golang.org/x/sys/unix"

// ask is the system's. Of its errors only one says that there never are huge pages: others
// are for want of memory, or of a mapping at an end of the range, the rest of which is done.
func ask(page, n uintptr) bool {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, page<<pageShift, n<<pageShift, unix.MADV_HUGEPAGE)
	return errno != unix.EINVAL
}
