package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
	"github.com/superstep-ml/superstep/internal/benchresult"
)

// Limits for prices: see the package's documentation.
const (
	nearRanks   = 2
	nearBytes   = 1 << 20
	nearError   = 0.30
	apart       = 1.20
	orderedPart = 0.80
)

// Run is called by kong.
func (c *compareCommand) Run(ctx context.Context, out io.Writer) error {
	net, err := simulate.Named(c.Network)
	if err != nil {
		return err
	}
	if c.Cores > 0 {
		net.Cores = c.Cores
	}
	m, err := openMeasurements(c.Measured, func(l *benchresult.Line) float64 { return l.P50 })
	if err != nil {
		return err
	}
	probes, runs := m.probes, m.runs
	for _, r := range runs {
		if slices.Contains(c.FitRanks, r.Params.P) {
			probes = append(probes, r)
		}
	}
	if len(probes) > 0 {
		if net, err = simulate.Fit(ctx, net, probes, simulate.Options{}); err != nil {
			return err
		}
	}
	prices, err := simulate.Predict(ctx, net, runs, simulate.Options{})
	if err != nil {
		return err
	}
	text, err := json.Marshal(net)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "network: %s\n\n", text)
	good := report(out, runs, prices)
	if c.Check && !good {
		return errors.New("prices are not as near to the measurements as they should be")
	}
	return nil
}

// measurements has the samples to which a network is fitted (probes), the runs of algorithms
// that were requested by name (runs), and the runs of algorithms that a group chose (chosen). A
// chosen algorithm may run with another size of segments than the same algorithm requested by
// name.
type measurements struct {
	probes, runs, chosen []simulate.Sample
	// For each element of runs and of chosen, the medians of its rounds, in microseconds.
	runRounds, chosenRounds [][]float64
}

// openMeasurements calls readMeasurements for the file at path.
func openMeasurements(path string, time func(*benchresult.Line) float64) (*measurements, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := readMeasurements(f, time)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// readMeasurements reads lines of JSON. time returns the time in microseconds that is used for
// a line.
func readMeasurements(r io.Reader, time func(*benchresult.Line) float64) (*measurements, error) {
	m := new(measurements)
	err := benchresult.Read(r, func(l *benchresult.Line) error {
		if l.Kind == "" && l.Algorithm == "" {
			return nil // such a line may have the raw rate of the link
		}
		s, err := sample(l, time(l))
		switch {
		case err != nil:
		case s.Kind != simulate.Collective:
			m.probes = append(m.probes, s)
		case l.Chosen:
			m.chosen, m.chosenRounds = append(m.chosen, s), append(m.chosenRounds, rounds(l))
		default:
			m.runs, m.runRounds = append(m.runs, s), append(m.runRounds, rounds(l))
		}
		return err
	})
	if err == nil && len(m.runs) == 0 {
		err = errors.New("no run of an algorithm: want lines with collective, algorithm, ranks, bytes and p50_us")
	}
	return m, err
}

// rounds returns the medians of a line's rounds, in microseconds. For a line without rounds it
// returns the median of the line.
func rounds(l *benchresult.Line) []float64 {
	if len(l.Rounds) == 0 {
		return []float64{l.P50}
	}
	return l.Rounds
}

// sample returns the measurement of a line, with a time of us microseconds.
func sample(l *benchresult.Line, us float64) (simulate.Sample, error) {
	s := simulate.Sample{Bytes: l.Bytes, Seconds: us / 1e6}
	if !(us > 0) || l.Bytes < 0 {
		return s, fmt.Errorf("%d bytes in %v µs", l.Bytes, us)
	}
	if l.Kind != "" && l.Kind != simulate.Collective.String() {
		for k := range simulate.Collective {
			if k.String() == l.Kind {
				s.Kind = k
				return s, nil
			}
		}
		return s, fmt.Errorf("no kind of measurement %q", l.Kind)
	}
	name, dims, err := algorithm.ParseName(l.Algorithm)
	if err != nil {
		return s, err
	}
	coll, err := program.ParseCollective(l.Collective)
	if err != nil {
		return s, err
	}
	s.Kind, s.Params, s.Elem = simulate.Collective, algorithm.Params{P: l.Ranks, Dims: dims}, benchresult.ElemBytes(l.Type)
	if s.Algorithm, err = algorithm.Find(coll, name); err != nil {
		return s, err
	}
	if s.Elem == 0 {
		return s, fmt.Errorf("no type %q", l.Type)
	}
	return s, s.Algorithm.Supports(s.Params)
}

// report prints how close prices are to measurements, and reports whether the errors are within
// the limits.
func report(out io.Writer, runs []simulate.Sample, prices []float64) bool {
	good := true
	fmt.Fprintf(out, "| collective | algorithm | bytes | measured | priced | error |\n|---|---|---:|---:|---:|---:|\n")
	worst, count := 0.0, 0
	for i, s := range runs {
		if s.Params.P != nearRanks || s.Bytes < nearBytes {
			continue
		}
		off := prices[i]/s.Seconds - 1
		worst, count = max(worst, math.Abs(off)), count+1
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %+.0f %% |\n",
			s.Algorithm.Collective, s.Algorithm.Name, benchresult.Size(s.Bytes), benchresult.Duration(s.Seconds), benchresult.Duration(prices[i]), 100*off)
	}
	if count > 0 {
		fmt.Fprintf(out, "\nAt %d ranks from %s up, the worst of %d prices is off by %.0f %%.\n", nearRanks, benchresult.Size(nearBytes), count, 100*worst)
		good = worst <= nearError
	}
	ordered, pairs, wrong := orders(runs, prices)
	if pairs > 0 {
		fmt.Fprintf(out, "\nOf %d pairs of algorithms that differ by more than %.0f %%, prices order %d as measured (%.0f %%).\n",
			pairs, 100*(apart-1), ordered, 100*float64(ordered)/float64(pairs))
		good = good && float64(ordered) >= orderedPart*float64(pairs)
	}
	if len(wrong) > 0 {
		fmt.Fprintf(out, "\nThe others:\n\n| ranks | bytes | faster when measured | slower | measured ratio | priced ratio |\n|---:|---:|---|---|---:|---:|\n")
		for _, w := range wrong {
			fmt.Fprintln(out, w)
		}
	}
	return good
}

// orders returns the number of pairs of runs with the same collective, number of ranks and
// size, but different programs, whose measured times differ by more than a factor of apart (the
// constant). ordered is the number of these pairs whose prices have the same order as the
// measured times. wrong has a table row for each of the other pairs.
func orders(runs []simulate.Sample, prices []float64) (ordered, pairs int, wrong []string) {
	order := make([]int, len(runs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &runs[i], &runs[j]
		return cmp.Or(cmp.Compare(a.Algorithm.Collective, b.Algorithm.Collective), cmp.Compare(a.Params.P, b.Params.P),
			cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Elem, b.Elem), cmp.Compare(a.Seconds, b.Seconds))
	})
	for at, i := range order {
		fast := &runs[i]
		for _, j := range order[at+1:] {
			slow := &runs[j]
			if fast.Algorithm.Collective != slow.Algorithm.Collective || fast.Params.P != slow.Params.P ||
				fast.Bytes != slow.Bytes || fast.Elem != slow.Elem {
				break
			}
			ratio := slow.Seconds / fast.Seconds
			if ratio <= apart || sameProgram(fast, slow) {
				continue
			}
			pairs++
			if prices[i] < prices[j] {
				ordered++
				continue
			}
			wrong = append(wrong, fmt.Sprintf("| %d | %s | %s | %s | %.2f | %.2f |",
				fast.Params.P, benchresult.Size(fast.Bytes), fast.Algorithm.Name, slow.Algorithm.Name, ratio, prices[j]/prices[i]))
		}
	}
	return ordered, pairs, wrong
}

// sameProgram reports whether the algorithms of two runs generate the same programs, as many
// algorithms do for two ranks. The order of such runs says nothing about prices.
func sameProgram(a, b *simulate.Sample) bool {
	for rank := range a.Params.P {
		_, one, _ := strings.Cut(a.Algorithm.Generate(a.Params, rank).String(), "\n")
		_, other, _ := strings.Cut(b.Algorithm.Generate(b.Params, rank).String(), "\n")
		if one != other {
			return false
		}
	}
	return true
}
