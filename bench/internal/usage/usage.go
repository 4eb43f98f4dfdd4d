// Package usage measures processor time and peak memory of this process or of a child process
// that has ended. A benchmark runs the measured code in a child process if the figures must
// exclude everything else.
package usage

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// PeakRSS returns the largest resident size of this process, in bytes. It reads Linux's /proc
// and returns an error on other systems.
func PeakRSS() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	return parsePeak(string(text))
}

// PeakOf returns the largest resident size, in bytes, of a child process that has ended, or 0
// if it is unknown. The system's figure for a child is at least the resident size that this
// process had when it started the child. PeakOf therefore returns 0 if the figure does not
// exceed the largest resident size of this process.
func PeakOf(ended *os.ProcessState) int64 {
	peak := peakOf(ended)
	if own, err := PeakRSS(); err == nil && peak <= own {
		return 0
	}
	return peak
}

// parsePeak finds a line such as "VmHWM:   123456 kB" and returns its value in bytes.
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
