//go:build linux && !race

package offheap

import "golang.org/x/sys/unix"

const canMap = true

// mapMemory maps n bytes that are zero. With large pages the first use of half a gigabyte takes
// some hundred faults instead of a hundred thousand. Without them it is only slower.
func mapMemory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	return b, nil
}

// unmapMemory fails only for memory that was not mapped.
func unmapMemory(b []byte) { _ = unix.Munmap(b) }
