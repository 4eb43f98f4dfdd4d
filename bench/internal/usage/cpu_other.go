//go:build !unix

package usage

import (
	"os"
	"time"
)

// CPU returns 0, because it is not implemented for this system.
func CPU() time.Duration { return 0 }

func peakOf(*os.ProcessState) int64 { return 0 }
