//go:build race

package taskmanager

const raceEnabled = true
