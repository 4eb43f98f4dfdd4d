package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/disk"
)

// partOf returns the pieces of a state of two queues' supersteps that a process has: from first on,
// of n pieces in all.
func partOf(queue string, step, first, here, n int) State {
	var pieces [][]byte
	for i := range here {
		pieces = append(pieces, fmt.Appendf(nil, "%s after %d, piece %d", queue, step, first+i))
	}
	s := state(queue, step, false, pieces...)
	s.First, s.Of = first, n
	return s
}

// TestParts requires that a checkpoint has the pieces of all processes, in order, that each process
// loads those that it needs, and that another run continues with the pieces of all of them.
func TestParts(t *testing.T) {
	everywhere(t, func(t *testing.T, empty func() place) {
		p := empty()
		store, j := open(t, p, testRun)
		require.NoError(t, j.Announce(t.Context(), "job, attempt 1"))
		var parts []*PartWriter
		for process := 1; process <= 2; process++ {
			_, err := Join(t.Context(), store, j.Generation(), process, "job, attempt 2")
			require.ErrorContains(t, err, p.String()+" does not have what worker 0 has just written to it")
			_, err = Join(t.Context(), store, j.Generation()+1, process, "job, attempt 1")
			require.ErrorContains(t, err, "a directory that all of them share")
			w, err := Join(t.Context(), store, j.Generation(), process, "job, attempt 1")
			require.NoError(t, err)
			parts = append(parts, w)
		}
		require.NoError(t, parts[1].Write(t.Context(), []State{partOf("c", 1, 4, 2, 6)}))
		for step := 1; step <= 3; step++ {
			done := make(chan error, 1)
			go func() {
				// Process 2 has no pieces of queue b, and has written a later state of queue a.
				err := parts[1].Write(t.Context(), []State{partOf("a", step, 4, 2, 6), partOf("a", step+1, 4, 2, 6)})
				time.Sleep(time.Second)
				if err == nil {
					err = parts[0].Write(t.Context(), []State{partOf("b", step, 1, 1, 2), partOf("a", step, 2, 2, 6)})
				}
				done <- err
			}()
			m := write(t, j, partOf("a", step, 0, 2, 6), partOf("b", step, 0, 1, 2))
			require.NoError(t, <-done)
			require.Len(t, m.Queues[0].Blobs, 6)
			require.Len(t, m.Queues[1].Blobs, 2)
		}
		require.Contains(t, p.blobs(t), parts[1].name(partKind, partOf("a", 4, 4, 2, 6), 2), "parts of a state whose manifest is not written yet must be kept")
		require.Contains(t, p.blobs(t), parts[1].name(stateKind, partOf("c", 1, 4, 2, 6), 4), "pieces of a queue that no manifest has yet must be kept")
		require.NotContains(t, p.blobs(t), parts[1].name(partKind, partOf("a", 3, 4, 2, 6), 2))
		require.NoError(t, store.Close())

		store, j = open(t, p, testRun)
		needed := func(queue string, piece, pieces int) bool {
			return queue == "a" && piece%3 == 0 && pieces == 6 || queue == "b" && piece == 1 && pieces == 2
		}
		c, refused, err := j.Load(t.Context(), needed)
		require.NoError(t, err)
		require.Empty(t, refused)
		want := [][][]byte{{[]byte("a after 3, piece 0"), nil, nil, []byte("a after 3, piece 3"), nil, nil}, {nil, []byte("b after 3, piece 1")}}
		require.Equal(t, want, c.Pieces)
		whole := p.blobs(t)
		for _, b := range c.Queues[0].Blobs[1:3] { // none of which this process needs
			p.set(t, b.Name, append(whole[b.Name], 0))
			again, err := Open(t.Context(), store, testRun)
			require.NoError(t, err)
			older, refused, err := again.Load(t.Context(), needed)
			require.NoError(t, err)
			require.Equal(t, c.Number-1, older.Number, "all pieces must be verified")
			require.Len(t, refused, 1)
			p.set(t, b.Name, whole[b.Name])
		}
		require.NoError(t, j.Announce(t.Context(), "k"))
		_, err = Join(t.Context(), store, j.Generation(), 1, "k")
		require.NoError(t, err)
		again, err := LoadNumber(t.Context(), store, c.Number, needed)
		require.NoError(t, err)
		require.Equal(t, c, again)
		write(t, j, partOf("a", 4, 0, 6, 6))
		for name := range p.blobs(t) {
			n, ok := parseName(name)
			require.True(t, ok)
			require.False(t, n.kind != stateKind && n.kind != manifestKind && n.number < j.Generation(), "%s of the earlier run must be removed", name)
		}
		require.NoError(t, j.Remove(t.Context()))
		require.Empty(t, p.blobs(t))
		require.NoError(t, store.Close())
	})
}

// TestMissingParts requires that a checkpoint waits for a process that is slow, and says for what, and
// that the one before stays if the wait is ended.
func TestMissingParts(t *testing.T) {
	everywhere(t, func(t *testing.T, empty func() place) {
		store, j := open(t, empty(), testRun)
		defer store.Close()
		write(t, j, state("a", 1, false, []byte("one")))
		require.Empty(t, j.Awaited())
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Minute, func() {
			require.Equal(t, `2 of the 3 subtasks of queue "a" have not written their state, from subtask 1 on`, j.Awaited())
			cancel(errCrashed)
		})
		_, _, err := j.Write(ctx, []State{partOf("a", 3, 0, 2, 4)})
		require.ErrorIs(t, err, errCrashed)
		require.ErrorContains(t, err, `queue "a" after superstep 3`)
		require.Empty(t, j.Awaited())
		j, err = Open(t.Context(), store, testRun)
		require.NoError(t, err)
		c, _, err := j.Load(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, 1, c.Number)
	})
}

// TestDamagedParts requires that lists of pieces that are damaged, or do not fit, are errors that
// name them.
func TestDamagedParts(t *testing.T) {
	for want, list := range map[string]any{
		"another process has written state-":             partList{First: 1, Blobs: []Blob{{Name: pieceName(1, "a", 1, 1)}}},
		"it has 2 pieces from 3 on, and the state has 4": partList{First: 3, Blobs: make([]Blob, 2)},
		"it has 0 pieces from -1 on":                     partList{First: -1},
		`there is a blob "../x" of 0 bytes`:              partList{First: 2, Blobs: []Blob{{Name: "../x"}}},
		"it is of another program":                       "text",
		"it is damaged: its checksum is wrong":           nil,
	} {
		path := t.TempDir()
		store, j := open(t, inDir(path), testRun)
		s := partOf("a", 1, 0, 2, 4)
		data, err := sealed(list)
		require.NoError(t, err)
		if list == nil {
			data[0] ^= 1
		}
		name := j.name(partKind, s, 1)
		inDir(path).set(t, name, data)
		_, _, err = j.Write(t.Context(), []State{s})
		require.ErrorContains(t, err, name+": "+want)
		require.NoError(t, store.Close())
	}
}

// TestStaleRun requires that a run that was taken for lost, and goes on, removes nothing of the run
// that has replaced it.
func TestStaleRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared")
	store, stale := open(t, inDir(path), testRun)
	write(t, stale, state("a", 1, false, []byte("one")))
	require.NoError(t, store.Close())
	store, next := open(t, inDir(path), testRun)
	_, _, err := next.Load(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, next.Announce(t.Context(), "k"))
	require.NoError(t, next.Announce(t.Context(), "k"))
	write(t, next, state("a", 2, false, []byte("two")))
	m := write(t, next, state("a", 3, false, []byte("three")))
	require.NoError(t, stale.Remove(t.Context()))
	_, _, err = stale.Write(t.Context(), []State{state("a", 2, false, []byte("two"))})
	require.ErrorIs(t, err, ErrTaken)
	require.NoError(t, stale.Remove(t.Context()))
	names, err := store.List(t.Context())
	require.NoError(t, err)
	slices.Sort(names)
	require.Equal(t, []string{
		lockName, manifestName(m.Number), "run-00000002", pieceName(2, "a", 2, 0), pieceName(2, "a", 3, 0),
	}, names)
	require.NoError(t, store.Close())
}

// TestJoinDir requires that a directory that is used by another process can be joined, that this
// changes nothing there, and that a directory that does not exist is an error.
func TestJoinDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared")
	_, err := JoinDir(disk.OS(), path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	store, err := OpenDir(disk.OS(), path)
	require.NoError(t, err)
	partial := ".x.1.partial"
	inDir(path).set(t, partial, nil)
	joined, err := JoinDir(disk.OS(), path)
	require.NoError(t, err)
	require.NoError(t, joined.Put(t.Context(), "blob", []byte("data")))
	require.NoError(t, joined.Close())
	data, err := store.Get(t.Context(), "blob", 10)
	require.NoError(t, err)
	require.Equal(t, "data", string(data))
	require.Contains(t, inDir(path).blobs(t), partial)
	_, err = OpenDir(disk.OS(), path)
	require.ErrorContains(t, err, "another run", "the lock must be held")
	require.NoError(t, store.Close())
}

// FuzzNames requires that a name that is accepted is the name of its parts.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"checkpoint-00000001", "run-00000009", pieceName(3, "a", 5, 7), "part-00000001-0123456789abcdef-1-0", "state-1", "checkpoint-00000000", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := parseName(text)
		if !ok {
			return
		}
		again, ok := parseName(n.String())
		require.True(t, ok)
		require.Equal(t, n, again)
	})
}
