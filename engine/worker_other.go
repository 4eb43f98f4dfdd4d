//go:build !unix

package engine

import (
	"fmt"
	"os"
	"runtime"
)

// inherited returns an error, as only Unix-like systems pass pipes to processes by file descriptor.
func inherited(int, string) (*os.File, error) {
	return nil, fmt.Errorf("there are no workers on %s", runtime.GOOS)
}
