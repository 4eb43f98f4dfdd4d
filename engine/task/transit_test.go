package task

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
)

// TestTransit: the shares of what may be on its way never add up to more than the
// budget, however many exchanges, subtasks and workers there are, and none is less than
// is of use.
func TestTransit(t *testing.T) {
	const budget = 1 << 28
	for _, exchanges := range []int{0, 1, 3, 20} {
		text := "n0 = source rows=10\n"
		for i := range exchanges {
			text += fmt.Sprintf("n%d = map n%d/%s\n", i+1, i, []string{"hash", "rebalance"}[i%2])
		}
		g := parseGraph(64, strings.TrimSuffix(text, "\n"))
		for _, p := range []int{1, 2, 7} {
			compiled, err := plan.Compile(g.Graph, p)
			require.NoError(t, err)
			require.Len(t, compiled.Edges, exchanges)
			for _, workers := range []int{1, 2, 7} {
				for _, credits := range []int{0, 1, 30} {
					x := newTransit(compiled, budget, p, workers, credits)
					edges, subtasks := int64(exchanges), int64(p)
					under := int64(max(credits, 2*(workers-1)))
					if credits == 0 {
						under = int64(max(transport.DefaultCredits, 2*(workers-1)))
					}
					held := x.keep*edges*subtasks + // kept back
						budget/8 + x.message + // sent, one message always
						2*x.message*edges*subtasks + // at hand of senders, and of the disk
						3*x.join*int64(len(compiled.Vertices))*subtasks
					if workers > 1 {
						held += under * x.message * edges * subtasks
					}
					require.LessOrEqual(t, held, int64(budget), "%d exchanges, parallelism %d, %d workers", exchanges, p, workers)
					tiny := newTransit(compiled, 1, p, workers, credits)
					require.EqualValues(t, leastShare, min(tiny.keep, tiny.message, tiny.join))
					require.LessOrEqual(t, x.keep, int64(keepBytes))
				}
			}
		}
	}
}
