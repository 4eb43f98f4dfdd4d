//go:build race

package collective

// raceEnabled says that the race detector runs, under which pools lose things at random.
const raceEnabled = true
