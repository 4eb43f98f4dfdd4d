//go:build race

package collective

// raceEnabled says that the race detector runs. It makes a sync.Pool drop items at random.
const raceEnabled = true
