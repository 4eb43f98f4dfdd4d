//go:build !unix

package usage

import "time"

// CPU returns 0: this system is not asked.
func CPU() time.Duration { return 0 }
