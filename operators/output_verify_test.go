package operators

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/checksum"
)

// TestDamagedParts requires that, if the file of a shard changes between writing and commit,
// the commit fails with an error that says so, and no output becomes visible.
func TestDamagedParts(t *testing.T) {
	damages := map[string]func(path, other string) error{
		"it ends after":  func(path, _ string) error { return os.Truncate(path, 3) },
		"it has more":    func(path, _ string) error { return rewrite(path, func(b []byte) []byte { return append(b, b...) }) },
		"is gone":        func(path, _ string) error { return os.Remove(path) },
		"the CRC-32C of": func(path, _ string) error { return rewrite(path, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }) },
		"was": func(path, _ string) error {
			return rewrite(path, func(b []byte) []byte { return make([]byte, len(b)) })
		},
		"written aside": func(path, other string) error {
			data, err := os.ReadFile(other)
			if err != nil {
				return err
			}
			return os.WriteFile(path, data, 0o600)
		},
	}
	for what, damage := range damages {
		for kind, f := range togetherFormats {
			for _, perShard := range []bool{false, true} {
				for _, recorded := range []bool{false, true} {
					dir := t.TempDir()
					var said bytes.Buffer
					err := runSink(t, func(b *engine.Builder) {
						rows := FromSlice(b, lineRows(40))
						writeFilesOn(rows, filepath.Join(dir, "first"), false, f, osDisk{})
						b.Add(engine.Spec{Op: "WriteDamaged", Inputs: []engine.Port{{From: rows}}, Operator: func() engine.Operator { return noopOperator{} },
							Sink: &damager{dir: filepath.Join(dir, ".superstep-out"), damage: damage, perShard: perShard, extension: f.Extension}})
						writeFilesOn(rows, filepath.Join(dir, "out"), perShard, f, osDisk{})
						Print(rows, PrintOptions{Writer: &said})
					}, engine.Workers(map[bool]int{false: 0, true: 2}[recorded]), engine.Parallelism(2))
					at := fmt.Sprintf("%s: %s, %d, %v, %v", what, f.Op, kind, perShard, recorded)
					require.ErrorContains(t, err, "cannot write output "+filepath.Join(dir, "out"), at)
					require.ErrorContains(t, err, "shard 3, w", at)
					if !recorded {
						require.ErrorContains(t, err, what, at)
						require.ErrorContains(t, err, "nothing has become visible", at)
					}
					require.Empty(t, treeChecksums(t, dir), at)
					require.Empty(t, said.String(), at)
				}
			}
		}
	}
}

func rewrite(path string, f func([]byte) []byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, f(data), 0o600)
}

// damager is a sink that damages a part of another sink before the other sink commits.
type damager struct {
	dir, extension string
	damage         func(path, other string) error
	perShard       bool
}

func (d *damager) Begin() error             { return nil }
func (d *damager) Commit() error            { return nil }
func (d *damager) Abort() error             { return nil }
func (d *damager) Join() error              { return nil }
func (d *damager) Leave() error             { return nil }
func (d *damager) Written() ([]byte, error) { return nil, nil }
func (d *damager) Aside() string            { return "" }
func (d *damager) Decide() error            { return nil }
func (d *damager) Place() error             { return nil }
func (d *damager) TakeBack() error          { return nil }
func (d *damager) Finish()                  {}
func (d *damager) Settle() error            { return nil }
func (d *damager) Complete(engine.Completion) error {
	parts, err := findParts(d.dir, partsDir)
	if err != nil {
		return err
	}
	name := func(shard string) string {
		if d.perShard {
			return filepath.Join(parts, "part-0000"+shard+"."+d.extension)
		}
		return filepath.Join(parts, shard)
	}
	return d.damage(name("3"), name("4"))
}

// noopOperator ignores its rows.
type noopOperator struct{ engine.BaseOperator }

func (noopOperator) Process(*engine.Context, int, int, engine.Batch, engine.Output) error { return nil }

// TestPartsThatAreNotOurs requires an error if a directory that is to become the output
// contains files that the run did not write.
func TestPartsThatAreNotOurs(t *testing.T) {
	dir := t.TempDir()
	err := runSink(t, func(b *engine.Builder) {
		rows := FromSlice(b, lineRows(40))
		b.Add(engine.Spec{Op: "WriteDamaged", Inputs: []engine.Port{{From: rows}}, Operator: func() engine.Operator { return noopOperator{} },
			Sink: &damager{dir: filepath.Join(dir, ".superstep-out"), perShard: true, extension: "csv", damage: func(path, _ string) error {
				return os.WriteFile(filepath.Join(filepath.Dir(path), "part-00099.csv"), []byte("more"), 0o600)
			}}})
		WriteCSV(rows, filepath.Join(dir, "out"), CSVWriteOptions{PerShard: true})
	})
	require.ErrorContains(t, err, "part-00099.csv is not of this job")
	require.Empty(t, treeChecksums(t, dir))
}

// TestDamagedBeforePlace requires that, if a complete output changes while other outputs of the
// run become visible, the commit fails with an error that says so, and no output stays visible.
func TestDamagedBeforePlace(t *testing.T) {
	damages := []struct {
		what     string
		perShard []bool
		damage   func(path string) error
	}{
		{"it ends after", []bool{false, true}, func(path string) error { return os.Truncate(path, 3) }},
		{"it has more", []bool{false, true}, func(path string) error { return rewrite(path, func(b []byte) []byte { return append(b, 0) }) }},
		{"gone", []bool{false, true}, os.Remove},
		{"the CRC-32C of", []bool{false, true}, func(path string) error { return rewrite(path, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }) }},
		{"is no regular file", []bool{false, true}, func(path string) error { return errors.Join(os.Remove(path), os.Symlink(os.DevNull, path)) }},
		{"is not of this job", []bool{true}, func(path string) error { return os.WriteFile(path+".more", nil, 0o600) }},
	}
	for _, d := range damages {
		for kind, f := range togetherFormats {
			for _, perShard := range d.perShard {
				for _, workers := range []int{0, 2} {
					dir := t.TempDir()
					err := runSink(t, func(b *engine.Builder) {
						rows := FromSlice(b, lineRows(40))
						writeFilesOn(rows, filepath.Join(dir, "first"), false, f, osDisk{})
						b.Add(engine.Spec{Op: "WriteDamaged", Inputs: []engine.Port{{From: rows}}, Operator: func() engine.Operator { return noopOperator{} },
							Sink: &lateDamager{damager{dir: filepath.Join(dir, ".superstep-out"), perShard: perShard, extension: f.Extension, damage: func(path, _ string) error { return d.damage(path) }}}})
						writeFilesOn(rows, filepath.Join(dir, "out"), perShard, f, osDisk{})
					}, engine.Workers(workers), engine.Parallelism(2))
					at := fmt.Sprintf("%s: %s, %d, %v, %d", d.what, f.Op, kind, perShard, workers)
					require.ErrorContains(t, err, "cannot write output "+filepath.Join(dir, "out"), at)
					require.ErrorContains(t, err, d.what, at)
					require.Empty(t, visible(treeChecksums(t, dir)), at)
				}
			}
		}
	}
}

// lateDamager is a sink that, when it is placed, damages another output that is already
// complete.
type lateDamager struct{ damager }

func (*lateDamager) Complete(engine.Completion) error { return nil }

func (d *lateDamager) Place() error {
	if d.perShard {
		return d.damager.Complete(engine.Completion{})
	}
	return d.damage(filepath.Join(d.dir, wholeFile), "")
}

// TestRowsOfAPartThatChanged changes a part after it was verified and before its rows are read.
// Reading must fail, even if the changed bytes are a valid Arrow stream.
func TestRowsOfAPartThatChanged(t *testing.T) {
	mem := batchtest.Allocator(t)
	rows := batchtest.Record(t, mem, batchtest.Schema(t, "n int64"), `[{"n": 1}, {"n": 2}, {"n": 3}]`)
	defer rows.Release()
	var stream bytes.Buffer
	w := batch.NewStreamWriter(&stream, rows.Schema(), mem)
	require.NoError(t, w.Write(rows))
	require.NoError(t, w.Close())
	data := stream.Bytes()
	written := partFile{Shard: 5, Size: int64(len(data)), Sum: checksum.CRC32C(0, data)}
	path := filepath.Join(t.TempDir(), "part")
	read := func() error {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		part, err := os.Open(path)
		require.NoError(t, err)
		defer part.Close()
		chunks := chunker{mem: mem, rows: fileChunkRows, size: fileChunkBytes}
		defer chunks.release()
		return (&fileOutput{mem: mem}).readPart(part, written, &chunks, make([]byte, 1<<10))
	}
	require.NoError(t, read())
	found := 0
	for at := range data {
		data[at] ^= 1
		err := read()
		data[at] ^= 1
		require.Error(t, err, "byte %d", at)
		if strings.Contains(err.Error(), "shard 5, written aside to "+path+", is damaged: the CRC-32C of its ") {
			found++
		}
	}
	require.Greater(t, found, 3*8/2, "many changes must damage only numbers, so that the stream stays valid, or the test proves nothing")
}

// TestResumeFindsDamagedOutputs requires that every resuming worker finds the damage if a
// complete output has been damaged after the end of the committing worker.
func TestResumeFindsDamagedOutputs(t *testing.T) {
	for _, c := range resumeCases {
		before, _ := c.trees()
		dir := writeFiles(t, filesOf(before))
		o := c.output(dir, &testDisk{})
		written := c.write(t, o)
		require.NoError(t, o.Complete(engine.Completion{Written: written, Recorded: true}), c.name)
		crash(o)
		path := filepath.Join(o.stage.dir, wholeFile)
		if c.perShard {
			path = o.shardPath(2)
		}
		require.NoError(t, rewrite(path, func(b []byte) []byte { b[len(b)-2] ^= 1; return b }))
		for range 2 {
			err := resume(c.output(dir, &testDisk{}), written)
			require.ErrorContains(t, err, path, c.name)
			require.ErrorContains(t, err, "is damaged: the CRC-32C of its ", c.name)
			require.Equal(t, before, visible(tree(t, dir)), c.name)
		}
	}
}
