//go:build !soak

package overdue

import "time"

const limit = 3 * time.Minute
