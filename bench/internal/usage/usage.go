// Package usage tells how much processor time this process, or a child that has ended, has used
// and how much memory it has held at most. Benchmarks run what they measure in child processes
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
// It is read from Linux' /proc and is an error elsewhere.
func PeakRSS() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	return parsePeak(string(text))
}

// PeakOf returns the most bytes that were resident at one time in a child that has ended; 0 where
// that is not known. The system counts what this process held when it started the child: a child
// that held no more than that is not known.
func PeakOf(ended *os.ProcessState) int64 {
	peak := peakOf(ended)
	if own, err := PeakRSS(); err == nil && peak <= own {
		return 0
	}
	return peak
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
