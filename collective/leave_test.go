package collective

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARankThatLeavesAloneIsMissed requires that ranks that wait for a rank get ErrLeft if that
// rank leaves, whether they are in the same process or in another process.
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
