package hugepage

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

var linux = system{
	advise: func(page, n uintptr) bool { return madvise(page, n, unix.MADV_HUGEPAGE) },
	forget: func(page, n uintptr) bool { return madvise(page, n, unix.MADV_NOHUGEPAGE) },
}

// madvise gives advice. It returns false for the one error with which the system refuses all
// advice. Other errors mean a lack of memory, or that a part of the range is not mapped; the
// rest of the range is done.
func madvise(page, n uintptr, advice int) bool {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, page<<pageShift, n<<pageShift, uintptr(advice))
	return errno != unix.EINVAL
}

// theSystem returns the calls of this system; ok is false if they should not be used.
var theSystem = sync.OnceValues(func() (system, bool) {
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return linux, err == nil && wanted(string(mode), os.Getenv("GODEBUG"))
})

// wanted reports whether the system gives huge pages only on request, and the user has not
// disabled them in Go.
func wanted(mode, debug string) bool {
	for setting := range strings.SplitSeq(debug, ",") {
		if value, ok := strings.CutPrefix(setting, "disablethp="); ok && value != "0" {
			return false
		}
	}
	return strings.Contains(mode, "[madvise]")
}
