//go:build linux && !race

package kills

import (
	"bytes"
	"encoding/binary"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// watcher records which names appear in a directory, by creation or by a rename. The kernel
// reports them (inotify), so that none is missed, however short the file exists.
type watcher struct {
	file *os.File
	done chan struct{}

	mu    sync.Mutex
	names []string
}

// watch begins to watch a directory. When the test ends, it stops.
func watch(t testing.TB, dir string) *watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	w := &watcher{file: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{})}
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO)
	require.NoError(t, err)
	go w.run()
	t.Cleanup(func() {
		_ = w.file.Close()
		<-w.done
	})
	return w
}

func (w *watcher) run() {
	defer close(w.done)
	buffer := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buffer)
		if err != nil {
			return
		}
		for events := buffer[:n]; len(events) >= unix.SizeofInotifyEvent; {
			length := binary.NativeEndian.Uint32(events[12:]) // after descriptor, mask and cookie
			name, rest := events[unix.SizeofInotifyEvent:][:length], events[unix.SizeofInotifyEvent+length:]
			w.mu.Lock()
			w.names = append(w.names, string(bytes.TrimRight(name, "\x00")))
			w.mu.Unlock()
			events = rest
		}
	}
}

// seen returns all names that have appeared so far, in their order. A name that appeared
// several times is there several times.
func (w *watcher) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names[:len(w.names):len(w.names)]
}

// count returns how often a name has appeared.
func (w *watcher) count(name string) (n int) {
	for _, s := range w.seen() {
		if s == name {
			n++
		}
	}
	return n
}
