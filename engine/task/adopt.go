package task

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/mapped"
)

// A process takes over the directories of processes of its job that have ended. It believes nothing in them
// before it has checked it: the descriptions, to what the rows belong, that a shard has the rows of all data
// ports of its queue, that all operators before the queue had finished, the checksums of the files, and that
// lengths and offsets fit each other. What is refused is removed, and its rows are made again. This is never
// an error.

// adopt takes over the directories of processes that have ended. mu is held.
func (k *Retained) adopt(p *plan.Plan) {
	locks, err := filepath.Glob(filepath.Join(escapeGlob(k.parent), scratchPrefix+"*"+lockSuffix))
	if err != nil {
		return
	}
	for _, path := range locks {
		if path == k.files.own.lock.Name() || !marked(path) {
			continue
		}
		release, ok := lockEndedRun(path)
		if !ok {
			continue
		}
		dir := takenDir{strings.TrimSuffix(path, lockSuffix), release}
		if n := k.adoptDir(p, dir.path); n > 0 {
			k.files.taken = append(k.files.taken, dir)
			k.files.logger.Info("rows that a process has left in files need not be made again", "shards", n, "directory", dir.path)
		} else if err := dir.remove(); err != nil {
			k.files.logger.Warn("files that a process has left cannot be removed", "directory", dir.path, "error", err)
		}
	}
}

// leftRows are the descriptions of the shards of a queue, by shard and data port, with their paths.
type leftRows map[int]map[int]leftFile

type leftFile struct {
	path string
	rowsDescription
}

// adoptDir takes over the rows in a directory, removes what else is there, and returns the number of shards.
// mu is held.
func (k *Retained) adoptDir(p *plan.Plan, dir string) (shards int) {
	refuse := func(what string, err error) {
		k.files.logger.Warn("rows that a process has left in files are made again", "file", what, "why", err)
	}
	made, err := k.readMade(p, filepath.Join(dir, madeName))
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) { // no description of rows was written either
			refuse(madeName, err)
		}
		return 0
	}
	left := k.readRows(p, dir, refuse)
	files := mapped.NewReopened(k.files.on, dir)
	defer files.Close()
	used := map[string]bool{filepath.Join(dir, madeName): true}
	for queue, rows := range left {
		if err := complete(p, queue, made); err != nil {
			refuse(queue, err)
			continue
		}
		for shard, ports := range rows {
			if k.rows[queue][shard] != nil {
				continue
			}
			if err := k.adoptShard(p, files, queue, shard, ports); err != nil {
				refuse(fmt.Sprintf("shard %d of queue %s", shard, queue), err)
				continue
			}
			shards++
			for _, f := range ports {
				used[f.path] = true
				for _, part := range f.Layout.Parts {
					used[filepath.Join(dir, part.File)] = true
				}
			}
		}
	}
	if shards > 0 {
		k.learn(made)
		removeOthers(dir, used)
	}
	return shards
}

// removeOthers removes the files of a directory that are not used.
func removeOthers(dir string, used map[string]bool) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, f := range all {
		if path := filepath.Join(dir, f.Name()); !used[path] {
			_ = os.RemoveAll(path) // otherwise it is removed with its directory
		}
	}
}

// readMade reads what a process has written of operators.
func (k *Retained) readMade(p *plan.Plan, path string) (h holding, err error) {
	data, err := readDescription(k.files.on, madeMark, path)
	if err != nil {
		return h, err
	}
	d, err := madeDescriptions.Decode(data)
	if err != nil {
		return h, err
	}
	if d.Of != k.files.of {
		return h, errOtherRows
	}
	return decodeHolding(p, d.Held)
}

var errOtherRows = errors.New("they belong to another job, graph or seed")

// readRows reads the descriptions of rows in a directory, by queue. It leaves out those that it refuses, and
// shards of which rows are missing.
func (k *Retained) readRows(p *plan.Plan, dir string, refuse func(what string, err error)) map[string]leftRows {
	all := make(map[string]leftRows)
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*"+rowsSuffix))
	if err != nil {
		return nil
	}
	for _, path := range paths {
		f, err := k.readRowsFile(p, path)
		if err != nil {
			refuse(path, err)
			continue
		}
		if all[f.Queue] == nil {
			all[f.Queue] = make(leftRows)
		}
		if all[f.Queue][f.Shard] == nil {
			all[f.Queue][f.Shard] = make(map[int]leftFile)
		}
		all[f.Queue][f.Shard][f.Port] = f
	}
	for queue, rows := range all {
		edges, _ := queueInputs(p, queue)
		maps.DeleteFunc(rows, func(_ int, ports map[int]leftFile) bool { return len(ports) < len(edges) })
	}
	return all
}

// readRowsFile reads a description of rows, and checks to what they belong.
func (k *Retained) readRowsFile(p *plan.Plan, path string) (f leftFile, err error) {
	data, err := readDescription(k.files.on, rowsMark, path)
	if err != nil {
		return f, err
	}
	f.path = path
	if f.rowsDescription, err = rowsDescriptions.Decode(data); err != nil {
		return f, err
	}
	if f.Of != k.files.of {
		return f, errOtherRows
	}
	edges, _ := queueInputs(p, f.Queue)
	if f.Shard < 0 || f.Shard >= p.Shards || !slices.ContainsFunc(edges, func(e int) bool { return p.Edges[e].Port == f.Port }) {
		return f, fmt.Errorf("there is no shard %d of input %d of queue %q", f.Shard, f.Port, f.Queue)
	}
	return f, nil
}

// complete returns an error unless all operators before a queue have finished: what they emit then may make
// the rows of the queue depend on how shards were divided.
func complete(p *plan.Plan, queue string, made holding) error {
	for i := range p.Vertices {
		v := &p.Vertices[i]
		for at, c := range v.Chain {
			n := &p.Nodes[c.Node]
			reads := at > 0 || slices.ContainsFunc(p.Edges, func(e plan.Edge) bool { return e.ToNode == n.ID })
			if v.Queue != "" || n.Single || !reads || slices.Contains(made.Ended, n.ID) || !slices.Contains(queuesBehind(p, n.ID), queue) {
				continue
			}
			return fmt.Errorf("operator %s had not finished", n.Title())
		}
	}
	return nil
}

// adoptShard maps the rows of a shard and keeps them. mu is held.
func (k *Retained) adoptShard(p *plan.Plan, files *mapped.Reopened, queue string, shard int, ports map[int]leftFile) (err error) {
	adopted := make(map[int]portRows)
	defer func() {
		if err != nil {
			keptRows{shard: adopted}.dropAll()
		}
	}()
	for port, f := range ports {
		if adopted[port], err = reopen(files, f); err != nil {
			delete(adopted, port)
			return err
		}
	}
	for port, f := range ports {
		k.files.hasDescribed(adopted[port].file, f)
	}
	k.files.markUsed()
	k.rows.put(queue, shard, adopted)
	return nil
}

// hasDescribed notes that rows have a description, which is removed with them.
func (f *rowFiles) hasDescribed(region *mapped.Region, left leftFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if region == nil {
		f.described[noRows{left.Queue, left.Port, left.Shard}] = true
		return
	}
	f.described[region] = true
	f.removeWith(region, left.path)
}

// markUsed notes that descriptions of rows are there, so that what is known of operators is written for the rows
// that this process moves to files.
func (f *rowFiles) markUsed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.number, f.stale = f.number+1, true
}

// reopen maps rows that a description describes, and checks them.
func reopen(files *mapped.Reopened, f leftFile) (rows portRows, err error) {
	schema, err := batch.ReadSchema(bytes.NewReader(f.Schema))
	if err != nil {
		return rows, err
	}
	if f.Layout.Rows == 0 {
		return portRows{batch: batch.Empty(schema)}, nil
	}
	record, region, memory, err := files.Rows(schema, f.Layout)
	if err != nil {
		return rows, err
	}
	defer record.Release()
	var whole arrow.Record
	err = region.Read(func() (err error) {
		whole, err = batch.Normalize(record)
		return err
	})
	if err != nil {
		return rows, err
	}
	return portRows{whole, region, memory}, nil
}

// learn keeps what another process has written of operators. mu is held.
func (k *Retained) learn(h holding) {
	for _, n := range h.Made {
		at := 0
		for _, shards := range n.Shards {
			for shard := shards.Lo; shard < shards.Hi && at < len(n.Counts); shard++ {
				if _, there := k.made[n.Node][shard]; !there {
					k.made.put(n.Node, shard, n.Counts[at])
				}
				at++
			}
		}
	}
	k.learnEnded(&h)
}

// recordOf returns the rows as a record, borrowed.
func recordOf(rows KeptRows) arrow.Record { return arrowrows.Record(rows.Rows) }
