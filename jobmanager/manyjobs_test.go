package jobmanager

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// runWorkersNormally acts as a task manager whose workers obey all commands and send ten rows
// each.
func runWorkersNormally(tm *manager) {
	orders := tm.told
	var workers sync.WaitGroup
	defer workers.Wait()
	for m := range orders {
		switch {
		case m.Deploy != nil:
			ref := m.Deploy.WorkerRef
			tm.mu.Lock()
			tm.running = append(tm.running, ref)
			tm.mu.Unlock()
			tm.send(&wire.FromTaskManager{Worker: &wire.WorkerEvent{WorkerRef: ref, Ready: &wire.Ready{Address: "x:1"}}})
		case m.Worker == nil:
		case m.Worker.Prepare != nil:
			tm.send(&wire.FromTaskManager{Worker: &wire.WorkerEvent{WorkerRef: m.Worker.WorkerRef, Prepared: &wire.Prepared{}}})
		case m.Worker.Start != nil:
			ref := m.Worker.WorkerRef
			workers.Go(func() { sendRows(tm, ref) })
		case m.Worker.Commit != nil:
			tm.send(&wire.FromTaskManager{Worker: &wire.WorkerEvent{WorkerRef: m.Worker.WorkerRef, Committed: &wire.Committed{}}})
		default: // Cancel, Exit, Kill
			tm.mu.Lock()
			for i, r := range tm.running {
				if r == m.Worker.WorkerRef {
					tm.running = append(tm.running[:i], tm.running[i+1:]...)
					break
				}
			}
			tm.mu.Unlock()
			tm.send(&wire.FromTaskManager{Worker: &wire.WorkerEvent{WorkerRef: m.Worker.WorkerRef, Ended: &wire.Ended{}}})
		}
	}
}

func sendRows(tm *manager, ref wire.WorkerRef) {
	s, err := tm.client.Deliver(tm.stream.Context())
	if err != nil {
		return
	}
	if s.Send(&wire.Delivery{Worker: &ref}) != nil {
		return
	}
	for i := range 10 {
		if s.Send(collected(fmt.Sprintf("%s/%d/%d", ref.Job, ref.Worker, i))) != nil {
			break
		}
		tm.send(&wire.FromTaskManager{Worker: &wire.WorkerEvent{WorkerRef: ref, Progress: &wire.Progress{Vertices: []wire.VertexProgress{{Rows: int64(i)}}}}})
	}
	if _, err := s.CloseAndRecv(); err == nil {
		tm.send(&wire.FromTaskManager{Worker: &wire.WorkerEvent{WorkerRef: ref, Finished: &wire.Finished{Outcome: []byte("o")}}})
	}
}

// TestManyJobsAtOnce has many clients that run many jobs at the same time, and cancel some of
// them. All followers of a job must see the same events, with each worker's rows once and in
// order. At the end all slots must be free.
func TestManyJobsAtOnce(t *testing.T) {
	const managers, clients, each = 4, 6, 8
	m := start(t, func(c *Config) { c.KeepJobs = clients * each })
	for i := range managers {
		c := dial(t, m, testToken, nil)
		tm := join(t, c, registration(fmt.Sprint(i), 2))
		tm.work.Go(func() { runWorkersNormally(tm) })
	}
	var all sync.WaitGroup
	for n := range clients {
		c := dial(t, m, testToken, nil)
		draw := rand.New(rand.NewPCG(1, uint64(n)))
		all.Go(func() {
			for range each {
				spec := specOf(t, 1+draw.IntN(6))
				spec.Attached = true
				id := submit(t, c, spec)
				if draw.IntN(4) == 0 {
					events := draw.IntN(20)
					all.Go(func() { cancelAfter(t, c, id, events) })
				}
				story, last := follow(t, c, &wire.FollowRequest{Job: id, Attach: true})
				again, _ := follow(t, c, &wire.FollowRequest{Job: id, From: 1})
				told := slices.Clone(story)
				if last.State != wire.JobFinished { // the job's rows may have been freed already
					for _, s := range []*[]string{&told, &again} {
						*s = slices.DeleteFunc(*s, func(e string) bool { return strings.HasPrefix(e, "rows ") })
					}
				}
				if !equal(told, again) {
					t.Errorf("two followers of one job got different events:\n%q\n%q", told, again)
				}
				checkRows(t, id, story, last)
			}
		})
	}
	all.Wait()
	eventually(t, "all slots are free", func() bool { s := m.Stats(); return s.Free == managers*2 })
	stats := m.Stats()
	require.EqualValues(t, clients*each, stats.Ended[wire.JobFinished]+stats.Ended[wire.JobCancelled])
}

// cancelAfter cancels a job when it has had a number of events, or has ended.
func cancelAfter(t *testing.T, c *wire.Client, id wire.JobID, events int) {
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	stream, err := c.Follow(ctx, &wire.FollowRequest{Job: id, From: 1})
	for range events {
		if err == nil {
			_, err = stream.Recv()
		}
	}
	c.Cancel(ctx, &wire.CancelRequest{Job: id})
}

func equal(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// checkRows requires that the rows of each worker are in order, and that no row is missing if
// the job has finished.
func checkRows(t *testing.T, id wire.JobID, story []string, last *wire.JobInfo) {
	next := make([]int, len(last.Workers))
	for _, line := range story {
		for w := range next {
			if line == fmt.Sprintf("rows %s/%d/%d", id, w, next[w]) {
				next[w]++
			}
		}
	}
	total := 0
	for _, n := range next {
		total += n
	}
	rows := 0
	for _, line := range story {
		if line[:5] == "rows " {
			rows++
		}
	}
	if rows != total || last.State == wire.JobFinished && total != 10*len(next) || !last.State.Ended() {
		t.Errorf("job %s is %s: %d rows in order, of %d rows, from %d workers:\n%q", id, last.State, total, rows, len(next), story)
	}
}
