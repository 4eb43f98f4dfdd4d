package copies

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// filesOf returns the files of a job in a directory, for an attempt, and what they log.
func filesOf(dir string, attempt int) (*Files, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return &Files{Dir: dir, Job: "job", Attempt: attempt, Logger: hclog.New(&hclog.LoggerOptions{Output: log})}, log
}

// writeState puts all pieces of a state into a Store, and writes its file.
func writeState(t testing.TB, f *Files, s State) {
	t.Helper()
	store := &Store{}
	for number := range s.Of {
		require.NoError(t, store.Put(s, number, content(s, number, sizeOf(s, number))))
	}
	f.Write(t.Context(), store, s)
}

// requireHeld requires that a Store holds all pieces of the given states, which it has read, and no others.
func requireHeld(t testing.TB, store *Store, states ...State) {
	t.Helper()
	var got []State
	for _, h := range store.Held() {
		got = append(got, h.State)
		for number := range h.Of {
			require.Equal(t, content(h.State, number, sizeOf(h.State, number)), store.Piece(h.State, number), "piece %d of %s", number, h.State)
		}
	}
	require.ElementsMatch(t, states, got)
	require.Equal(t, store.Held(), store.Read())
}

func namesIn(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestFiles writes states of two queues in several attempts. Each time, a Store of the next attempt must have
// the newest state of each queue, and there must be at most two files of a queue.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	newest := make(map[string]State)
	for attempt := 1; attempt <= 3; attempt++ {
		f, log := filesOf(dir, attempt)
		for step := 1; step <= 4; step++ {
			for _, queue := range []string{"means", "", "a name\x00 with / and ü"} {
				s := State{Queue: queue, Superstep: attempt*2 + step, Ended: attempt == 3 && step == 4, Of: 1 + attempt*3}
				writeState(t, f, s)
				newest[queue] = s
				count := 0
				for _, name := range namesIn(t, dir) {
					if strings.HasPrefix(name, prefixOf(queue)) {
						count++
					}
				}
				require.LessOrEqual(t, count, 2)
			}
			next, _ := filesOf(dir, attempt+1)
			store := &Store{}
			next.Read(store)
			requireHeld(t, store, newest["means"], newest[""], newest["a name\x00 with / and ü"])
		}
		require.Empty(t, log.String())
	}
	store := &Store{}
	f, _ := filesOf(dir, 4)
	f.Read(store)
	store.Keep([]Choice{{newest["means"], slices.Repeat([][]int{{0}}, newest["means"].Of)}}, 0, 1)
	require.Len(t, store.Held(), 1)
	require.Empty(t, store.Read(), "an attempt that follows has the state in memory")
}

// TestFilesThatAreRefused changes the newest of two files in many ways. It must be removed with a line in the
// log, and the one before must be read.
func TestFilesThatAreRefused(t *testing.T) {
	older, newer := State{Queue: "means", Superstep: 4, Of: 3}, State{Queue: "means", Superstep: 5, Of: 3}
	other := State{Queue: "other", Superstep: 9, Of: 3}
	for _, test := range []struct {
		name   string
		change func(t *testing.T, dir, path string)
		want   string
	}{
		{"torn", func(t *testing.T, _, path string) { require.NoError(t, os.Truncate(path, 100)) }, "unexpected EOF"},
		{"empty", func(t *testing.T, _, path string) { require.NoError(t, os.Truncate(path, 0)) }, "unexpected EOF"},
		{"something else", func(t *testing.T, _, path string) {
			require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("text"), 100), 0o600))
		}, "it is no state of a queue"},
		{"longer", func(t *testing.T, _, path string) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, append(data, 0), 0o600))
		}, "1 bytes follow its end"},
		{"of another job", func(t *testing.T, _, path string) {
			f := &Files{Dir: t.TempDir(), Job: "another", Attempt: 1, Logger: hclog.NewNullLogger()}
			writeState(t, f, newer)
			require.NoError(t, os.Rename(filepath.Join(f.Dir, f.name(newer)), path))
		}, `it is of job \"another\", and not of \"job\"`},
		{"of this attempt", func(t *testing.T, dir, path string) {
			require.NoError(t, os.Remove(path))
			f, _ := filesOf(dir, 2)
			writeState(t, f, newer)
		}, "it is of attempt 2, and this is attempt 2"},
		{"of another queue", func(t *testing.T, _, path string) {
			f, _ := filesOf(t.TempDir(), 1)
			writeState(t, f, other)
			require.NoError(t, os.Rename(filepath.Join(f.Dir, f.name(other)), path))
		}, "it is the file"},
		{"a directory", func(t *testing.T, _, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		}, "it is no file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			f, _ := filesOf(dir, 1)
			writeState(t, f, older)
			writeState(t, f, newer)
			test.change(t, dir, filepath.Join(dir, f.name(newer)))
			next, log := filesOf(dir, 2)
			store := &Store{}
			next.Read(store)
			requireHeld(t, store, older)
			require.Contains(t, log.String(), "refused, and removed")
			require.Contains(t, log.String(), test.want)
			require.Equal(t, []string{f.name(older)}, namesIn(t, dir))
		})
	}
}

// TestUnfinishedFiles requires that a file whose writing was cut off is not read, and that a file that cannot
// be written is an error that is logged once, leaves no part, and keeps the file before.
func TestUnfinishedFiles(t *testing.T) {
	dir := t.TempDir()
	f, log := filesOf(dir, 1)
	state := func(step int) State { return State{Queue: "means", Superstep: step, Of: 3} }
	writeState(t, f, state(1))
	data, err := os.ReadFile(filepath.Join(dir, f.name(state(1))))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, f.name(state(2))+partial), data[:len(data)/2], 0o600))
	store := &Store{}
	next, nextLog := filesOf(dir, 2)
	next.Read(store)
	requireHeld(t, store, state(1))
	require.NotContains(t, nextLog.String(), "WARN")

	require.Equal(t, []string{f.name(state(1))}, namesIn(t, dir), "what was cut off is removed")

	for step := 3; step < 5; step++ { // the Store lacks a piece
		store := &Store{}
		require.NoError(t, store.Put(state(step), 0, []byte("x")))
		f.Write(t.Context(), store, state(step))
	}
	require.Equal(t, 1, strings.Count(log.String(), "cannot be written to a file"), log.String())
	require.Contains(t, log.String(), `piece 1 of queue \"means\" after superstep 3 is not held`)
	require.Equal(t, []string{f.name(state(1))}, namesIn(t, dir))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("over"))
	writeOn := &Store{}
	for number := range 3 {
		require.NoError(t, writeOn.Put(state(5), number, []byte("x")))
	}
	f.Write(ctx, writeOn, state(5))
	require.Equal(t, []string{f.name(state(1))}, namesIn(t, dir))
	writeState(t, f, state(6))
	f.Dir = filepath.Join(dir, "gone")
	writeState(t, f, state(7))
	require.Equal(t, 2, strings.Count(log.String(), "cannot be written to a file"), "an error after a success is logged:\n%s", log.String())
}

func writeTo(ctx context.Context, store *Store, b *bytes.Buffer, h fileHead) error {
	return store.writeFile(ctx, bufio.NewWriter(b), h)
}

// encodeFile returns the file of a state.
func encodeFile(t testing.TB, s State) []byte {
	t.Helper()
	store := &Store{}
	for number := range s.Of {
		require.NoError(t, store.Put(s, number, content(s, number, sizeOf(s, number))))
	}
	var b bytes.Buffer
	require.NoError(t, writeTo(context.Background(), store, &b, fileHead{job: "job", attempt: 1, State: s}))
	return b.Bytes()
}

// decodeFile puts the state of a file into a Store.
func decodeFile(b []byte) (*Store, fileHead, error) {
	store := &Store{}
	f, err := openFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return store, fileHead{}, err
	}
	return store, f.fileHead, store.readFile(f)
}

// TestEveryBitOfFiles requires that a file in which any bit is changed, or that ends at any place, is an error
// after which the Store holds nothing.
func TestEveryBitOfFiles(t *testing.T) {
	whole := encodeFile(t, State{Queue: "means", Superstep: 6, Of: 3})
	_, head, err := decodeFile(whole)
	require.NoError(t, err)
	require.Equal(t, fileHead{"job", 1, State{Queue: "means", Superstep: 6, Of: 3}}, head)
	for i := range whole {
		damaged := slices.Clone(whole)
		damaged[i] ^= 1 << (i % 8)
		store, _, err := decodeFile(damaged)
		require.Error(t, err, "byte %d", i)
		require.Empty(t, store.Held())
		store, _, err = decodeFile(whole[:i])
		require.Error(t, err, "%d bytes", i)
		require.Empty(t, store.Held())
		require.Zero(t, store.Size())
	}
}

// FuzzFile requires that any bytes are an error after which the Store holds nothing, or are the file of the
// state that the Store holds then.
func FuzzFile(f *testing.F) {
	f.Add([]byte{})
	for _, s := range []State{{Queue: "means", Superstep: 1, Of: 1}, {Queue: "", Superstep: 6, Ended: true, Of: 4}} {
		f.Add(encodeFile(f, s))
	}
	lies := (&fileHead{job: "job", attempt: 1, State: State{Queue: "q", Superstep: 1, Of: MaxPieces}}).append(nil)
	f.Add(lies)
	f.Add(appendPieceHead(slices.Clone(lies), 0, MaxPiece, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		store, head, err := decodeFile(b)
		if err != nil {
			require.Empty(t, store.Held())
			return
		}
		require.NoError(t, head.check())
		var again bytes.Buffer
		require.NoError(t, writeTo(t.Context(), store, &again, head))
		require.Equal(t, b, again.Bytes())
	})
}
