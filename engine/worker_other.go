//go:build !unix

package engine

import (
	"fmt"
	"os"
	"runtime"
)

// inherited fails: only systems like Unix hand pipes to processes by number.
func inherited(int, string) (*os.File, error) {
	return nil, fmt.Errorf("there are no workers on %s", runtime.GOOS)
}
