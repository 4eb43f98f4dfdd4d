//go:build !race

package collective

// raceEnabled reports whether the race detector runs. The race detector makes a sync.Pool drop
// items at random, so tests do not count allocations then.
const raceEnabled = false
