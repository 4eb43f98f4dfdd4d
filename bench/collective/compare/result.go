package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// result is one line that a contestant prints.
type result struct {
	Config    string  `json:"config"`
	Algorithm string  `json:"algorithm"` // that ours chose
	P50       float64 `json:"p50"`       // seconds, like the others
	P99       float64 `json:"p99"`
	Min       float64 `json:"min"`
	Mean      float64 `json:"mean"`
}

// parseResults reads a contestant's lines of JSON. Lines that are no objects are
// chatter and skipped; an object without a time, or one that tells of wrong
// elements, is an error.
func parseResults(r io.Reader) ([]result, error) {
	var results []result
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 || text[0] != '{' {
			continue
		}
		one, ok, err := parseResult(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		if ok {
			results = append(results, one)
		}
	}
	return results, lines.Err()
}

// parseResult reads a line; ok is false of those that measure something else.
func parseResult(text []byte) (one result, ok bool, err error) {
	var line struct {
		Collective string   `json:"collective"`
		Config     string   `json:"config"`
		Algorithm  string   `json:"algorithm"`
		InPlace    bool     `json:"in_place"`
		P50        *float64 `json:"p50_us"`
		P99        float64  `json:"p99_us"`
		Min        float64  `json:"min_us"`
		Mean       float64  `json:"mean_us"`
		Errors     int64    `json:"errors"`
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return one, false, err
	}
	if line.Collective == "" {
		return one, false, nil
	}
	if line.P50 == nil || !(*line.P50 > 0) {
		return one, false, fmt.Errorf("no p50_us")
	}
	if line.Errors != 0 {
		return one, false, fmt.Errorf("%d wrong elements", line.Errors)
	}
	one = result{line.Config, line.Algorithm, *line.P50 / 1e6, line.P99 / 1e6, line.Min / 1e6, line.Mean / 1e6}
	if one.Config == "" { // ours
		one.Config = outOfPlace
		if line.InPlace {
			one.Config = inPlace
		}
	}
	return one, true, nil
}
