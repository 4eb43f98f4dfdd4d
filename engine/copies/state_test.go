package copies

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawHeld draws what a process may hold.
func drawHeld(t *rapid.T) (all []Held) {
	for range rapid.IntRange(0, 5).Draw(t, "states") {
		h := Held{State{
			Queue: rapid.String().Draw(t, "queue"), Superstep: rapid.IntRange(1, maxSuperstep).Draw(t, "superstep"),
			Ended: rapid.Bool().Draw(t, "ended"), Of: rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, MaxPieces)).Draw(t, "of"),
		}, []int{}}
		for next := rapid.IntRange(0, 3).Draw(t, "first"); next < h.Of && len(h.Pieces) < 20; next += rapid.IntRange(1, 100).Draw(t, "gap") {
			h.Pieces = append(h.Pieces, next)
		}
		all = append(all, h)
	}
	return all
}

// TestHeldComesBack requires that the encoding of what a process holds decodes to the same, and that
// no prefix of it and no longer text decodes.
func TestHeldComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held := drawHeld(t)
		b := AppendHeld([]byte("before"), held)[len("before"):]
		got, err := DecodeHeld(b)
		require.NoError(t, err)
		require.Len(t, got, len(held))
		for i := range held {
			require.Equal(t, held[i], got[i])
		}
		for n := range b {
			_, err := DecodeHeld(b[:n])
			require.Error(t, err)
		}
		_, err = DecodeHeld(append(b, 0))
		require.ErrorContains(t, err, "1 bytes too many")
	})
}

// TestHeldThatLies requires an error for numbers that have no meaning, without memory for what they
// claim.
func TestHeldThatLies(t *testing.T) {
	valid := Held{State{"means", 5, true, 9}, []int{0, 4, 8}}
	for _, c := range []struct {
		name string
		held []Held
		err  string
	}{
		{"superstep 0", []Held{{State{"means", 0, false, 9}, nil}}, `there is no superstep 0 of queue "means"`},
		{"no pieces", []Held{{State{"means", 5, false, 0}, nil}}, "a state of 0 pieces"},
		{"too many pieces", []Held{{State{"means", 5, false, MaxPieces + 1}, nil}}, "at most"},
		{"piece after the last", []Held{valid, {State{"means", 5, false, 2}, []int{2}}}, "at most"},
		{"piece after the last, later", []Held{{State{"means", 5, false, 3}, []int{1, 3}}}, ""},
		{"more pieces than there are", []Held{{State{"means", 5, false, 2}, []int{0, 1, 2}}}, "at most"},
		{"superstep of 32 bits", []Held{{State{"means", math.MaxInt32 + 1, false, 2}, []int{0}}}, "at most"},
		{"long name", []Held{{State{strings.Repeat("q", maxQueue+1), 1, false, 2}, nil}}, "at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeHeld(AppendHeld(nil, c.held))
			require.ErrorContains(t, err, c.err)
		})
	}
	t.Run("many elements", func(t *testing.T) {
		b := []byte{255, 255, 255, 127}
		require.Less(t, testing.AllocsPerRun(10, func() {
			_, err := DecodeHeld(b)
			require.Error(t, err)
		}), 100.0)
	})
}

// FuzzHeld requires that any bytes are an error or decode to states that encode and decode to the
// same.
func FuzzHeld(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendHeld(nil, nil))
	f.Add(AppendHeld(nil, []Held{{State{"means", 5, true, 9}, []int{0, 4, 8}}, {State{"", 1, false, 1}, nil}}))
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.IntN(12))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		held, err := DecodeHeld(b)
		if err != nil {
			return
		}
		for _, h := range held {
			require.NoError(t, h.check())
			for i, number := range h.Pieces {
				require.NoError(t, h.checkPiece(number, 0))
				require.True(t, i == 0 || h.Pieces[i-1] < number)
			}
		}
		again, err := DecodeHeld(AppendHeld(nil, held))
		require.NoError(t, err)
		require.Equal(t, held, again)
	})
}

// TestAges requires that states are ordered by superstep, with those after which no superstep follows
// at the end.
func TestAges(t *testing.T) {
	var states []State // the oldest first
	for _, ended := range []bool{false, true} {
		for superstep := 1; superstep <= 5; superstep++ {
			states = append(states, State{"means", superstep, ended, 1 + superstep%2})
		}
	}
	for i, s := range states {
		for k, other := range states {
			switch c := s.compare(other); {
			case i < k:
				require.Negative(t, c)
			case i > k:
				require.Positive(t, c)
			default:
				require.Zero(t, c)
			}
		}
	}
}
