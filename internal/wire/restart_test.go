package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRestartStrategies(t *testing.T) {
	for s := RestartExponentialDelay; s <= RestartNone; s++ {
		parsed, err := ParseRestartStrategy(s.String())
		require.NoError(t, err)
		require.Equal(t, s, parsed)
		require.NoError(t, Restart{Strategy: s}.Check())
	}
	_, err := ParseRestartStrategy("always")
	require.EqualError(t, err, `"always" is no restart strategy: want exponential-delay, fixed-delay, failure-rate or none`)
	for text, r := range map[string]Restart{
		"RestartStrategy(7)":   {Strategy: 7},
		"RestartStrategy(-1)":  {Strategy: -1},
		"--restart-attempts":   {Attempts: -1},
		"--restart-delay":      {Delay: -1},
		"--restart-window is ": {Window: -1},
		"--restart none has":   {Strategy: RestartNone, Delay: 1},
		"--restart is fixed":   {Strategy: RestartFixedDelay, Window: 1},
	} {
		require.ErrorContains(t, r.Check(), text)
	}
}

// TestRestartDefaults compares the meaning of zero with the documentation.
func TestRestartDefaults(t *testing.T) {
	for _, s := range []RestartStrategy{RestartFixedDelay, RestartFailureRate} {
		require.Equal(t, Restart{Strategy: s, Attempts: 3, Delay: time.Second, Window: 10 * time.Minute}, Restart{Strategy: s}.WithDefaults())
	}
	require.Equal(t, Restart{Delay: 100 * time.Millisecond, Window: 10 * time.Minute}, Restart{}.WithDefaults())
	all := Restart{Strategy: RestartFailureRate, Attempts: 5, Delay: time.Minute, Window: time.Hour}
	require.Equal(t, all, all.WithDefaults())
}

// TestRestartingIsNotTheEnd requires that exactly the three final states are final.
func TestRestartingIsNotTheEnd(t *testing.T) {
	for _, s := range JobStates() {
		require.Equal(t, s == JobFinished || s == JobFailed || s == JobCancelled, s.Ended(), s.String())
		parsed, err := ParseJobState(s.String())
		require.NoError(t, err)
		require.Equal(t, s, parsed)
	}
}
