package collective_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/collective"
)

// TestMain runs the tests, or one process of a group if the environment has partVariable.
func TestMain(m *testing.M) {
	if text := os.Getenv(partVariable); text != "" {
		os.Exit(runPart(text))
	}
	// Many tests spend most of their time waiting for sockets, processes and timeouts. So eight
	// tests run in parallel, even on few processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// testGroup is a group of which all ranks are in this process. The ranks share memory, or are
// connected by TCP.
type testGroup struct {
	name string
	p    int
	end  func(rank int) *collective.Comm
	tcp  []*collective.TCPGroup
}

// inMemory makes a group whose ranks share memory.
func inMemory(p int) *testGroup {
	g := collective.NewLocalGroup(p)
	return &testGroup{name: fmt.Sprintf("%d ranks in memory", p), p: p, end: g.Rank}
}

// silenceLimit is how long a part of a group may send nothing, and how long all parts may make
// no progress. The limit is long because the goroutines of all parts, and of several tests,
// share the processors of one process.
const silenceLimit = 30 * time.Second

// overTCP makes a group of p ranks over TCP. Each element of hosts lists the ranks of one part
// of the group. Each part has its own connections, like a separate process. If hosts is nil,
// each rank is a part.
func overTCP(t testing.TB, p int, hosts [][]int, change ...func(*collective.TCPConfig)) *testGroup {
	t.Helper()
	if hosts == nil {
		hosts = blockLayout(p, p)
	}
	w := &testGroup{name: fmt.Sprintf("%d ranks over TCP as %v", p, hosts), p: p, tcp: make([]*collective.TCPGroup, len(hosts))}
	store := newTestStore()
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for h := range hosts {
		wg.Go(func() {
			cfg := collective.TCPConfig{Store: store, Size: p, Hosts: hosts, Group: t.Name(), Detection: silenceLimit, Stall: silenceLimit}
			for _, f := range change {
				f(&cfg)
			}
			w.tcp[h], errs[h] = collective.NewTCPGroup(t.Context(), hosts[h][0], cfg)
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err, w.name)
	}
	of := make([]*collective.Comm, p)
	for _, g := range w.tcp {
		for _, r := range g.Ranks() {
			of[r] = g.Rank(r)
		}
	}
	w.end = func(rank int) *collective.Comm { return of[rank] }
	return w
}

// blockLayout distributes p ranks over n hosts in blocks of neighbouring ranks.
func blockLayout(p, n int) [][]int {
	hosts := make([][]int, n)
	for r := range p {
		hosts[r*n/p] = append(hosts[r*n/p], r)
	}
	return hosts
}

// cyclicLayout distributes p ranks over n hosts cyclically: rank r is on host r mod n.
func cyclicLayout(p, n int) [][]int {
	hosts := make([][]int, n)
	for r := range p {
		hosts[r%n] = append(hosts[r%n], r)
	}
	return hosts
}

// outcomes calls body on all ranks concurrently and returns their errors. An error on one rank
// ends the group, so that no other rank waits for the failed rank.
func (w *testGroup) outcomes(body func(c *collective.Comm) error) []error {
	errs := make([]error, w.p)
	var wg sync.WaitGroup
	for r := range errs {
		wg.Go(func() {
			c := w.end(r)
			if errs[r] = body(c); errs[r] != nil {
				c.Close(errs[r])
			}
		})
	}
	wg.Wait()
	return errs
}

// run calls body on all ranks concurrently and requires that all calls succeed.
func (w *testGroup) run(t testing.TB, body func(c *collective.Comm) error) {
	t.Helper()
	for r, err := range w.outcomes(body) {
		require.NoError(t, err, "rank %d of %s must succeed", r, w.name)
	}
}

// close makes all ranks leave the group and requires that they succeed. Afterwards a group over
// TCP has no open connections and no running goroutines.
func (w *testGroup) close(t testing.TB) {
	t.Helper()
	for _, err := range w.leave() {
		require.NoError(t, err, w.name)
	}
}

// leave makes all ranks leave the group, which may have failed, and returns their errors.
func (w *testGroup) leave() []error {
	if w.tcp == nil {
		for r := range w.p {
			w.end(r).Close(nil)
		}
		return nil
	}
	errs := make([]error, len(w.tcp))
	var wg sync.WaitGroup
	for h, g := range w.tcp {
		wg.Go(func() { errs[h] = g.Close() })
	}
	wg.Wait()
	return errs
}

// testStore is a collective.Store in memory, through which the parts of a group find each
// other.
type testStore struct {
	mu     sync.Mutex
	values map[string]string
	set    chan struct{} // closed and replaced by every Set
}

func newTestStore() *testStore {
	return &testStore{values: map[string]string{}, set: make(chan struct{})}
}

func (s *testStore) Set(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = string(value)
	close(s.set)
	s.set = make(chan struct{})
	return nil
}

func (s *testStore) Get(ctx context.Context, key string) ([]byte, error) {
	for {
		s.mu.Lock()
		value, ok := s.values[key]
		set := s.set
		s.mu.Unlock()
		if ok {
			return []byte(value), nil
		}
		select {
		case <-set:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// only requires that the store has one value, and returns it.
func (s *testStore) only(t testing.TB) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(t, s.values, 1)
	for _, v := range s.values {
		return v
	}
	return ""
}
