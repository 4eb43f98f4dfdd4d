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

// boxedStore is a store that replaces the address of process 0 by the address of a middlebox.
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

// handshakeBytes bounds the bytes at the beginning of a connection that belong to the
// handshake: proof, hello, answers and the list of all ranks. Damage to these bytes causes
// another attempt to connect, or the loss of the connection. A rank whose handshake bytes are
// lost waits until the time limit for joining. So only half of the seeds of the soak test
// damage the handshake.
const handshakeBytes = 300

// stallTime is the time without progress on any rank after which the ranks report a standstill.
// It is much longer than the time for which a busy machine prevents all ranks from running.
// Only for a few seeds does a run have to wait for stallTime.
const stallTime = 3 * time.Second

// TestBytesDamagedBetweenRanks executes small collectives among ranks that are connected like
// processes. All data and control connections pass through a middlebox, which injects one
// fault. Every rank must end with the right result or with an error. The error must be the same
// for all ranks that had joined. If bytes were damaged, the error must say so, or say that a
// message is missing.
func TestBytesDamagedBetweenRanks(t *testing.T) {
	n, at := 500, 8
	if testsize.Soak {
		n, at = 10_000, 32
	}
	var struck, failed, damaged [middlebox.Cut + 1]int // kind of a fault -> number of faults of that kind that occurred after the handshake
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
				case e.err == nil || !e.joined: // the rank succeeded, or did not join
				case first == nil:
					first = e.err
				case e.err.Error() != first.Error() && f.Kind != middlebox.Cut: // after a cut, each end sees only that the other end has disconnected
					say("different causes")
				}
				// After bytes were lost, no further message may arrive. In this case the error
				// is a standstill, or says that the other ranks have finished and left.
				standstill := errors.Is(e.err, membership.ErrTimeout) || f.Kind == middlebox.Lose && errors.Is(e.err, membership.ErrLeft)
				if e.err != nil && !told && f.Kind != middlebox.Cut && !standstill && f.At >= handshakeBytes {
					say("no error says that bytes were damaged")
					break
				}
			}
		})
	}
	running.Wait()
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(n)*(32<<20), "the ranks must not allocate as much memory as a damaged length field claims")
	t.Logf("by kind of fault: %v injected, %v runs failed, %v runs reported damage", struck, failed, damaged)
	for k := range struck {
		require.Greater(t, struck[k], n/200, "enough faults of kind %v must have been injected, or the test proves nothing", middlebox.Kind(k))
		switch middlebox.Kind(k) {
		case middlebox.Hold:
			require.Zero(t, failed[k], "no run may fail because of bytes that were only delayed")
		case middlebox.Cut:
		default:
			require.Greater(t, damaged[k], struck[k]/3, "faults of kind %v must be reported as damage", middlebox.Kind(k))
		}
	}
}
