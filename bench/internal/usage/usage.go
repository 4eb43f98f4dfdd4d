// Package usage tells how much processor time this process has used and how much
// memory it has held at most. Benchmarks run what they measure in child processes
// where the figures are to be of that alone.
package usage

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// PeakRSS returns the most bytes that were resident in this process at one time.
// It is read from Linux' /proc and is an error elsewhere. What getrusage says is
// of no use for children: it counts the parent's memory from before the exec.
func PeakRSS() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	return parsePeak(string(text))
}

// parsePeak finds the line "VmHWM:   123456 kB".
func parsePeak(status string) (int64, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "VmHWM:")
		if !ok {
			continue
		}
		kib, ok := strings.CutSuffix(strings.TrimSpace(value), " kB")
		if !ok {
			return 0, fmt.Errorf("/proc/self/status: VmHWM is %q, want kB", strings.TrimSpace(value))
		}
		n, err := strconv.ParseInt(strings.TrimSpace(kib), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/self/status: VmHWM: %w", err)
		}
		return n << 10, nil
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
