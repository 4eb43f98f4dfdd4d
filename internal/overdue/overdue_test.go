package overdue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWatch requires that there is no panic if stop is called in time, and that the message
// names the event that the test waited for, and the waiting function.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := Watch("nothing")
		time.Sleep(limit - 1)
		stop()
		time.Sleep(limit)
	})
	said := message("what never comes")
	require.Contains(t, said, "for what never comes\n")
	require.Contains(t, said, "overdue.TestWatch(")
}
