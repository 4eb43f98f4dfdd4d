//go:build race

package execute

// raceEnabled says whether the race detector runs.
const raceEnabled = true
