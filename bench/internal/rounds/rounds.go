// Package rounds has the shared parts of comparisons whose contestants take turns, round by
// round.
package rounds

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// Order returns the contestants in their order in a round. Every second round goes backwards,
// and every pair of rounds begins with another contestant, so that a busy machine treats all
// alike.
func Order[T any](all []T, round int) []T {
	turn := round / 2 % len(all)
	order := slices.Concat(all[turn:], all[:turn])
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// Play has contestants take turns in a number of rounds of a comparison on something, and says
// whose turn it is.
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

// Median returns the middle value, of an even number the lower one of the two; NaN of none.
func Median(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(all))[(len(all)-1)/2]
}

// MedianRatio returns the median of the ratios of a contestant's figures to those of another
// one in the same rounds.
func MedianRatio(of, to []float64) float64 {
	ratios := make([]float64, len(of))
	for i := range of {
		ratios[i] = of[i] / to[i]
	}
	return Median(ratios)
}
