package jobmanager

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

func testSpool(t *testing.T, limit int64) (*spool, string) {
	path := filepath.Join(t.TempDir(), "events")
	s := newSpool("a", limit, func() (*os.File, error) { return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) })
	t.Cleanup(func() { s.seal() })
	return s, path
}

func rows(node int, data string) *wire.Event {
	return &wire.Event{Collected: &wire.Collected{Node: node, Rows: []byte(data)}}
}

// replay reads events from a file until the first error, and returns the events and the error.
func replay(t *testing.T, path string, size int64, from uint64) ([]*wire.Event, error) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	r := spoolReader{file: f, seed: spoolSeed("a")}
	var events []*wire.Event
	for {
		e, err := r.next(size, from)
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func TestSpoolReplays(t *testing.T) {
	s, path := testSpool(t, 100)
	texts := []string{"alpha", "", "beta", strings.Repeat("g", 80)}
	for i, text := range texts {
		e := rows(i, text)
		require.NoError(t, s.append(e))
		require.EqualValues(t, i+1, e.Number)
	}
	for from := range uint64(6) {
		events, err := replay(t, path, s.view().size, from)
		require.ErrorIs(t, err, io.EOF)
		require.Len(t, events, max(0, len(texts)-max(0, int(from)-1)))
		for _, e := range events {
			require.Equal(t, texts[e.Number-1], string(e.Collected.Rows))
		}
	}
	n, err := s.seal()
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
	require.ErrorIs(t, s.append(rows(0, "late")), errSealed)
	n, err = s.seal()
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
}

func TestSpoolLimit(t *testing.T) {
	s, path := testSpool(t, 10)
	require.NoError(t, s.append(rows(0, "0123456")))
	err := s.append(&wire.Event{Output: &wire.Output{Text: []byte("0123")}})
	require.ErrorIs(t, err, errOverLimit)
	require.ErrorContains(t, err, "--max-result")
	require.NoError(t, s.append(&wire.Event{State: &wire.JobInfo{ID: "a"}}), "states must not count against the limit")
	require.EqualValues(t, 7, s.sent())
	events, err := replay(t, path, s.view().size, 0)
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, events, 2)
}

// TestSpoolOnStuckDisk requires that while the disk does not respond, only writers wait.
func TestSpoolOnStuckDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	asked, answer := make(chan struct{}), make(chan struct{})
	s := newSpool("a", 1000, func() (*os.File, error) {
		close(asked)
		<-answer
		return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	})
	appended := make(chan error)
	go func() { appended <- s.append(rows(0, "late")) }()
	<-asked
	s.advance(&wire.Progress{})
	require.NotNil(t, s.view().progress)
	require.Zero(t, s.sent())
	close(answer)
	require.NoError(t, <-appended)
	require.EqualValues(t, 4, s.sent())
	n, err := s.seal()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// TestSpoolOnFullDisk requires that a frame that was written only in part is removed, so that
// later frames can be read.
func TestSpoolOnFullDisk(t *testing.T) {
	s, path := testSpool(t, 1000)
	require.NoError(t, s.append(rows(0, "first")))
	whole := s.view().size
	good := s.file
	readonly, err := os.Open(path)
	require.NoError(t, err)
	defer readonly.Close()
	s.file = readonly
	require.Error(t, s.append(rows(0, "lost")))
	require.Equal(t, whole, s.view().size)
	s.file = good
	require.NoError(t, s.append(rows(0, "second")))
	events, err := replay(t, path, s.view().size, 2)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "second", string(events[0].Collected.Rows))
}

func TestSpoolDamaged(t *testing.T) {
	s, path := testSpool(t, 1000)
	require.NoError(t, s.append(rows(0, "first")))
	first := s.view().size
	require.NoError(t, s.append(rows(0, "second")))
	size := s.view().size
	intact, err := os.ReadFile(path)
	require.NoError(t, err)
	for at := range intact { // a change of any byte, and any truncation, must be detected
		damaged := bytes.Clone(intact)
		damaged[at] ^= 0x41
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		_, err := replay(t, path, size, 0)
		require.ErrorIs(t, err, errTorn, "byte %d", at)
		cut := int64(at)
		require.NoError(t, os.WriteFile(path, intact[:cut], 0o600))
		events, err := replay(t, path, cut, 0)
		if cut == 0 || cut == first {
			require.ErrorIs(t, err, io.EOF)
		} else {
			require.ErrorIs(t, err, errTorn, "cut at %d", cut)
		}
		if cut >= first {
			require.Equal(t, "first", string(events[0].Collected.Rows))
		}
	}
}

func TestSpoolWakesReaders(t *testing.T) {
	s, _ := testSpool(t, 1000)
	before := s.view()
	s.advance(&wire.Progress{})
	<-before.changed
	before = s.view()
	require.EqualValues(t, 1, before.steps)
	require.NotNil(t, before.progress)
	require.NoError(t, s.append(rows(0, "x")))
	<-before.changed
	before = s.view()
	_, err := s.seal()
	require.NoError(t, err)
	<-before.changed
	require.True(t, s.view().sealed)
	s.advance(&wire.Progress{})
	require.Nil(t, s.view().progress)
}

func FuzzSpoolReader(f *testing.F) {
	var b bytes.Buffer
	path := filepath.Join(f.TempDir(), "events")
	s := newSpool("a", 1000, func() (*os.File, error) { return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) })
	for _, text := range []string{"one", "two"} {
		require.NoError(f, s.append(rows(1, text)))
	}
	_, err := s.seal()
	require.NoError(f, err)
	data, err := os.ReadFile(path)
	require.NoError(f, err)
	b.Write(data)
	f.Add(b.Bytes(), uint64(0))
	f.Add(b.Bytes()[:11], uint64(2))
	f.Add([]byte("\xff\xff\xff\xff\x00\x00\x00\x00"), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, from uint64) {
		r := spoolReader{file: bytes.NewReader(data), seed: spoolSeed("a")}
		for {
			if _, err := r.next(int64(len(data)), from); err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, errTorn) && !errors.Is(err, errNotOurs) {
					t.Fatal(err)
				}
				return
			}
		}
	})
}

// TestSpoolCutWhileRead requires that next returns another error than io.EOF if the file has
// been truncated, and that it does not count events that it has not read.
func TestSpoolCutWhileRead(t *testing.T) {
	s, path := testSpool(t, 1000)
	require.NoError(t, s.append(rows(0, "first")))
	first := s.view().size
	require.NoError(t, s.append(rows(0, "second")))
	size := s.view().size
	intact, err := os.ReadFile(path)
	require.NoError(t, err)
	for cut := first; cut < size; cut++ {
		require.NoError(t, os.WriteFile(path, intact[:cut], 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		r := spoolReader{file: f, seed: spoolSeed("a")}
		_, err = r.next(size, 0)
		require.NoError(t, err)
		for range 2 {
			_, err = r.next(size, 0)
			require.NotErrorIs(t, err, io.EOF, "cut at %d", cut)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut at %d", cut)
			require.EqualValues(t, 1, r.number)
			require.Equal(t, first, r.offset)
		}
		require.NoError(t, f.Close())
	}
}

// TestSpoolOutOfOrder requires an error for undamaged events at a wrong position: an event is
// missing in the middle, an event occurs twice, or two events are swapped.
func TestSpoolOutOfOrder(t *testing.T) {
	s, path := testSpool(t, 1000)
	ends := []int64{0}
	for _, text := range []string{"one", "two", "six"} {
		require.NoError(t, s.append(rows(0, text)))
		ends = append(ends, s.view().size)
	}
	intact, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, order := range [][]int{{0, 2}, {1, 2}, {0, 0, 1, 2}, {0, 2, 1}, {1, 0, 2}} {
		var moved []byte
		good := 0
		for i, n := range order {
			moved = append(moved, intact[ends[n]:ends[n+1]]...)
			if good == i && n == i {
				good++
			}
		}
		require.NoError(t, os.WriteFile(path, moved, 0o600))
		events, err := replay(t, path, int64(len(moved)), 0)
		require.ErrorIs(t, err, errTorn, "%v", order)
		require.ErrorContains(t, err, "in the place of", "%v", order)
		require.Len(t, events, good, "%v", order)
	}
}

// TestSpoolOfAnother requires an error for undamaged events of another job, and that the file
// is not modified.
func TestSpoolOfAnother(t *testing.T) {
	s, path := testSpool(t, 1000)
	require.NoError(t, s.append(&wire.Event{State: &wire.JobInfo{ID: "a"}}))
	require.NoError(t, s.append(rows(0, "rows of a")))
	_, err := s.seal()
	require.NoError(t, err)
	ours, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	reader := spoolReader{file: file, seed: spoolSeed("b")}
	_, err = reader.next(int64(len(ours)), 0)
	require.ErrorContains(t, err, "event 1: the file of the job's events is not its own: it is that of job a")
	_, _, err = resumeSpool("b", 1000, file)
	require.ErrorIs(t, err, errNotOurs)
	require.NoError(t, file.Close())
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, ours, kept, "the file must not be truncated")
	// After its first event, the file gets bytes of another job's file.
	require.NoError(t, os.WriteFile(path, ours, 0o600))
	o, other := testSpool(t, 1000)
	o.seed = spoolSeed("b")
	require.NoError(t, o.append(&wire.Event{State: &wire.JobInfo{ID: "b"}}))
	first := o.view().size
	require.NoError(t, o.append(rows(0, "rows of b")))
	theirs, err := os.ReadFile(other)
	require.NoError(t, err)
	mixed := append(bytes.Clone(ours[:first]), theirs[first:]...)
	require.Len(t, mixed, len(ours))
	require.NoError(t, os.WriteFile(path, mixed, 0o600))
	events, err := replay(t, path, int64(len(mixed)), 0)
	require.ErrorIs(t, err, errTorn)
	require.Len(t, events, 1)
}
