//go:build race

package execute

// raceEnabled says whether the race detector watches.
const raceEnabled = true
