package copies

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestMemoryOfCopies requires that no Store ever takes more memory than three times the largest state, however
// the messages of all workers come: for states that are replicated, so that all is in the head, and for those
// per shard; for sizes that stay, grow and shrink; with one and two copies; and while all states go to all
// workers. The last state follows the one before at once, and some states are void.
func TestMemoryOfCopies(t *testing.T) {
	shapes := map[string]func(s State, number int) int{
		"replicated": func(_ State, number int) int {
			if number == 0 {
				return 40_000
			}
			return 0
		},
		"per shard": func(_ State, number int) int { return 1000 * min(number, 1) },
		"growing":   func(s State, number int) int { return 200*s.Superstep + number },
		"shrinking": func(s State, number int) int { return 16_000 >> s.Superstep },
		"varying":   func(s State, number int) int { return (s.Superstep*977 + number*31) % 3000 },
	}
	for name, size := range shapes {
		for _, copies := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d", name, copies), func(t *testing.T) {
				worst := 0.0
				for seed := range uint64(testsize.Of(60, 2000)) {
					worst = max(worst, mostMemory(t, rand.New(rand.NewPCG(seed, 9)), copies, size))
				}
				t.Logf("%d copies: at most %.2f times the largest state", copies, worst)
				require.LessOrEqual(t, worst, 3.0)
			})
		}
	}
}

// mostMemory runs supersteps of a queue with random workers. It returns the most memory that a Store takes, in
// sizes of the largest state until then. The bytes that roomFor adds to each piece do not count.
func mostMemory(t *testing.T, draw *rand.Rand, copies int, size func(State, int) int) (worst float64) {
	added := int64(roomFor(roomFor(0)))
	workers := 2 + draw.IntN(4)
	n := newNetwork(t, draw, workers, copies)
	n.size = size
	s := State{Queue: "means", Of: 1 + workers*(1+draw.IntN(3))}
	largest := 0
	n.check = func() {
		for _, store := range n.stores {
			q := store.queues[s.Queue]
			if q == nil {
				continue
			}
			pieces := len(q.spare)
			for _, h := range q.states {
				pieces += len(h.pieces)
			}
			worst = max(worst, float64(store.Memory()-int64(pieces)*added)/float64(largest))
		}
	}
	last := 2 + draw.IntN(8)
	for s.Superstep < last {
		s.Superstep++
		if s.Ended = s.Superstep == last; !s.Ended {
			for n.step() { // until the state before is settled
			}
			require.False(t, n.cores[0].UnderWay(s.Queue))
		}
		total := 0
		for number := range s.Of {
			total += size(s, number)
		}
		largest = max(largest, total)
		if draw.IntN(10) == 0 {
			n.cores[0].gatherAll(map[State]bool{}, noQueue)
		}
		void := draw.IntN(5) == 0
		for w := range workers {
			n.share(w, s, void && w == workers-1)
		}
		for range draw.IntN(40) { // the last state may begin in the midst of the one before
			n.step()
		}
	}
	for n.step() {
	}
	require.False(t, n.cores[0].UnderWay(s.Queue))
	return worst
}
