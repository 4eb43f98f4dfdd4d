package jobmanager

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// disk stores the changes that a recorder writes in tests. If full is set, writes fail.
type disk struct {
	mu      sync.Mutex
	full    bool
	written []string
	tries   int
}

var errDiskFull = errors.New("no space")

func (d *disk) write(changes []change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if d.full {
		return errDiskFull
	}
	for _, c := range changes {
		d.written = append(d.written, string(c.id)+"="+string(c.record))
	}
	return nil
}

func (d *disk) setFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func put(r *recorder, id, record string, then func(error)) {
	r.put(entry{change: &change{id: wire.JobID(id), record: []byte(record)}, then: then})
}

func TestRecorderKeepsOrder(t *testing.T) {
	d := &disk{}
	r := newRecorder(d.write, func(err error) { t.Error(err) }, time.Hour)
	var want []string
	var then []int // only the recorder's goroutine appends to it, until close
	for i := range 1000 {
		record := string(rune('a' + i%26))
		want = append(want, "j="+record)
		put(r, "j", record, func(error) { then = append(then, i) })
	}
	r.close()
	require.Equal(t, want, d.written)
	require.Len(t, then, 1000)
	require.IsIncreasing(t, then)
	require.Less(t, d.tries, 1000, "a transaction must have the changes of many entries")
}

// TestRecorderClosesEmpty requires that entries that are added while the recorder closes are
// processed too.
func TestRecorderClosesEmpty(t *testing.T) {
	d := &disk{}
	r := newRecorder(d.write, func(err error) { t.Error(err) }, time.Hour)
	put(r, "a", "1", func(error) {
		put(r, "b", "2", func(error) { put(r, "c", "3", nil) })
	})
	r.close()
	require.Equal(t, []string{"a=1", "b=2", "c=3"}, d.written)
}

// TestRecorderOnFullDisk requires that on a full disk the function then of an entry gets the
// error. The recorder must retry changes without then, in order and before later changes.
func TestRecorderOnFullDisk(t *testing.T) {
	d := &disk{full: true}
	r := newRecorder(d.write, func(error) {}, time.Millisecond)
	told := make(chan error)
	put(r, "a", "1", nil)
	put(r, "b", "1", func(err error) { told <- err })
	require.ErrorIs(t, <-told, errDiskFull)
	put(r, "a", "2", nil)
	r.put(entry{then: func(err error) { told <- err }})
	require.NoError(t, <-told, "an entry without a change must not get the error of other entries")
	d.setFull(false)
	put(r, "c", "1", func(err error) { told <- err })
	require.NoError(t, <-told)
	r.close()
	require.Equal(t, []string{"a=1", "a=2", "c=1"}, d.written)
}

func TestRecorderTriesAgainByItself(t *testing.T) {
	d := &disk{full: true}
	r := newRecorder(d.write, func(error) {}, time.Millisecond)
	put(r, "a", "1", nil)
	eventually(t, "the recorder has retried the write", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.tries > 2 })
	d.setFull(false)
	eventually(t, "the change is written", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.written) == 1 })
	r.close()
	require.Equal(t, []string{"a=1"}, d.written)
}

// TestHistoryCannotBeWritten requires that a job is accepted only if it can be recorded, and
// that it commits only if the state committing can be recorded.
func TestHistoryCannotBeWritten(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	require.NoError(t, m.Ready())
	require.NoError(t, m.history.close())
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Finished: &wire.Finished{}})
	require.NotNil(t, tm.next().Worker.Cancel, "the worker must be told to cancel, and not to commit")
	tm.ended(d.WorkerRef, nil)
	eventually(t, "the job has failed", func() bool { info, _, err := m.find(id); return err == nil && info.State == wire.JobFailed })
	info, _, err := m.find(id)
	require.NoError(t, err)
	require.Contains(t, info.Failure.Message, "could not put the job on record")
	_, err = c.Submit(bounded(t), &wire.SubmitRequest{Spec: specOf(t, 1)})
	require.Equal(t, codes.Internal, wire.Code(err))
	require.ErrorContains(t, err, "on record")
	require.ErrorContains(t, m.Ready(), "history")
	stream, err := c.Follow(bounded(t), &wire.FollowRequest{Job: id, From: 2})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Internal, wire.Code(err), "Follow must return the error that the plan cannot be read")
}

// TestRecorderTellsWhatIsKept requires that kept is called once, when the change is on disk,
// even if the first attempts to write it fail. Without a change it waits for those before it.
func TestRecorderTellsWhatIsKept(t *testing.T) {
	d := &disk{full: true}
	failed, kept := make(chan struct{}, 100), make(chan string, 1)
	r := newRecorder(d.write, func(error) { failed <- struct{}{} }, time.Millisecond)
	r.put(entry{change: &change{id: "a", record: []byte("1")}, kept: func() { kept <- "a" }})
	r.put(entry{kept: func() { kept <- "all before" }})
	<-failed
	<-failed
	require.Empty(t, kept)
	d.setFull(false)
	require.Equal(t, "a", <-kept)
	require.Equal(t, "all before", <-kept)
	r.put(entry{change: &change{id: "b", record: []byte("2")}, kept: func() { kept <- "b" }})
	require.Equal(t, "b", <-kept)
	r.close()
	require.Equal(t, []string{"a=1", "b=2"}, d.written)
	require.Empty(t, kept)
}
