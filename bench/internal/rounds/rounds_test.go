package rounds

import (
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain does the task of a process that a test started.
func TestMain(m *testing.M) {
	Main("rounds", func() error {
		os.Exit(m.Run())
		return nil
	}, TaskOf(sum.add), TaskOf(func(string) (int, error) { return 0, errors.New("no number") }))
}

// sum is a task for the tests: the process adds two numbers.
type sum struct{ A, B float64 }

func (s sum) add() (sum, error) { return sum{A: s.A + s.B}, nil }

func TestSelf(t *testing.T) {
	child, err := Self(sum{0.1, 0.2})
	require.NoError(t, err)
	got, err := Outcome[sum](child)
	require.NoError(t, err)
	require.InDelta(t, 0.3, got.A, 1e-15)
	for _, task := range []any{"a", 7} { // "a" makes the task fail, and Main knows no task of the type of 7
		child, err := Self(task)
		require.NoError(t, err)
		_, err = Outcome[int](child)
		require.ErrorContains(t, err, "exit status 1")
	}
}

func TestPlay(t *testing.T) {
	var progress strings.Builder
	title := func(name string) string { return name }
	turns := ""
	require.NoError(t, Play([]string{"a", "b"}, 2, "rows", &progress, title, func(round int, name string) error {
		turns += strconv.Itoa(round) + name
		return nil
	}))
	require.Equal(t, "0a0b1b1a", turns)
	require.Contains(t, progress.String(), "rows, round 2 of 2: b\n")
	err := Play([]string{"a", "b"}, 2, "rows", &progress, title, func(int, string) error { return errors.New("no") })
	require.EqualError(t, err, "a: no")
}

func TestOrder(t *testing.T) {
	all := []string{"a", "b", "c"}
	for round, want := range []string{"abc", "cba", "bca", "acb", "cab", "bac", "abc"} {
		got := Order(all, round)
		require.Equal(t, want, got[0]+got[1]+got[2], "round %d", round)
	}
	require.Equal(t, []string{"a", "b", "c"}, all)
}

func TestMedian(t *testing.T) {
	all := []float64{5, 1, 3}
	require.Equal(t, 3.0, Median(all))
	require.Equal(t, []float64{5, 1, 3}, all)
	require.Equal(t, 2.0, Median([]float64{9, 2, 1, 4}))
	require.True(t, math.IsNaN(Median(nil)))
	// The ratios in the rounds are 4, 1 and 2. Their median differs from the ratio of the
	// medians.
	require.Equal(t, 2.0, MedianRatio([]float64{8, 5, 6}, []float64{2, 5, 3}))
}
