// Package benchresult is the form of the results of collective benchmarks, ours and those of
// other libraries: lines of JSON, and how times and sizes are summed up and printed.
package benchresult

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"time"
)

// Line is the result of a collective at one size, carried out in one way.
type Line struct {
	Kind       string  `json:"kind,omitempty"` // of a measurement that is no collective: see simulate.Kind
	Collective string  `json:"collective"`
	Config     string  `json:"config,omitempty"` // of other libraries and of plain TCP
	Algorithm  string  `json:"algorithm"`        // that ran
	Chosen     bool    `json:"chosen"`           // by the group, not by name
	Executor   string  `json:"executor"`
	Ranks      int     `json:"ranks"`
	Bytes      int     `json:"bytes"` // of a rank's larger buffer
	Count      int     `json:"count"` // elements
	Type       string  `json:"type"`
	Op         string  `json:"op,omitempty"`
	InPlace    bool    `json:"in_place"`
	Iterations int     `json:"iterations"` // in all rounds
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	Min        float64 `json:"min_us"`
	Mean       float64 `json:"mean_us"`
	AlgBW      float64 `json:"algbw_gbs"` // bytes / p50
	BusBW      float64 `json:"busbw_gbs"` // what links carry: algbw times a factor of the collective
	Errors     int64   `json:"errors"`    // wrong elements, all ranks together

	// Rounds has the p50 of each round alone: what disturbs a machine for a while shows
	// there, since it only lengthens some.
	Rounds []float64 `json:"round_p50_us"`
}

// ElemBytes is the length of the elements of a type, 0 if it is none. Without a type they are
// float64.
func ElemBytes(typ string) int {
	switch typ {
	case "", "float64", "int64":
		return 8
	case "float32", "int32":
		return 4
	case "uint8":
		return 1
	}
	return 0
}

// Read calls a function for each line of JSON. Lines that are no objects are chatter, and
// skipped. An error names the number of the line.
func Read(r io.Reader, each func(l *Line) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		if text := lines.Bytes(); len(text) == 0 || text[0] != '{' {
			continue
		}
		l := new(Line)
		err := json.Unmarshal(lines.Bytes(), l)
		if err == nil {
			err = each(l)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return lines.Err()
}

// Median returns the median of some numbers, of an even number the mean of the two in the
// middle, and 0 of none.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// Duration writes seconds with three digits: "85.1 µs", "1.23 ms", "2.05 s".
func Duration(seconds float64) string {
	unit := "s"
	switch d := time.Duration(seconds * 1e9); {
	case d < time.Millisecond:
		seconds, unit = seconds*1e6, "µs"
	case d < time.Second:
		seconds, unit = seconds*1e3, "ms"
	}
	places := 2
	switch {
	case seconds >= 100:
		places = 0
	case seconds >= 10:
		places = 1
	}
	return fmt.Sprintf("%.*f %s", places, seconds, unit)
}

// Size writes bytes with two digits or so: "96 B", "11 KiB", "1.5 MiB".
func Size(bytes int) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	unit := (bits.Len(uint(bytes)) - 1) / 10
	v := float64(bytes) / float64(uint64(1)<<(10*unit))
	format := "%.0f %ciB"
	if v < 9.95 && v != float64(int(v)) {
		format = "%.1f %ciB"
	}
	return fmt.Sprintf(format, v, " KMGT"[unit])
}
