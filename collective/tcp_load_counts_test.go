//go:build !soak

package collective

import "time"

const (
	loadProcesses = 5
	loadHogs      = 1
	loadTime      = 2 * time.Second
)
