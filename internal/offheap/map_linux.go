//go:build linux && !race

package offheap

import "golang.org/x/sys/unix"

const canMap = true

// mapMemory maps n zeroed bytes. It requests huge pages: with them, the first use of half a gigabyte
// takes some hundred page faults in place of a hundred thousand. It ignores the error of that
// request, because without huge pages the first use is only slower.
func mapMemory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	return b, nil
}

// unmapMemory unmaps b. It ignores the error, which is possible only for memory that is not mapped.
func unmapMemory(b []byte) { _ = unix.Munmap(b) }
