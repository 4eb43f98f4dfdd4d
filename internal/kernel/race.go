//go:build race

package kernel

// raceDetector tells whether the race detector is compiled in.
const raceDetector = true
