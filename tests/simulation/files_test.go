package simulation

import (
	"maps"
	"slices"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/internal/wire"
)

// stateFile is a file with a state of a queue; see engine/copies/files.go.
type stateFile struct {
	copies.State
	attempt int
	pieces  [][]byte
}

// stateFiles are the files of a job on a task manager, by queue, the older first. They are lost with the task
// manager.
type stateFiles map[string][]stateFile

// keepFiles gives a job files if its only worker with slots runs here; see taskmanager/states.go.
func (m *taskManager) keepFiles(d *wire.Deployment) {
	others := slices.ContainsFunc(d.Slots[1:], func(s wire.SlotRange) bool { return s.Hi > s.Lo })
	if d.Mode == wire.RunMode && d.Worker == 0 && !others && d.Keep && d.Spec.Run.NumberOfCopies() > 0 && m.states[d.Job] == nil {
		m.states[d.Job] = make(stateFiles)
	}
}

// withFiles returns the jobs that have files, in their order.
func (m *taskManager) withFiles() []jobID { return slices.Sorted(maps.Keys(m.states)) }

// forgetFiles removes the files of jobs that are over.
func (m *taskManager) forgetFiles(jobs []jobID) {
	for _, job := range jobs {
		if !slices.ContainsFunc(m.inOrder(), func(t *tmWorker) bool { return t.ref.Job == job }) {
			delete(m.states, job)
		}
	}
}

// writeFile writes a state that a worker has shared with no other, and leaves the one before.
func (x *exchange) writeFile(s copies.State) {
	k := x.k
	files := k.c.m.states[k.d.Job]
	if k.sharing() > 1 || files == nil {
		return
	}
	file := stateFile{State: s, attempt: k.d.Attempt}
	for number := range s.Of {
		data := k.c.store.Piece(s, number)
		if data == nil {
			k.c.w.violated("worker %s does not hold piece %d of %s, which it has shared", k.name(), number, s)
		}
		file.pieces = append(file.pieces, slices.Clone(data))
	}
	all := files[s.Queue]
	files[s.Queue] = append(all[max(0, len(all)-1):], file)
	k.c.w.marks["a state is written to a file"]++
}

// readFiles reads the newest states in files into the store of a new process. Now and then the newest of a
// queue is damaged, and removed.
func (k *worker) readFiles() {
	files, w := k.c.m.states[k.d.Job], k.c.w
	if k.d.Mode != wire.RunMode || k.c.attempts > 1 {
		return
	}
	for _, queue := range slices.Sorted(maps.Keys(files)) {
		all := files[queue]
		if len(all) > 0 && w.chance(8) {
			w.marks["a file is damaged"]++
			all = all[:len(all)-1]
			files[queue] = all
			k.job.survives = nil
		}
		if len(all) == 0 {
			continue
		}
		newest := all[len(all)-1]
		if newest.attempt >= k.d.Attempt {
			w.violated("worker %s reads a file of attempt %d", k.name(), newest.attempt)
		}
		for number, data := range newest.pieces {
			if err := k.c.store.Put(newest.State, number, data); err != nil {
				w.violated("a piece of a file cannot be kept: %v", err)
			}
		}
		w.marks["a state is read from a file"]++
	}
}
