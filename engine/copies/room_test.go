package copies

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// TestNoRoom takes the room for copies from one worker of three for some states. These must be void, and let
// go of memory for reuse, the complete one before must be left, and the log must say so once. Later states
// must be complete again.
func TestNoRoom(t *testing.T) {
	const workers = 3
	var full atomic.Bool
	var log bytes.Buffer
	g := newGroup(t, workers, func(worker int, c *Config) {
		if worker == 1 {
			c.Room = func(int64) bool { return !full.Load() }
			c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})
		}
	})
	s := State{Queue: "means", Superstep: 4, Of: 7}
	g.shareAll(s)
	require.False(t, g.xs[0].Voided("means"))
	complete := s
	for range 3 {
		full.Store(true)
		s.Superstep++
		for w := range workers {
			g.share(w, s)
		}
		require.NoError(t, g.xs[0].Await(soon(t), "means"))
		require.True(t, g.xs[0].Voided("means"))
		for w := range workers {
			require.Equal(t, []State{complete}, statesOf(g.stores[w]), "worker %d", w)
		}
		full.Store(false)
		s.Superstep++
		g.shareAll(s)
		require.False(t, g.xs[0].Voided("means"))
		complete = s
	}
	for _, x := range g.xs {
		x.Close()
	}
	require.Equal(t, 1, strings.Count(log.String(), "has no room for it"), log.String())
}

func statesOf(s *Store) (all []State) {
	for _, h := range s.Held() {
		all = append(all, h.State)
	}
	return all
}

// TestGrowth requires that a Store says how much memory a piece would take, before and after memory was kept
// for reuse and let go.
func TestGrowth(t *testing.T) {
	s := &Store{}
	st := State{Queue: "means", Of: 2}
	require.EqualValues(t, roomFor(1000), s.growth("means", 1000))
	for range 2 {
		st.Superstep++
		before := s.Memory()
		grows := s.growth("means", 1000)
		require.NoError(t, s.Put(st, 0, make([]byte, 1000)))
		require.Equal(t, before+grows, s.Memory())
		s.Complete(st)
	}
	require.Zero(t, s.growth("means", 1000))
	require.EqualValues(t, 2*roomFor(1000), s.Memory())
	s.trim()
	require.EqualValues(t, roomFor(1000), s.Memory())
	require.EqualValues(t, roomFor(1000), s.growth("means", 1000))
}

// TestSkippedBodies requires that bodies that nobody wants are checked as others are, and that the next frame
// is read after them.
func TestSkippedBodies(t *testing.T) {
	s := State{"trees", 5, false, 9}
	for _, size := range []int{0, 1, checksum.PieceBytes, stepBytes, 2*stepBytes + 7} {
		all := []sample{
			{Message{kind: kindPiece, State: s, piece: 2}, content(s, 2, size)},
			{Message{kind: kindPiece, State: s, piece: 3}, []byte("next")},
		}
		b, ends := encoded(t, all)
		skip := func(b []byte) (*frameReader, error) {
			r := newFrameReader(bytes.NewReader(b), nil)
			h, err := r.next()
			require.NoError(t, err)
			return r, r.skip(h.length)
		}
		r, err := skip(b)
		require.NoError(t, err)
		h, err := r.next()
		require.NoError(t, err)
		require.Equal(t, 3, h.piece)
		if size == 0 {
			continue
		}
		for _, back := range []int{1, sumBytes, sumBytes + 1, sumBytes + size} {
			damaged := slices.Clone(b)
			damaged[ends[0]-back] ^= 4
			_, err := skip(damaged)
			require.ErrorIs(t, err, peerlink.ErrDamaged)
		}
		_, err = skip(b[:ends[0]-sumBytes-1])
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}
