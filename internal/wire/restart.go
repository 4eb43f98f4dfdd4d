package wire

import (
	"cmp"
	"fmt"
	"time"
)

// RestartStrategy says whether and when a job manager restarts a job after the loss of a worker.
type RestartStrategy int

const (
	// RestartExponentialDelay doubles the delay with every restart, up to MaxRestartDelay. The
	// first delay is used again after an attempt that ran for the time Restart.Window.
	RestartExponentialDelay RestartStrategy = iota
	// RestartFixedDelay restarts a job Restart.Attempts times, always after the same delay.
	RestartFixedDelay
	// RestartFailureRate restarts a job at most Restart.Attempts times within any period of
	// length Restart.Window, always after the same delay.
	RestartFailureRate
	// RestartNone never restarts a job.
	RestartNone
)

var restartStrategies = [...]string{"exponential-delay", "fixed-delay", "failure-rate", "none"}

// String returns the name of the strategy.
func (s RestartStrategy) String() string {
	if s < 0 || int(s) >= len(restartStrategies) {
		return fmt.Sprintf("RestartStrategy(%d)", int(s))
	}
	return restartStrategies[s]
}

// ParseRestartStrategy returns the strategy for which String returns text.
func ParseRestartStrategy(text string) (RestartStrategy, error) {
	for i, name := range restartStrategies {
		if name == text {
			return RestartStrategy(i), nil
		}
	}
	return 0, fmt.Errorf("%.40q is no restart strategy: want exponential-delay, fixed-delay, failure-rate or none", text)
}

// Defaults of Restart.
const (
	DefaultRestartAttempts = 3
	DefaultRestartDelay    = time.Second
	// DefaultFirstDelay is that of RestartExponentialDelay. It is short, as most losses have nothing
	// to do with the one before.
	DefaultFirstDelay    = 100 * time.Millisecond
	DefaultRestartWindow = 10 * time.Minute
	// MaxRestartDelay bounds the delays of RestartExponentialDelay.
	MaxRestartDelay = time.Minute
)

// Restart configures the restarts of a job.
type Restart struct {
	Strategy RestartStrategy `msgpack:"strategy,omitempty"`
	// Attempts is the largest number of restarts, for RestartFailureRate within Window. 0 means
	// DefaultRestartAttempts or, for RestartExponentialDelay, that there is no limit.
	Attempts int `msgpack:"attempts,omitempty"`
	// Delay is the time from the loss of an attempt to the next attempt, for
	// RestartExponentialDelay that of the first restart. 0 means DefaultRestartDelay or, for
	// RestartExponentialDelay, DefaultFirstDelay.
	Delay time.Duration `msgpack:"delay,omitempty"`
	// Window is the period of RestartFailureRate, and for RestartExponentialDelay the time that
	// an attempt must run so that the next delay is the first again. 0 means
	// DefaultRestartWindow.
	Window time.Duration `msgpack:"window,omitempty"`
}

// Check returns an error for the first setting that cannot be used. It names the setting as on
// the command line.
func (r Restart) Check() error {
	switch {
	case r.Strategy < 0 || int(r.Strategy) >= len(restartStrategies):
		return fmt.Errorf("--restart is %s, which is no restart strategy", r.Strategy)
	case r.Attempts < 0:
		return fmt.Errorf("--restart-attempts is %d: want how often the job may be restarted, or 0 for the default", r.Attempts)
	case r.Delay < 0:
		return fmt.Errorf("--restart-delay is %v: want the time between two attempts, or 0 for the default", r.Delay)
	case r.Window < 0:
		return fmt.Errorf("--restart-window is %v: want a positive time, or 0 for the default", r.Window)
	case r.Strategy == RestartNone && r != (Restart{Strategy: RestartNone}):
		return fmt.Errorf("--restart none has no attempts, delay or window: leave them out, or choose another strategy")
	case r.Strategy == RestartFixedDelay && r.Window > 0:
		return fmt.Errorf("--restart-window is for the strategies exponential-delay and failure-rate, and --restart is fixed-delay")
	}
	return nil
}

// WithDefaults returns r with the defaults for settings that are 0. Attempts stays 0 if there is
// no limit.
func (r Restart) WithDefaults() Restart {
	r.Window = cmp.Or(r.Window, DefaultRestartWindow)
	if r.Strategy == RestartExponentialDelay {
		r.Delay = cmp.Or(r.Delay, DefaultFirstDelay)
		return r
	}
	r.Delay, r.Attempts = cmp.Or(r.Delay, DefaultRestartDelay), cmp.Or(r.Attempts, DefaultRestartAttempts)
	return r
}
