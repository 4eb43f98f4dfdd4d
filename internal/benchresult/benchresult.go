// Package benchresult defines the format of results of collective benchmarks, both of this module
// and of other libraries: one JSON object a line. It also summarises and prints times and sizes.
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

// Line is the result of one collective with one message size, algorithm and executor.
type Line struct {
	Kind       string  `json:"kind,omitempty"` // kind of the measurement if it does not measure a collective; see simulate.Kind
	Collective string  `json:"collective"`
	Config     string  `json:"config,omitempty"` // configuration, for other libraries and plain TCP
	Algorithm  string  `json:"algorithm"`        // the algorithm that ran
	Chosen     bool    `json:"chosen"`           // whether the group chose the algorithm, not the caller
	Executor   string  `json:"executor"`
	Ranks      int     `json:"ranks"`
	Bytes      int     `json:"bytes"` // length in bytes of the larger buffer of a rank
	Count      int     `json:"count"` // number of elements
	Type       string  `json:"type"`
	Op         string  `json:"op,omitempty"`
	InPlace    bool    `json:"in_place"`
	Iterations int     `json:"iterations"` // number of iterations in all rounds
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	Min        float64 `json:"min_us"`
	Mean       float64 `json:"mean_us"`
	AlgBW      float64 `json:"algbw_gbs"` // Bytes / P50, in GB/s
	BusBW      float64 `json:"busbw_gbs"` // bandwidth used on links: algbw times a factor of the collective
	Errors     int64   `json:"errors"`    // number of wrong elements on all ranks

	// Rounds has the p50 of each round. A temporary disturbance of the machine is visible in
	// it, because it lengthens only some rounds.
	Rounds []float64 `json:"round_p50_us"`
}

// ElemBytes returns the length in bytes of an element of type typ, 0 if there is no such type.
// An empty typ means float64.
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

// Read calls each for every line of r that is a JSON object. It skips other lines, because
// benchmarks also print other text. It stops at the first error, and adds the number of the
// line to the error.
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

// Median returns the median of x: for an even number of values the mean of the middle two, and 0
// if x is empty.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// Duration returns seconds as text with three digits: "85.1 µs", "1.23 ms", "2.05 s".
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

// Size returns a number of bytes as text, rounded to about two digits: "96 B", "11 KiB", "1.5
// MiB".
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
