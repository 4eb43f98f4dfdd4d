package s3store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/s3test"
)

// gate is the network of one run, which can be down.
type gate struct {
	server *s3test.Server
	down   atomic.Bool
	lose   atomic.Bool // the answer to the next put
}

var errDown = errors.New("the network is down")

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.down.Load() {
		return nil, errDown
	}
	resp, err := g.server.RoundTrip(r)
	if r.Method == http.MethodPut && g.lose.CompareAndSwap(true, false) {
		return nil, errDown
	}
	return resp, err
}

// TestLeaseOfEarlierAttempt requires that an attempt of a job takes the place of an earlier attempt
// at once, which then fails, and that no other run does.
func TestLeaseOfEarlierAttempt(t *testing.T) {
	leases(t, func(t *testing.T, server *s3test.Server) {
		open := func(job string, attempt int) (*Store, *run, error) {
			r := &run{}
			s, err := Open(t.Context(), "s3://bucket/runs/a", Config{Getenv: server.Env("http://s3.test"), Transport: server, Fail: r.fail, Job: job, Attempt: attempt})
			return s, r, err
		}
		first, failing, err := open("k", 1)
		require.NoError(t, err)
		began := time.Now()
		next, r, err := open("k", 3)
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		require.NoError(t, next.Put(t.Context(), "x", nil))
		require.ErrorContains(t, first.Publish(t.Context(), "y", nil), "has taken over the checkpoints", "the earlier attempt must notice before its next renewal")
		require.ErrorIs(t, next.Publish(t.Context(), "x", nil), fs.ErrExist)
		require.NoError(t, next.Publish(t.Context(), "z", nil))
		require.NoError(t, next.Delete(t.Context(), "z"))
		for _, other := range []struct {
			job     string
			attempt int
		}{{"k", 3}, {"k", 2}, {"l", 4}, {"", 4}} {
			_, _, err = open(other.job, other.attempt)
			require.ErrorContains(t, err, "another run writes its checkpoints here", "%v", other)
		}
		require.ErrorContains(t, failing.failed(), "another run, process")
		require.NoError(t, r.failed())
		require.NoError(t, first.Close())
		require.NoError(t, next.Close())
		require.Len(t, server.Objects(), 1)
	})
}

// run is a run with a network of its own.
type run struct {
	*Store
	gate *gate
	said string

	mu  sync.Mutex
	err error // of Fail
}

func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

// failed returns the error with which the run was told to fail.
func (r *run) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// begin opens a store.
func begin(t *testing.T, server *s3test.Server) (*run, error) {
	return beginBehind(t, &gate{server: server})
}

func beginBehind(t *testing.T, g *gate) (*run, error) {
	r, server := &run{gate: g}, g.server
	var err error
	r.Store, err = Open(t.Context(), "s3://bucket/runs/a/", Config{
		Getenv: server.Env("http://s3.test"), Transport: r.gate,
		Fail: r.fail, Say: func(line string) { r.said += line },
	})
	return r, err
}

// mustBegin opens a store, which must succeed.
func mustBegin(t *testing.T, server *s3test.Server) *run {
	t.Helper()
	r, err := begin(t, server)
	require.NoError(t, err)
	return r
}

// leases runs f in a synctest bubble with servers whose clocks differ from this machine's by hours.
func leases(t *testing.T, f func(t *testing.T, server *s3test.Server)) {
	for _, ahead := range []time.Duration{-7 * time.Hour, 0, 7 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			server := s3test.New()
			server.SetClock(ahead)
			f(t, server)
		})
	}
}

// TestLeaseIsRenewed requires that a run that goes on keeps its place: another run is refused
// within the time between two renewals, whenever it begins.
func TestLeaseIsRenewed(t *testing.T) {
	leases(t, func(t *testing.T, server *s3test.Server) {
		a := mustBegin(t, server)
		for range 20 {
			began := time.Now()
			_, err := begin(t, server)
			require.ErrorContains(t, err, "s3://bucket/runs/a/: another run writes its checkpoints here, process ")
			require.ErrorContains(t, err, ": give each run a prefix of its own")
			require.LessOrEqual(t, time.Since(began), renewal+look)
			require.NoError(t, a.Put(t.Context(), "x", []byte("1")))
			time.Sleep(53 * time.Second)
		}
		require.NoError(t, a.Close())
		require.NoError(t, a.failed())
		require.Equal(t, map[string][]byte{"runs/a/x": []byte("1")}, server.Objects(), "the lease must be gone")
		began := time.Now()
		b := mustBegin(t, server)
		require.Less(t, time.Since(began), time.Second, "a place that was given back is free at once")
		require.Empty(t, b.said)
		require.NoError(t, b.Close())
	})
}

// TestLeaseOfKilledRun requires that a run waits until the lease of a killed run has ended, tells
// the user so, and takes the place.
func TestLeaseOfKilledRun(t *testing.T) {
	leases(t, func(t *testing.T, server *s3test.Server) {
		a := mustBegin(t, server)
		a.gate.down.Store(true) // a killed run sends nothing
		time.Sleep(20 * time.Second)
		began := time.Now()
		b := mustBegin(t, server)
		require.InDelta(t, 42, time.Since(began).Seconds(), 1.5)
		require.Contains(t, b.said, "waiting until it shows that it still runs, or 1m0s have passed")
		require.NoError(t, b.Put(t.Context(), "x", []byte("b")))

		c := anHourAfter(t, server, b)
		require.NoError(t, c.Close())
		require.ErrorIs(t, a.Close(), errDown)
	})
}

// anHourAfter lets a run be killed, and begins another one an hour later, which must not wait.
func anHourAfter(t *testing.T, server *s3test.Server, killed *run) *run {
	killed.gate.down.Store(true)
	require.ErrorIs(t, killed.Close(), errDown)
	time.Sleep(time.Hour)
	began := time.Now()
	r := mustBegin(t, server)
	require.Less(t, time.Since(began), time.Second)
	require.Empty(t, r.said)
	return r
}

// TestLeaseIsTaken requires that a run whose lease was taken while it could not reach the store
// writes and removes nothing any more, and fails.
func TestLeaseIsTaken(t *testing.T) {
	leases(t, func(t *testing.T, server *s3test.Server) {
		a := mustBegin(t, server)
		require.NoError(t, a.Put(t.Context(), "x", []byte("a")))
		a.gate.down.Store(true)
		time.Sleep(2 * time.Minute)
		require.ErrorIs(t, a.Put(t.Context(), "x", []byte("b")), errDown)
		b := mustBegin(t, server)
		require.NoError(t, b.Put(t.Context(), "x", []byte("b")))
		a.gate.down.Store(false)
		for _, err := range []error{a.Put(t.Context(), "x", []byte("c")), a.Delete(t.Context(), "x"), a.failed()} {
			require.ErrorContains(t, err, "has taken over the checkpoints at runs/a/")
			require.NotErrorIs(t, err, ErrGone)
			require.ErrorContains(t, err, "as this run had not renewed its lease for 1m0s; this run stops writing them")
		}
		require.NoError(t, a.Close())
		require.Equal(t, "b", string(server.Objects()["runs/a/x"]))
		require.NoError(t, b.Put(t.Context(), "x", []byte("d")), "the end of the other run must not take the lease away")
		require.NoError(t, b.Close())
		require.NoError(t, b.failed())
	})
}

// TestLeaseIsTakenWhileNothingIsWritten requires that a run notices the loss of its lease although
// it writes nothing, and at once if its objects are gone.
func TestLeaseIsTakenWhileNothingIsWritten(t *testing.T) {
	leases(t, func(t *testing.T, server *s3test.Server) {
		a := mustBegin(t, server)
		a.gate.down.Store(true)
		b := mustBegin(t, server)
		a.gate.down.Store(false)
		time.Sleep(2 * renewal)
		require.ErrorContains(t, a.failed(), "has taken over the checkpoints")
		require.NoError(t, a.Close())
		server.SetObject("runs/a/"+leaseName, nil)
		time.Sleep(2 * renewal)
		require.ErrorContains(t, b.failed(), "is gone from bucket bucket at http://s3.test")
		require.ErrorIs(t, b.failed(), ErrGone)
		require.NoError(t, b.Close())
		require.Empty(t, server.Objects())
	})
}

// TestLeaseOutlastsOutages requires that a run whose network was down goes on if no other run has
// taken the place.
func TestLeaseOutlastsOutages(t *testing.T) {
	leases(t, func(t *testing.T, server *s3test.Server) {
		a := mustBegin(t, server)
		for _, outage := range []time.Duration{20 * time.Second, 10 * time.Minute} {
			a.gate.down.Store(true)
			time.Sleep(outage)
			a.gate.down.Store(false)
			require.NoError(t, a.Put(t.Context(), "x", []byte("a")))
		}
		require.NoError(t, a.failed())
		require.NoError(t, a.Close())
	})
}

// TestLostAnswers requires that a run recognises the lease that it has written in a request whose
// answer was lost.
func TestLostAnswers(t *testing.T) {
	leases(t, func(t *testing.T, server *s3test.Server) {
		g := &gate{server: server}
		g.lose.Store(true)
		began := time.Now()
		a, err := beginBehind(t, g)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 2*time.Second)
		require.Empty(t, a.said)
		g.lose.Store(true)
		time.Sleep(10 * time.Minute)
		require.False(t, g.lose.Load())
		require.NoError(t, a.failed())
		require.NoError(t, a.Close())
		require.Empty(t, server.Objects())
	})
}

// TestManyRuns lets many runs begin at once, and requires that one of them gets the place, also if
// requests and answers are lost.
func TestManyRuns(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			server := s3test.New()
			if seed > 0 {
				server.Fail(seed, 5, time.Second)
			}
			if seed%2 == 1 {
				dead := mustBegin(t, server)
				dead.gate.down.Store(true)
				dead.Close() //nolint:errcheck // it cannot give the lease back
			}
			type result struct {
				*run
				err error
			}
			results := make(chan result)
			for range 8 {
				go func() {
					r, err := begin(t, server)
					results <- result{r, err}
				}()
			}
			var winners []*run
			for range 8 {
				if r := <-results; r.err == nil {
					winners = append(winners, r.run)
				} else {
					require.ErrorContains(t, r.err, "run", "seed %d", seed)
				}
			}
			require.Len(t, winners, 1, "seed %d", seed)
			time.Sleep(10 * time.Minute)
			require.NoError(t, winners[0].failed(), "seed %d", seed)
			server.Fail(0, 0, 0)
			require.NoError(t, winners[0].Close())
			require.Empty(t, server.Objects())
		})
	}
}

// TestStoresWithoutConditions requires that a store that ignores conditions is refused.
func TestStoresWithoutConditions(t *testing.T) {
	server := s3test.New()
	server.Unconditional = true
	_, err := begin(t, server)
	require.ErrorContains(t, err, "the store ignores the header If-None-Match of requests")
	require.Empty(t, server.Objects())
}

// TestPlaces requires that places are divided into bucket and prefix, and that those that cannot
// be used are errors before anything is sent.
func TestPlaces(t *testing.T) {
	for place, want := range map[string][2]string{
		"s3://b": {"b", ""}, "s3://b/": {"b", ""}, "s3://b/c": {"b", "c/"}, "s3://b/c d/é?//": {"b", "c d/é?/"},
	} {
		require.True(t, Is(place))
		bucket, prefix, err := parse(place)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{bucket, prefix}, place)
	}
	server := s3test.New()
	for place, want := range map[string]string{
		"s3://":            `"" is no name of a bucket`,
		"s3:///x":          `"" is no name of a bucket`,
		"s3://bucket/a//b": `a part of the path is ""`,
		"s3://bucket/../b": `a part of the path is ".."`,
		"s3://bucket/" + fmt.Sprintf("%01000d", 0): "the path has more than 900 bytes",
	} {
		_, err := Open(t.Context(), place, Config{Getenv: server.Env("http://s3.test"), Transport: server})
		require.ErrorContains(t, err, want)
	}
	_, err := Open(t.Context(), "s3://bucket", Config{Getenv: func(string) string { return "" }, Transport: server})
	require.ErrorContains(t, err, "s3://bucket: the environment variable AWS_ACCESS_KEY_ID is not set")
	require.Empty(t, server.Requests())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDown)
	_, err = Open(ctx, "s3://bucket", Config{Getenv: server.Env("http://s3.test"), Transport: server})
	require.ErrorIs(t, err, errDown)
}

// TestSilentEndpoint requires that an endpoint that does not answer is an error after a bounded time.
func TestSilentEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := Open(t.Context(), "s3://bucket/x", Config{Getenv: s3test.New().Env("http://s3.test"), Transport: silent{}})
		require.ErrorContains(t, err, "there was no answer within 30s")
		require.ErrorContains(t, err, "bucket bucket at http://s3.test")
		require.Equal(t, openTime, time.Since(began))
	})
}

// silent is a network that loses all requests.
type silent struct{}

// RoundTrip implements http.RoundTripper.
func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
