package operators

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/shared"
)

// The functions of this file are used if several workers write the parts of one fileOutput.

// writtenParts lists the files that one worker wrote.
type writtenParts struct {
	// Dir is the path of the directory of the files. Its last element is unique to the run. If
	// the names of two workers differ, the workers do not share the directory or belong to
	// different runs.
	Dir   string     `msgpack:"dir"`
	Parts []partFile `msgpack:"parts"`
}

// writtenCodec encodes writtenParts. It checks all lengths that it decodes.
var writtenCodec = shared.Msgpack[writtenParts]()

// note adds p, the complete file of a shard, to wrote.
func (o *fileOutput) note(p partFile) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrote = append(o.wrote, p)
}

// Join finds the staging directory that worker 0 has made.
func (o *fileOutput) Join() error {
	if err := o.locate(); err != nil {
		return o.unseen(err)
	}
	parts, err := findParts(stagingDir(o.target), o.partsPrefix())
	if err != nil {
		return o.unseen(o.failed(err))
	}
	o.parts, o.wrote = parts, nil
	return nil
}

// partsPrefix returns the beginning of the name of the directory for files of shards. On a cluster
// it has the job and the number of the attempt, so that no worker of another attempt that still
// runs writes into the directory.
func (o *fileOutput) partsPrefix() string {
	if o.owner.Job == "" {
		return partsDir
	}
	return fmt.Sprintf("%s%s.%d.", partsDir, o.owner.Job, o.owner.Attempt)
}

// partsIn returns the names, with the given beginning, of the directories for files of shards in
// the staging directory.
func partsIn(stage, prefix string) (names []string, err error) {
	entries, err := os.ReadDir(stage)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// findParts returns the one directory for files of shards in the staging directory whose name has
// the given beginning.
func findParts(stage, prefix string) (string, error) {
	names, err := partsIn(stage, prefix)
	switch {
	case err != nil:
		return "", err
	case len(names) > 1:
		return "", fmt.Errorf("%s holds the files of two runs, %s and %s", stage, names[0], names[1])
	case len(names) == 0:
		return "", &fs.PathError{Op: "find the files of the run in", Path: stage, Err: fs.ErrNotExist}
	}
	return filepath.Join(stage, names[0]), nil
}

// unseen adds advice to err, which says that a worker does not see the files that another
// worker has written.
func (o *fileOutput) unseen(err error) error {
	dir := filepath.Dir(o.target)
	return fmt.Errorf("%w; every worker writes its shards of an output into the same directory, so that %s must be one that all of them see at this path, "+
		"on a file system that their machines share, such as NFS: choose a path there, or run the job on the slots of one machine", err, dir)
}

// Written lists the files of shards that this process wrote.
func (o *fileOutput) Written() ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return writtenCodec.Append(nil, writtenParts{Dir: o.parts, Parts: o.wrote})
}

// partsOf checks that the written files exist and returns them in the order of shards. written
// has the results of Written of all workers; if it is nil, only this process has written files.
func (o *fileOutput) partsOf(written [][]byte) ([]partFile, error) {
	by := make([]int, o.shards) // shard -> 1 + the worker that wrote it; 0 if none has
	var parts []partFile
	if written == nil {
		parts = slices.Clone(o.wrote)
		for _, p := range parts {
			by[p.Shard] = 1
		}
	}
	for worker, data := range written {
		w, err := writtenCodec.Decode(data)
		if err != nil {
			return nil, o.failed(fmt.Errorf("what worker %d says it wrote: %w", worker, err))
		}
		if filepath.Base(w.Dir) != filepath.Base(o.parts) {
			return nil, o.unseen(o.failed(fmt.Errorf("worker %d wrote to %s, and worker 0 to %s", worker, w.Dir, o.parts)))
		}
		for _, p := range w.Parts {
			if p.Shard < 0 || p.Shard >= o.shards || p.Size < 0 {
				return nil, o.failed(fmt.Errorf("worker %d says that it wrote shard %d, of %d, in %d bytes", worker, p.Shard, o.shards, p.Size))
			}
			if by[p.Shard] != 0 {
				return nil, o.failed(fmt.Errorf("shard %d was written by worker %d and by worker %d", p.Shard, by[p.Shard]-1, worker))
			}
			by[p.Shard] = worker + 1
			if err := o.look(worker, p); err != nil {
				return nil, err
			}
		}
		parts = append(parts, w.Parts...)
	}
	if o.perShard { // shards without rows have a file too
		for shard, w := range by {
			if w == 0 {
				return nil, o.failed(fmt.Errorf("none of %d workers wrote shard %d", max(len(written), 1), shard))
			}
		}
	}
	slices.SortFunc(parts, func(a, b partFile) int { return cmp.Compare(a.Shard, b.Shard) })
	return parts, nil
}

// look checks that the file of a shard, which worker wrote, exists and has the right size. The
// content of the file is verified later.
func (o *fileOutput) look(worker int, p partFile) error {
	path := o.shardPath(p.Shard)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o.unseen(o.failed(fmt.Errorf("shard %d, which worker %d wrote to %s, is not there", p.Shard, worker, path)))
	case err != nil:
		return o.failed(fmt.Errorf("shard %d, which worker %d wrote to %s: %w", p.Shard, worker, path, err))
	case info.Size() != p.Size:
		return o.unseen(o.failed(fmt.Errorf("shard %d, which worker %d wrote to %s, has %d bytes instead of %d", p.Shard, worker, path, info.Size(), p.Size)))
	}
	return nil
}
