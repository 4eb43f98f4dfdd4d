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

// madvise gives advice. Of the system's errors only one says that it takes none: others are
// for want of memory, or of a mapping at an end of the range, the rest of which is done.
func madvise(page, n uintptr, advice int) bool {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, page<<pageShift, n<<pageShift, uintptr(advice))
	return errno != unix.EINVAL
}

// theSystem returns whom to ask; ok is false where nobody is to be asked.
var theSystem = sync.OnceValues(func() (system, bool) {
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return linux, err == nil && wanted(string(mode), os.Getenv("GODEBUG"))
})

// wanted says that the system gives huge pages to those who ask, and to nobody else, and that
// the user has not told Go to do without.
func wanted(mode, debug string) bool {
	for setting := range strings.SplitSeq(debug, ",") {
		if value, ok := strings.CutPrefix(setting, "disablethp="); ok && value != "0" {
			return false
		}
	}
	return strings.Contains(mode, "[madvise]")
}
