package collective

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARankThatLeavesAloneIsMissed has one of the two ranks of a process leave. It requires
// that the other rank of the process and a rank of another process, which wait for it, get
// ErrLeft.
func TestARankThatLeavesAloneIsMissed(t *testing.T) {
	for _, who := range []int{0, 1} {
		groups := tcpGroups(t, 3, [][]int{{0, 1}, {2}})
		for r, err := range outcomesOf(groups, 3, func(c *Comm) error {
			if err := c.Barrier(context.Background()); err != nil {
				return err
			}
			if c.Rank() == who {
				c.Close(nil)
				return nil
			}
			all := make([]int64, 3)
			return AllGather(c, []int64{1}, all)
		}) {
			if r != who {
				require.ErrorIs(t, err, ErrLeft, "rank %d while %d left", r, who)
			}
		}
		abandon(groups)
	}
}
