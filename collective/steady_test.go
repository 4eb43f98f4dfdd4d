package collective

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// shapesTurn runs one iteration of a loop with collectives of several lengths and options, like
// a training loop.
func shapesTurn(t *testing.T, c *Comm, in, out []float64) error {
	ctx, sum := t.Context(), Sum[float64]()
	for _, err := range [...]error{
		AllGatherV(c, in[:shapeCounts[c.Rank()]], out, shapeCounts, WithContext(ctx), WithName("x")),
		AllToAll(c, in, out, WithContext(ctx)),
		AllToAll(c, in, in, WithContext(ctx)),
		AllToAllV(c, in, out, shapeEven, shapeEven),
		AllToAllV(c, in[:32], out[:32], shapeOther, shapeOther),
		AllGather(c, in[:32], out, WithAlgorithm("ring")),
		Reduce(c, 0, sum, in, in),
		Reduce(c, 0, sum, in[:9], in[:9]),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// These are the counts that shapesTurn passes to collectives.
var shapeCounts, shapeEven, shapeOther = []int{40, 24}, []int{32, 32}, []int{16, 16}

// TestALoopOverSeveralShapesAllocatesNothing requires that a loop of shapesTurn allocates
// nothing, in memory and over TCP.
func TestALoopOverSeveralShapesAllocatesNothing(t *testing.T) {
	groups := tcpGroups(t, 2, nil)
	defer closeAll(t, groups)
	local := groupWithLimit(2, 0)
	for name, of := range map[string]ends{"memory": local.Rank, "TCP": endsOf(groups)} {
		step, done := make(chan bool), make(chan error)
		work := func(rank int, in, out []float64) (err error) {
			for k := 0; k < 100 && err == nil; k++ {
				err = shapesTurn(t, of(rank), in, out)
			}
			return err
		}
		go func() {
			in, out := make([]float64, 64), make([]float64, 64)
			for range step {
				done <- work(1, in, out)
			}
		}()
		in, out := make([]float64, 64), make([]float64, 64)
		run := func() {
			step <- true
			if err := work(0, in, out); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		run()
		allocs := testing.AllocsPerRun(5, run)
		close(step)
		if !testsize.Race {
			require.Less(t, allocs/100, 0.2, name)
		}
	}
	local.Rank(0).Close(nil)
	local.Rank(1).Close(nil)
}

// TestCountsThatOverflowAreRefused requires an error for counts whose sum overflows, even if
// the overflowed sum is the length of the slice.
func TestCountsThatOverflowAreRefused(t *testing.T) {
	counts := []int{math.MaxInt, math.MaxInt, 2}
	for name, call := range map[string]func(c *Comm) error{
		"blocks":    func(c *Comm) error { return GatherV(c, 2, make([]int64, 2), nil, counts) },
		"AllToAllV": func(c *Comm) error { return AllToAllV(c, []int64{}, nil, counts, counts) },
	} {
		for _, err := range onRanks(NewLocalGroup(3), call) {
			require.ErrorContains(t, err, "more elements than there can be", name)
		}
	}
}
