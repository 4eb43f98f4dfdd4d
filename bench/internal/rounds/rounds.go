// Package rounds has the shared parts of comparisons in which contestants take turns, one round
// after the other.
package rounds

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// Order returns the contestants in their order in a round. Every second round has the reverse
// order of the round before, and every pair of rounds begins with a different contestant, so
// that other load on the machine affects all contestants alike.
func Order[T any](all []T, round int) []T {
	turn := round / 2 % len(all)
	order := slices.Concat(all[turn:], all[:turn])
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// Play runs all contestants in turn, for the given number of rounds. Before each run it writes
// to progress the text on, which names what is compared, the number of the round, and the title
// of the contestant.
func Play[T any](all []T, count int, on string, progress io.Writer, title func(T) string, run func(round int, contestant T) error) error {
	for round := range count {
		for _, c := range Order(all, round) {
			fmt.Fprintf(progress, "%s, round %d of %d: %s\n", on, round+1, count, title(c))
			if err := run(round, c); err != nil {
				return fmt.Errorf("%s: %w", title(c), err)
			}
		}
	}
	return nil
}

// Median returns the middle value. If the number of values is even, it returns the lower of the
// two middle values. If there are no values, it returns NaN.
func Median(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(all))[(len(all)-1)/2]
}

// MedianRatio returns the median of of[i]/to[i] over the rounds i. of and to have the figures
// of two contestants in each round.
func MedianRatio(of, to []float64) float64 {
	ratios := make([]float64, len(of))
	for i := range of {
		ratios[i] = of[i] / to[i]
	}
	return Median(ratios)
}
