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

// flagged returns whether the mapping that contains address has the given flag (marked). known
// is false if the system does not show the flags of mappings.
func flagged(t *testing.T, address uintptr, flag string) (marked, known bool) {
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
			return strings.Contains(flags+" ", " "+flag+" "), true
		}
	}
	return false, false
}

// TestLargeBuffersAreMarked requires that the system shows the request as a flag of the memory
// until Close withdraws it, and that Close does not change the memory.
func TestLargeBuffersAreMarked(t *testing.T) {
	if _, ok := theSystem(); !ok {
		t.Skip("this system gives huge pages to everybody or to nobody")
	}
	mem := NewAllocator()
	var all [][]byte
	for _, n := range []int{Least, 1 << 20, 5 * pageSize} {
		b := mem.Allocate(n)
		for _, at := range []int{0, n / 2, n - 1} {
			marked, known := flagged(t, uintptr(unsafe.Pointer(&b[at])), "hg")
			if !known {
				t.Skip("this system does not tell how memory is marked")
			}
			require.True(t, marked, "the mapping of byte %d of %d must have the flag", at, n)
		}
		b[0] = 1
		all = append(all, b)
	}
	mem.Close()
	for _, b := range all {
		marked, _ := flagged(t, uintptr(unsafe.Pointer(&b[0])), "hg")
		require.False(t, marked)
		require.Equal(t, byte(1), b[0])
	}
}

func TestWhoIsToBeAsked(t *testing.T) {
	const asking = "always [madvise] never\n"
	require.True(t, wanted(asking, ""))
	require.True(t, wanted(asking, "gctrace=1,disablethp=0"))
	require.False(t, wanted(asking, "gctrace=1,disablethp=1"))
	require.False(t, wanted("[always] madvise never\n", ""))
	require.False(t, wanted("always madvise [never]\n", ""))
	require.False(t, wanted("", ""))
}
