//go:build linux && !race

package kills

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// workers returns the PIDs of all worker processes of the cluster. These are the processes that
// run an executable in the work directory of a task manager, whoever their parent is.
func (c *cluster) workers() []int { return running(c.dir) }

// workersOf returns the PIDs of the workers of one task manager.
func (c *cluster) workersOf(n *node) []int { return running(filepath.Join(c.dir, n.name)) }

// running returns the PIDs of the processes whose executable lies below a directory.
func running(dir string) (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range found {
		path, err := os.Readlink(link) // fails for a process that has ended
		if err != nil || !strings.HasPrefix(path, dir+string(filepath.Separator)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
