//go:build soak

package collective

import "time"

const (
	loadProcesses = 20
	loadHogs      = 4
	loadTime      = 10 * time.Minute
)
