//go:build race

package kernel

// raceDetector says whether the race detector is compiled in.
const raceDetector = true
