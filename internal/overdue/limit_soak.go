//go:build soak

package overdue

import "time"

const limit = time.Hour
