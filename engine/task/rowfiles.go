package task

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/mapped"
	"github.com/superstep-ml/superstep/shared"
)

// Rows of queues that lie in files anyway can outlive their process. The files then keep their names, in a
// directory that the process holds locked. A description beside them says of which queue, data port and shard
// they are and where the rows lie in them; another one has what operators have counted for the shards that
// the process has made, and which operators have finished. The system drops the lock when the process ends,
// however it ends. Another process of the same job then takes the directory over (adopt.go). Nothing is
// written for rows in memory. If a description cannot be written, the rows are made again after the loss of
// the process.

// rowFiles are the directories in which rows of this process lie.
type rowFiles struct {
	of     rowOwner
	on     disk.FS
	logger hclog.Logger
	own    *scratch // the directory of this process
	files  *mapped.Files
	taken  []takenDir // directories that it has taken over

	mu        sync.Mutex   // is not held when rows are released
	described map[any]bool // by region; rows that are none by what they are of
	number    int          // of descriptions of rows that were written
	stale     bool         // what is written of operators is not all that is known
	failed    bool         // it was logged that a description cannot be written
}

// rowOwner says to what rows in files belong. Other rows are never taken for them.
type rowOwner struct {
	Job    string `msgpack:"job"`
	Graph  string `msgpack:"graph"` // fingerprint of the graph with its facts
	Shards int    `msgpack:"shards"`
	Seed   uint64 `msgpack:"seed"`
}

// rowsDescription describes the rows of a shard and a data port of a queue.
type rowsDescription struct {
	Of     rowOwner      `msgpack:"of"`
	Queue  string        `msgpack:"queue"`
	Port   int           `msgpack:"port"`
	Shard  int           `msgpack:"shard"`
	Schema []byte        `msgpack:"schema"`
	Layout mapped.Layout `msgpack:"layout"`
}

// noRows identifies a shard and a data port of a queue that have no rows, and no file.
type noRows struct {
	queue       string
	port, shard int
}

// madeDescription has the part of a holding that is about operators, encoded.
type madeDescription struct {
	Of   rowOwner `msgpack:"of"`
	Held []byte   `msgpack:"held"`
}

var (
	rowsDescriptions = shared.Msgpack[rowsDescription]()
	madeDescriptions = shared.Msgpack[madeDescription]()
)

const (
	rowsSuffix = ".rows" // of descriptions of rows
	madeName   = "made"  // the description of what operators have made
)

// openFiles takes over what other processes have left in the directory for files that outlive a process, and
// makes the directory of this process. mu is held.
func (k *Retained) openFiles(p *plan.Plan, env Env) {
	of := rowOwner{p.Job, p.Fingerprint, p.Shards, p.Seed}
	if k.files == nil {
		f := &rowFiles{of: of, on: env.Disk, logger: env.Logger, own: &scratch{}, described: make(map[any]bool), stale: true}
		if err := f.own.make(k.parent); err != nil {
			env.Logger.Warn("rows in files will not outlive the process", "directory", k.parent, "error", err)
			return
		}
		f.files = mapped.NewNamed(env.Disk, f.own.dir)
		k.files = f
	}
	k.files.logger = env.Logger
	if k.files.of == of {
		k.adopt(p)
	}
}

// settler returns the files for the rows of a queue that outlive the process, and the function with which the
// loops of the queue say which rows are there. Both are nil if there are no such files.
func (k *Retained) settler(queue string) (*mapped.Files, func(port, shard int, rows KeptRows)) {
	if k == nil {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.files
	if f == nil {
		return nil, nil
	}
	return f.files, func(port, shard int, rows KeptRows) {
		f.try(f.describe(queue, port, shard, rows))
		k.describeMade()
	}
}

// subtaskEnded keeps what the operators of a subtask outside of queues have made, if the rows that they gave
// to queues may outlive the process.
func (k *Retained) subtaskEnded(t *subtask) {
	if k == nil {
		return
	}
	k.mu.Lock()
	f := k.files
	if f != nil {
		k.noteEnds(t)
		k.noteMade(t)
		f.markStale()
	}
	k.mu.Unlock()
	if f != nil {
		k.describeMade()
	}
}

// describeMade writes what is known of operators, if rows are described and it was not written yet.
func (k *Retained) describeMade() {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.files
	if !f.takeStale() {
		return
	}
	h := k.holding()
	held, err := holdings.Append(nil, holding{Made: h.Made, Ended: h.Ended, Ends: h.Ends})
	if err == nil {
		var data []byte
		if data, err = madeDescriptions.Append(nil, madeDescription{f.of, held}); err == nil {
			err = writeDescription(f.on, madeMark, filepath.Join(f.own.dir, madeName), data)
		}
	}
	f.try(err)
}

func (f *rowFiles) markStale() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = true
}

// takeStale reports whether what is known of operators is to be written now.
func (f *rowFiles) takeStale() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	write := f.stale && f.number > 0
	f.stale = f.stale && !write
	return write
}

// try logs the first error of writing a description. Rows without one are made again.
func (f *rowFiles) try(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && !f.failed {
		f.failed = true
		f.logger.Warn("some rows in files will not outlive the process", "directory", f.own.dir, "error", err)
	}
}

// describe writes the description of rows, which are borrowed, unless there is one. It is removed with them.
func (f *rowFiles) describe(queue string, port, shard int, rows KeptRows) error {
	key := any(rows.File)
	if rows.File == nil {
		key = noRows{queue, port, shard}
	}
	f.mu.Lock()
	known := f.described[key]
	f.described[key] = true
	f.number++
	path := filepath.Join(f.own.dir, fmt.Sprint(f.number, rowsSuffix))
	f.mu.Unlock()
	if known {
		return nil
	}
	if rows.File != nil {
		f.removeWith(rows.File, path)
	}
	data, err := f.encode(queue, port, shard, rows)
	if err != nil {
		return err
	}
	return writeDescription(f.on, rowsMark, path, data)
}

func (f *rowFiles) encode(queue string, port, shard int, rows KeptRows) ([]byte, error) {
	record := recordOf(rows)
	schema, err := batch.SchemaMessage(record.Schema())
	if err != nil {
		return nil, err
	}
	layout := mapped.Layout{}
	if rows.File != nil {
		if layout, err = rows.File.Layout(record); err != nil {
			return nil, err
		}
	}
	return rowsDescriptions.Append(nil, rowsDescription{f.of, queue, port, shard, schema, layout})
}

// removeWith removes a description when the rows of a region are released.
func (f *rowFiles) removeWith(region *mapped.Region, path string) {
	region.OnRelease(func() {
		_ = f.on.Remove(path) // it may not have been written, and is otherwise removed with its directory
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.described, region)
	})
}

// close removes the directories. All rows are released.
func (f *rowFiles) close() error {
	if f == nil {
		return nil
	}
	f.files.Close()
	err := f.own.remove()
	for _, dir := range f.taken {
		if removed := dir.remove(); err == nil {
			err = removed
		}
	}
	f.taken = nil
	return err
}

// takenDir is a directory that another process has left, and whose lock this process holds.
type takenDir struct {
	path    string
	release func(remove bool) error
}

// remove removes the directory, and then its lock.
func (d *takenDir) remove() error {
	if err := os.RemoveAll(d.path); err != nil {
		return joinError(err, d.release(false))
	}
	return d.release(true)
}
