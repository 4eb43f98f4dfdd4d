//go:build linux && !race

package offheap

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mapped reports whether the page that contains the address at is mapped.
func mapped(at uintptr) bool {
	var in byte
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, at, uintptr(unix.Getpagesize()), uintptr(unsafe.Pointer(&in)))
	return errno != unix.ENOMEM
}

func addressOf(b *Buffer) uintptr { return uintptr(unsafe.Pointer(&b.Words()[0])) }

func TestFreedMemoryIsTheSystems(t *testing.T) {
	b, err := New(least)
	require.NoError(t, err)
	at := addressOf(b)
	require.True(t, mapped(at))
	b.Free()
	require.False(t, mapped(at))
}

func TestForgottenBuffersAreFreed(t *testing.T) {
	b, err := New(least)
	require.NoError(t, err)
	at := addressOf(b)
	runtime.GC()
	require.True(t, mapped(at), "a buffer must stay mapped while it is reachable")
	runtime.KeepAlive(b)
	b = nil
	for round := 0; mapped(at); round++ {
		require.Less(t, round, 10_000, "an unreachable buffer must be freed after a garbage collection")
		runtime.GC() // the cleanup runs some time after the collection
		runtime.Gosched()
	}
}
