package copies

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// model is a simple Store of one queue, to compare with.
type model struct {
	complete State
	pieces   map[State]map[int][]byte
}

func (m *model) older(s, than State) bool {
	if s.Ended != than.Ended {
		return than.Ended
	}
	return s.Superstep <= than.Superstep && s != than
}

func (m *model) put(s State, number int, data []byte) {
	if m.complete.Of > 0 && m.older(s, m.complete) {
		return
	}
	if m.pieces[s] == nil {
		m.pieces[s] = make(map[int][]byte)
	}
	if m.pieces[s][number] == nil {
		m.pieces[s][number] = data
	}
	if len(m.pieces) > 3 {
		var oldest State
		for held := range m.pieces {
			if held != m.complete && (oldest.Of == 0 || m.older(held, oldest)) {
				oldest = held
			}
		}
		delete(m.pieces, oldest)
	}
}

func (m *model) finish(s State) {
	if m.complete.Of > 0 && (m.older(s, m.complete) || s == m.complete) {
		return
	}
	m.complete = s
	for held := range m.pieces {
		if m.older(held, s) {
			delete(m.pieces, held)
		}
	}
}

// TestStore compares a Store with the model in random operations, and requires that pieces that were
// read keep their bytes whatever happens to the Store.
func TestStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := &Store{}, &model{pieces: make(map[State]map[int][]byte)}
		var read, want [][]byte
		drawState := func() State {
			step := rapid.IntRange(1, 6).Draw(t, "superstep")
			return State{"means", step, step == 6, 3}
		}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			st, number := drawState(), rapid.IntRange(0, 2).Draw(t, "number")
			switch rapid.IntRange(0, 5).Draw(t, "operation") {
			case 0, 1, 2:
				data := content(st, number, rapid.IntRange(0, 300).Draw(t, "size"))
				given := slices.Clone(data)
				require.NoError(t, s.Put(st, number, given))
				clear(given)
				m.put(st, number, data)
			case 3:
				data := s.Piece(st, number)
				require.Equal(t, m.pieces[st][number], data)
				read, want = append(read, data), append(want, slices.Clone(data))
			case 4:
				s.Complete(st)
				m.finish(st)
			case 5:
				if p := s.acquire(st, number); p != nil {
					require.Equal(t, checksum.Of(m.pieces[st][number]), p.sum)
					defer func(want []byte) {
						require.Equal(t, want, p.data, "a piece that is in use")
						s.release(p)
					}(slices.Clone(p.data))
				}
			}
			size := 0
			var held []Held
			for superstep := 1; superstep <= 6; superstep++ {
				st := State{"means", superstep, superstep == 6, 3}
				if len(m.pieces[st]) == 0 {
					continue
				}
				h := Held{State: st}
				for number := range 3 {
					if data := m.pieces[st][number]; data != nil {
						h.Pieces, size = append(h.Pieces, number), size+len(data)
						require.Equal(t, data, s.Piece(st, number))
					}
				}
				held = append(held, h)
			}
			require.Equal(t, held, s.Held())
			require.Equal(t, int64(size), s.Size())
			require.LessOrEqual(t, len(held), maxStates)
		}
		require.Equal(t, want, read)
	})
}

// TestStoreKeeps requires that an attempt keeps only the states from which it continues, and may then
// do supersteps again that were complete before.
func TestStoreKeeps(t *testing.T) {
	s := &Store{}
	state := func(queue string, superstep int) State { return State{queue, superstep, false, 2} }
	for _, queue := range []string{"means", "trees"} {
		for superstep := 3; superstep <= 5; superstep++ {
			require.NoError(t, s.Put(state(queue, superstep), 1, []byte("piece")))
		}
	}
	s.Complete(state("means", 5))
	s.Keep([]Choice{{state("trees", 4), nil}, {state("sums", 7), nil}}, 0, 1)
	require.Equal(t, []Held{{state("trees", 4), []int{1}}}, s.Held())
	require.Equal(t, int64(5), s.Size())
	for _, old := range []State{state("trees", 3), state("sums", 6)} {
		require.NoError(t, s.Put(old, 0, nil))
	}
	require.NoError(t, s.Put(state("means", 1), 0, nil))
	require.NoError(t, s.Put(state("trees", 5), 0, nil))
	require.Equal(t, []Held{{state("means", 1), []int{0}}, {state("trees", 4), []int{1}}, {state("trees", 5), []int{0}}}, s.Held())
}

// TestStoreRefuses requires errors for what is no piece of a state.
func TestStoreRefuses(t *testing.T) {
	s := &Store{}
	require.EqualError(t, s.Put(State{"means", 5, false, 2}, 2, nil), `queue "means" after superstep 5: there is no piece 2 of 2`)
	require.EqualError(t, s.Put(State{"means", 0, false, 2}, 0, nil), `there is no superstep 0 of queue "means"`)
	require.ErrorContains(t, s.Put(State{"means", 5, false, MaxPieces + 1}, 0, nil), "a state of 1048578 pieces, where there are 1 to 1048577")
	require.ErrorContains(t, State{"means", 5, false, 2}.checkPiece(1, MaxPiece+1), "piece 1 has 2147483648 bytes, more than 2147483647: only durable checkpoints can keep it")
	s.Complete(State{"means", 0, false, 2})
	require.Empty(t, s.Held())
}

// TestMemoryIsReused requires that state after state takes no new memory, also if sizes vary a
// little, and that after the last state no memory is kept for reuse.
func TestMemoryIsReused(t *testing.T) {
	s := &Store{}
	st := State{Queue: "means", Of: 4}
	big := make([]byte, 1<<20)
	next := func() {
		st.Superstep++
		for number := range st.Of {
			if err := s.Put(st, number, big[:len(big)-st.Superstep%7*1000-number]); err != nil {
				t.Fatal(err)
			}
		}
		s.Complete(st)
	}
	for range 3 {
		next()
	}
	require.Less(t, testing.AllocsPerRun(20, next), 1.0)
	q := s.queues["means"]
	require.Len(t, q.spare, 4)
	require.LessOrEqual(t, q.spared, q.bytes*9/8)
	st.Ended = true
	next()
	require.Empty(t, q.spare)
}

// TestMemoryThatDoesNotFit requires that memory for reuse that is too small for what comes is let go.
func TestMemoryThatDoesNotFit(t *testing.T) {
	s := &Store{}
	st := State{Queue: "means", Of: 1}
	for size := 1000; size < 1<<20; size *= 2 {
		for range 3 {
			st.Superstep++
			require.NoError(t, s.Put(st, 0, make([]byte, size)))
			s.Complete(st)
			q := s.queues["means"]
			require.LessOrEqual(t, q.spared, q.bytes*9/8, fmt.Sprint(size))
		}
	}
}

// TestStoreFromManyGoroutines uses a Store from several goroutines, for the race detector.
func TestStoreFromManyGoroutines(t *testing.T) {
	s := &Store{}
	var work sync.WaitGroup
	for g := range 4 {
		work.Go(func() {
			for superstep := 1; superstep <= 200; superstep++ {
				st := State{"means", superstep, false, 4}
				if err := s.Put(st, g, content(st, g, 100)); err != nil {
					t.Error(err)
				}
				for number := range 4 {
					if p := s.acquire(st, number); p != nil {
						if checksum.Of(p.data) != p.sum {
							t.Errorf("%s, piece %d has changed", st, number)
						}
						s.release(p)
					}
				}
				if g == 0 {
					s.Complete(st)
				}
				s.Held()
				s.Size()
			}
		})
	}
	work.Wait()
}
