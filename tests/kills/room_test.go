//go:build linux && !race

package kills

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"
)

// mounted begins the name of the file systems that tests mount. The PID of the test process
// follows.
const mounted = "superstep-kills-"

// mountSmall mounts a small file system in a directory, in which a fault can use up all room.
// It returns false where that is not allowed.
func (c *cluster) mountSmall(dir string) bool {
	unmountLeft()
	if err := syscall.Mount(fmt.Sprint(mounted, os.Getpid()), dir, "tmpfs", 0, "size=64m"); err != nil {
		c.story.tell("no file system can be mounted: %v", err)
		return false
	}
	c.t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return true
}

// unmountLeft unmounts the file systems of test processes that were killed.
func unmountLeft() {
	table, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(table)) {
		field := strings.Fields(line)
		if len(field) < 2 {
			continue
		}
		text, ours := strings.CutPrefix(field[0], mounted)
		if pid, err := strconv.Atoi(text); ours && err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = syscall.Unmount(field[1], syscall.MNT_DETACH)
		}
	}
}

// filler is the name of the file that uses up all room.
const filler = "filler"

// fill uses up all room of the file system of the store or of the outputs.
func (c *cluster) fill(k kind) (heal func()) {
	dir := c.out()
	if k == fillStore {
		dir = filepath.Dir(c.store())
	}
	switch {
	case c.small[dir]:
	case k == fillStore:
		return c.takeStore()
	default:
		c.story.tell("… there is too much room")
		return nil
	}
	path := filepath.Join(dir, filler)
	f, err := os.Create(path)
	require.NoError(c.t, err)
	for piece := make([]byte, 1<<20); len(piece) > 0; {
		if _, err := f.Write(piece); err != nil {
			piece = piece[:len(piece)/2]
		}
	}
	require.NoError(c.t, f.Close())
	return func() { require.NoError(c.t, os.Remove(path)) }
}
