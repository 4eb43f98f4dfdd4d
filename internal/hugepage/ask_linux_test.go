package hugepage

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// advised reports whether the mapping of an address is marked for huge pages; known is false
// where the system does not tell.
func advised(t *testing.T, address uintptr) (marked, known bool) {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return false, false
	}
	defer maps.Close()
	inside := false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			inside = from <= address && address < to
		}
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && inside {
			return strings.Contains(flags+" ", " hg "), true
		}
	}
	return false, false
}

// TestLargeBuffersAreMarked: the system keeps the advice with the memory.
func TestLargeBuffersAreMarked(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil {
		t.Skip("this kernel has no transparent huge pages")
	}
	mem := new(Allocator)
	for _, n := range []int{Least, 1 << 20, 5 * pageSize} {
		b := mem.Allocate(n)
		for _, at := range []int{0, n / 2, n - 1} {
			marked, known := advised(t, uintptr(unsafe.Pointer(&b[at])))
			if !known {
				t.Skip("the system does not tell how memory is marked")
			}
			require.True(t, marked, "byte %d of %d", at, n)
		}
		b[0] = 1
	}
	require.False(t, heap.refused.Load())
}
