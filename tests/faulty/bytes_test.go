package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
	"github.com/superstep-ml/superstep/internal/transport/middlebox"
)

// boxedStore is a store that gives the address of a middlebox in place of that of process 0.
type boxedStore struct {
	membership.Store
	box *middlebox.Box
}

func (s boxedStore) Set(ctx context.Context, key string, value []byte) error {
	address, err := s.box.Before(string(value))
	if err != nil {
		return err
	}
	return s.Store.Set(ctx, key, []byte(address))
}

// handshakeBytes is the number of bytes of a connection that are proof, hello and answers, or the
// list of all ranks. Damage there costs another attempt, or the connection. A rank that waits
// for missing bytes there waits until the time for joining is over, which every second seed of
// the full count does.
const handshakeBytes = 300

// stallTime is the time without progress on any rank after which the ranks report a standstill.
// It is much longer than a busy machine keeps all of them from running. Few seeds wait for it.
const stallTime = 3 * time.Second

// TestBytesDamagedBetweenRanks runs small collectives among processes with a middlebox on all
// their connections, of data and of control, that commits one fault. Every rank ends with the
// right result or with an error, which is the same for all ranks that had joined. If bytes were
// damaged, the error says so, or that a message is missing.
func TestBytesDamagedBetweenRanks(t *testing.T) {
	n, at := 250, 8
	if testsize.Soak {
		n, at = 10_000, 32
	}
	var struck, failed, damaged [middlebox.Cut + 1]int // after the handshakes
	var mu sync.Mutex
	var running sync.WaitGroup
	turns := make(chan struct{}, at)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for seed := range uint64(n) {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			f := middlebox.Draw(seed, 5, 800)
			if !testsize.Soak || seed%2 == 0 {
				f.At += handshakeBytes
			}
			s := some(rand.New(rand.NewPCG(seed, 77)), mesh.FaultRule{Kind: mesh.Drop})
			s.group, s.stall, s.limit, s.secret = fmt.Sprint("damaged ", seed), stallTime, 10*time.Second, []byte("of the group")
			s.plan, s.box = mesh.FaultPlan{}, middlebox.New(f)
			began := time.Now()
			endings := s.overTCP(t, mesh.FaultPlan{})
			s.box.Close()
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			say := func(what string) {
				t.Errorf("seed %d, %v: %v: %s", seed, f, s, what)
				for r, e := range endings {
					t.Logf("rank %d: %d done, %v", r, e.done, e.err)
				}
			}
			if took > 3*bound {
				say(fmt.Sprint("it took ", took))
			}
			bad, told := false, false
			for _, e := range endings {
				if e.wrong != "" {
					say(e.wrong)
				}
				if e.err == nil && e.done != s.ops || e.err != nil && !s.box.Struck() {
					say("it failed without a reason")
				}
				bad = bad || e.err != nil
				told = told || e.err != nil && strings.Contains(e.err.Error(), membership.ErrDamaged.Error())
			}
			if !s.box.Struck() {
				return
			}
			if f.At >= handshakeBytes {
				struck[f.Kind]++
				if bad {
					failed[f.Kind]++
				}
				if told {
					damaged[f.Kind]++
				}
			}
			var first error
			for _, e := range endings {
				switch {
				case e.err == nil || !e.joined: // its group has not formed, or has ended
				case first == nil:
					first = e.err
				case e.err.Error() != first.Error() && f.Kind != middlebox.Cut: // both ends only see that the other one is gone
					say("different causes")
				}
				// After lost bytes nothing may arrive any more. That is a standstill, or the
				// others have finished and left.
				standstill := errors.Is(e.err, membership.ErrTimeout) || f.Kind == middlebox.Lose && errors.Is(e.err, membership.ErrLeft)
				if e.err != nil && !told && f.Kind != middlebox.Cut && !standstill && f.At >= handshakeBytes {
					say("nobody says that anything was damaged")
					break
				}
			}
		})
	}
	running.Wait()
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(n)*(32<<20), "no length is believed that was damaged")
	t.Logf("by kind: %v struck, %v failed, %v said to be damaged", struck, failed, damaged)
	for k := range struck {
		require.Greater(t, struck[k], n/200, "%v strikes", middlebox.Kind(k))
		switch middlebox.Kind(k) {
		case middlebox.Hold:
			require.Zero(t, failed[k], "what is late is not wrong")
		case middlebox.Cut:
		default:
			require.Greater(t, damaged[k], struck[k]/3, "%v is found", middlebox.Kind(k))
		}
	}
}
