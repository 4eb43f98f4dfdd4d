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

// madvise calls madvise for n huge pages, the first of which has the number page. It returns
// false after EINVAL, with which a system without huge pages refuses all such advice. Other
// errors mean a lack of memory, or that a part of the range is not mapped. In the latter case
// Linux still applies the advice to the rest of the range.
func madvise(page, n uintptr, advice int) bool {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, page<<pageShift, n<<pageShift, uintptr(advice))
	return errno != unix.EINVAL
}

// theSystem returns the system calls of this system. The second result is false if they should not
// be used.
var theSystem = sync.OnceValues(func() (system, bool) {
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return linux, err == nil && wanted(string(mode), os.Getenv("GODEBUG"))
})

// wanted reports whether mode says that the system gives huge pages only on request, and debug, the
// value of GODEBUG, does not disable huge pages.
func wanted(mode, debug string) bool {
	for setting := range strings.SplitSeq(debug, ",") {
		if value, ok := strings.CutPrefix(setting, "disablethp="); ok && value != "0" {
			return false
		}
	}
	return strings.Contains(mode, "[madvise]")
}
