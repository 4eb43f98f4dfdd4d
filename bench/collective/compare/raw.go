package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// rawCommand measures what plain TCP on loopback does between two processes of Go.
type rawCommand struct {
	Pattern []string `default:"exchange,pingpong" help:"exchange: both send and receive at the same time, as in an allreduce of two ranks; pingpong: one answers the other."`
	Bytes   []int64  `default:"8,67108864" help:"Sizes of what each sends."`
	Waiting []string `default:"netpoll,blocking,polling" help:"How a process waits: parked by the runtime until its poller wakes it, blocked in read, or trying again."`
	Seconds float64  `default:"1" help:"About how long a line is measured."`
}

// Ways to wait for bytes.
const (
	netpoll  = "netpoll"
	blocking = "blocking"
	polling  = "polling"
)

// Validate is called by kong.
func (c *rawCommand) Validate() error {
	for _, p := range c.Pattern {
		if p != "exchange" && p != "pingpong" {
			return fmt.Errorf("no pattern %q, want exchange or pingpong", p)
		}
	}
	for _, w := range c.Waiting {
		if w != netpoll && w != blocking && w != polling {
			return fmt.Errorf("no way %q to wait, want netpoll, blocking or polling", w)
		}
	}
	for _, b := range c.Bytes {
		if b < 1 {
			return fmt.Errorf("%d bytes, want 1 or more", b)
		}
	}
	if !(c.Seconds > 0) {
		return errors.New("want more than 0 seconds")
	}
	return nil
}

// rawLine is a line of output. Times are of one operation of the pattern, there and
// back for a ping-pong; the rate is that of each direction.
type rawLine struct {
	Library    string  `json:"library"`
	Collective string  `json:"collective"` // the pattern
	Config     string  `json:"config"`     // how it waits
	Ranks      int     `json:"ranks"`
	Bytes      int64   `json:"bytes"`
	Iterations int     `json:"iterations"`
	Min        float64 `json:"min_us"`
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	Mean       float64 `json:"mean_us"`
	Rate       float64 `json:"rate_gbs"`
}

// Run is called by kong.
func (c *rawCommand) Run(ctx context.Context) error {
	enc := json.NewEncoder(os.Stdout)
	for _, pattern := range c.Pattern {
		for _, bytes := range c.Bytes {
			for _, waiting := range c.Waiting {
				line, err := measureRaw(ctx, rawTask{Pattern: pattern, Waiting: waiting, Bytes: bytes}, c.Seconds)
				if err != nil {
					return fmt.Errorf("%s, %d bytes, %s: %w", pattern, bytes, waiting, err)
				}
				if err := enc.Encode(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// rawVariable holds the task of the process that is the other side.
const rawVariable = "SUPERSTEP_BENCH_RAW"

// runRawPeer is the other side: it dials, and runs as often as it is told to, until
// the connection ends.
func runRawPeer(text string) error {
	var t rawTask
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	s, err := t.dial()
	if err != nil {
		return err
	}
	defer s.close()
	for {
		n, err := s.readNumber()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		times, err := s.run(n, false)
		if err != nil {
			return err
		}
		if err := s.writeTimes(times); err != nil {
			return err
		}
	}
}

// measureRaw starts the other side and measures with it.
func measureRaw(ctx context.Context, t rawTask, seconds float64) (line rawLine, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second))+time.Minute)
	defer cancel()
	listener, err := t.listen()
	if err != nil {
		return line, err
	}
	defer listener.Close()
	self, err := os.Executable()
	if err != nil {
		return line, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return line, err
	}
	child := exec.CommandContext(ctx, self)
	child.Env = append(os.Environ(), rawVariable+"="+string(text))
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		return line, err
	}
	defer func() { err = errors.Join(err, child.Wait()) }()
	s, err := t.accept(listener)
	if err != nil {
		cancel()
		return line, err
	}
	defer s.close()
	line, err = s.measure(t, seconds)
	if err != nil {
		cancel() // the other side may wait for something
	}
	return line, err
}

// measure warms up, and then runs for about so long.
func (s *side) measure(t rawTask, seconds float64) (rawLine, error) {
	n, each := 3, time.Duration(0)
	for began := time.Now(); ; {
		times, err := s.both(n)
		if err != nil {
			return rawLine{}, err
		}
		each = max(times[(len(times)-1)/2], 1)
		if spent := time.Since(began).Seconds(); spent > seconds/10 {
			break
		}
		n = min(max(int(seconds/10/each.Seconds()), 3), 1000)
	}
	n = min(max(int(seconds/each.Seconds()), 5), 200_000)
	began := time.Now()
	times, err := s.both(n)
	if err != nil {
		return rawLine{}, err
	}
	mean := time.Since(began) / time.Duration(n)
	legs := 1.0
	if t.Pattern == "pingpong" {
		legs = 2
	}
	return rawLine{
		Library: "raw TCP", Collective: t.Pattern, Config: t.Waiting, Ranks: 2, Bytes: t.Bytes, Iterations: n,
		Min: micro(times[0]), P50: micro(times[(n-1)/2]), P99: micro(times[(99*n+99)/100-1]), Mean: micro(mean),
		Rate: legs * float64(t.Bytes) / float64(times[(n-1)/2].Nanoseconds()),
	}, nil
}

// micro are microseconds.
func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// both lets the two sides run so often, and returns the times of the slower one of
// each operation, ascending.
func (s *side) both(n int) ([]time.Duration, error) {
	if err := s.writeNumber(n); err != nil {
		return nil, err
	}
	times, err := s.run(n, true)
	if err != nil {
		return nil, err
	}
	theirs, err := s.readTimes(n)
	if err != nil {
		return nil, err
	}
	for i, t := range theirs {
		times[i] = max(times[i], t)
	}
	slices.Sort(times)
	return times, nil
}
