package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/disk/faultydisk"
)

var testRun = Run{
	Job: "iris", Program: "p", Graph: "g", Shards: 8, Seed: 3,
	Arguments: arguments(3, 2, "a", "b"), Facts: []Fact{{"rows.csv", 1}},
}

// arguments returns the encoded arguments of a job.
func arguments(k, depth int, words ...string) []byte {
	weights := make(map[string]int)
	for i, w := range words {
		weights[w] = i
	}
	data, err := msgpack.Marshal(struct {
		K       int
		Weights map[string]int
		Forest  struct{ Depth int }
	}{k, weights, struct{ Depth int }{depth}})
	if err != nil {
		panic(err)
	}
	return data
}

// state returns a State whose pieces are the given bytes.
func state(queue string, step int, ended bool, pieces ...[]byte) State {
	return State{Queue: queue, Superstep: step, Ended: ended, Pieces: func(yield func([]byte, error) bool) {
		for _, p := range pieces {
			if !yield(p, nil) {
				return
			}
		}
	}}
}

// pieceName returns the name of a piece.
func pieceName(generation int, queue string, step, piece int) string {
	return fmt.Sprintf("state-%08d-%016x-%d-%d", generation, xxh3.HashString(queue), step, piece)
}

// open opens a store and its journal.
func open(t testing.TB, p place, run Run) (Store, *Journal) {
	t.Helper()
	store, err := p.open(t.Context())
	require.NoError(t, err)
	j, err := Open(t.Context(), store, run)
	require.NoError(t, err)
	return store, j
}

func write(t testing.TB, j *Journal, states ...State) *Manifest {
	t.Helper()
	m, leftover, err := j.Write(t.Context(), states)
	require.NoError(t, err)
	require.NoError(t, leftover)
	return m
}

// TestJournal requires that the newest checkpoint is loaded with the states of all queues, that
// two checkpoints and no other blobs are kept, and that Remove removes all of them.
func TestJournal(t *testing.T) { everywhere(t, testJournal) }

func testJournal(t *testing.T, empty func() place) {
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	pieces := [][]byte{{}, {1}, bytes.Repeat([]byte{7}, 15), make([]byte, 100_000), noise}
	p := empty()
	store, j := open(t, p, testRun)
	require.True(t, j.Empty())
	c, refused, err := j.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Nil(t, c)
	require.Empty(t, refused)
	write(t, j, state("b", 1, true, pieces...))
	for step := 2; step < 6; step++ {
		m := write(t, j, state("a", step, false, []byte(fmt.Sprint("a after ", step))))
		require.Equal(t, step, m.Number)
		require.Len(t, m.Queues, 2, "the state of queue b must be in every checkpoint")
	}
	want := []string{
		"checkpoint-00000004", "checkpoint-00000005",
		pieceName(1, "a", 4, 0), pieceName(1, "a", 5, 0),
		pieceName(1, "b", 1, 0), pieceName(1, "b", 1, 1), pieceName(1, "b", 1, 2), pieceName(1, "b", 1, 3), pieceName(1, "b", 1, 4),
	}
	slices.Sort(want)
	require.Equal(t, want, slices.Sorted(maps.Keys(p.blobs(t))))
	names, err := store.List(t.Context())
	require.NoError(t, err)
	require.Subset(t, names, want)
	require.Len(t, names, len(want)+1, "there must be one lock")
	_, err = p.open(t.Context())
	require.ErrorContains(t, err, "another run writes its checkpoints")
	require.ErrorContains(t, err, p.String())
	require.NoError(t, store.Close())

	p.set(t, "mine.txt", []byte("mine"))
	store, j = open(t, p, testRun)
	require.False(t, j.Empty())
	c, refused, err = j.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Equal(t, 5, c.Number)
	require.Equal(t, []string{"a", "b"}, []string{c.Queues[0].Name, c.Queues[1].Name})
	require.Equal(t, []any{5, false, 1, true}, []any{c.Queues[0].Superstep, c.Queues[0].Ended, c.Queues[1].Superstep, c.Queues[1].Ended})
	require.Equal(t, "a after 5", string(c.Pieces[0][0]))
	require.Len(t, c.Pieces[1], len(pieces))
	for i, p := range pieces {
		require.True(t, bytes.Equal(p, c.Pieces[1][i]), "piece %d", i)
	}
	m := write(t, j, state("a", 6, true, []byte("more")))
	require.Equal(t, 6, m.Number)
	require.Len(t, m.Queues, 2, "a state that was loaded must be in later checkpoints")
	require.NoError(t, j.Remove(t.Context()))
	require.NoError(t, store.Close())
	require.Equal(t, map[string][]byte{"mine.txt": []byte("mine")}, p.blobs(t), "only blobs that are no checkpoints may be left")
}

// TestDirectory requires that a directory is locked, and that temporary files of a killed process
// are removed.
func TestDirectory(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, "."+pieceName(6, "a", 7, 0)+".123.partial"), nil, 0o600))
	store, err := OpenDir(disk.OS(), path)
	require.NoError(t, err)
	names, err := store.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{lockName}, names)
	_, err = OpenDir(disk.OS(), path)
	require.ErrorContains(t, err, "another run writes its checkpoints into "+path)
	require.NoError(t, store.Close())
}

// TestOtherRuns requires that the checkpoints of another run are refused, with what differs.
func TestOtherRuns(t *testing.T) { everywhere(t, testOtherRuns) }

func testOtherRuns(t *testing.T, empty func() place) {
	p := empty()
	store, j := open(t, p, testRun)
	write(t, j, state("a", 1, false, nil))
	require.NoError(t, store.Close())
	for want, change := range map[string]func(*Run){
		`it is of job "iris", and this is job "moons"`:   func(r *Run) { r.Job = "moons" },
		"another build of the program":                   func(r *Run) { r.Program = "q" },
		"the graph of its job differs":                   func(r *Run) { r.Graph = "h" },
		"an input has changed since (rows.csv)":          func(r *Run) { r.Graph, r.Facts = "h", []Fact{{"rows.csv", 2}} },
		"its run had other arguments: Forest.Depth, K":   func(r *Run) { r.Arguments = arguments(4, 3, "a", "b") },
		"its run had 8 shards, and this run has 16":      func(r *Run) { r.Shards = 16 },
		"its run had the seed 3, and this run has 1<<63": func(r *Run) { r.Seed = 1 << 63 },
	} {
		other := testRun
		change(&other)
		store, j := open(t, p, other)
		_, _, err := j.Load(t.Context(), nil)
		require.ErrorContains(t, err, strings.ReplaceAll(want, "1<<63", fmt.Sprint(uint64(1<<63))))
		require.ErrorContains(t, err, "checkpoint-00000001 in "+p.String())
		require.NoError(t, store.Close())
	}
}

// TestNewerFormat requires that a checkpoint of a newer format is refused by name, and that the
// one before is used.
func TestNewerFormat(t *testing.T) { everywhere(t, testNewerFormat) }

func testNewerFormat(t *testing.T, empty func() place) {
	p := empty()
	store, j := open(t, p, testRun)
	write(t, j, state("a", 1, false, []byte("one")))
	m := write(t, j, state("a", 2, false, []byte("two")))
	m.Format = format + 1
	data, err := m.encode()
	require.NoError(t, err)
	require.NoError(t, store.Put(t.Context(), manifestName(m.Number), data))
	require.NoError(t, store.Close())
	store, j = open(t, p, testRun)
	defer store.Close()
	c, refused, err := j.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "one", string(c.Pieces[0][0]))
	require.Len(t, refused, 1)
	require.ErrorContains(t, refused[0], "checkpoint-00000002")
	require.ErrorContains(t, refused[0], "it has format 2, and this program reads formats up to 1")
}

// TestDamage damages each blob of a checkpoint in several ways. The checkpoint before must then
// be loaded. If both are damaged, Load must fail and name both.
func TestDamage(t *testing.T) { everywhere(t, testDamage) }

func testDamage(t *testing.T, empty func() place) {
	made := empty()
	store, j := open(t, made, testRun)
	for step := 1; step <= 2; step++ {
		write(t, j, state("a", step, false, []byte(fmt.Sprint("a after ", step)), bytes.Repeat([]byte{byte(step)}, 5000)), state("b", step, true, []byte{9}))
	}
	require.NoError(t, store.Close())
	blobs := made.blobs(t)
	damages := map[string]func(name string, d []byte) []byte{
		"empty":     func(string, []byte) []byte { return []byte{} },
		"shorter":   func(_ string, d []byte) []byte { return d[:len(d)-1] },
		"longer":    func(_ string, d []byte) []byte { return append(d, 0) },
		"first bit": func(_ string, d []byte) []byte { d[0] ^= 1; return d },
		"last bit":  func(_ string, d []byte) []byte { d[len(d)-1] ^= 128; return d },
		"zeroed":    func(_ string, d []byte) []byte { clear(d); return d },
		"earlier": func(name string, _ []byte) []byte {
			earlier := strings.Replace(name, "checkpoint-00000002", "checkpoint-00000001", 1)
			return blobs[strings.Replace(earlier, "-2-", "-1-", 1)]
		},
		"missing": nil,
	}
	damaged := 0
	for name, data := range blobs {
		if !strings.Contains(name, "-00000002") && !strings.Contains(name, "-2-") {
			continue
		}
		damaged++
		for damage, f := range damages {
			if damage == "earlier" && name == pieceName(1, "b", 2, 0) {
				continue // both have the same bytes
			}
			p := empty()
			for name, data := range blobs {
				p.set(t, name, data)
			}
			if f == nil {
				p.remove(t, name)
			} else {
				p.set(t, name, f(name, bytes.Clone(data)))
			}
			testDamaged(t, p, f == nil && strings.HasPrefix(name, "checkpoint"), name+" "+damage)
		}
	}
	require.Equal(t, 4, damaged)
}

// testDamaged requires that the second of two checkpoints is not loaded. gone says that it has no
// manifest and so does not exist.
func testDamaged(t *testing.T, p place, gone bool, what string) {
	load := func() (*Checkpoint, []error, error) {
		store, j := open(t, p, testRun)
		defer store.Close()
		return j.Load(t.Context(), nil)
	}
	c, refused, err := load()
	require.NoError(t, err, what)
	require.Equal(t, 1, c.Number, what)
	require.Equal(t, "a after 1", string(c.Pieces[0][0]), what)
	if !gone {
		require.Len(t, refused, 1, what)
		require.ErrorContains(t, refused[0], "checkpoint-00000002 in "+p.String(), what)
	}
	first := p.blobs(t)["checkpoint-00000001"]
	first[0] ^= 1
	p.set(t, "checkpoint-00000001", first)
	_, _, err = load()
	require.ErrorContains(t, err, "no checkpoint in "+p.String()+" can be used", what)
	require.ErrorContains(t, err, "checkpoint-00000001 in "+p.String()+": it is damaged", what)
}

// TestRandomDamage writes to disks that damage data and refuse operations, and loads from them.
// Load must return a checkpoint that was written, with its pieces, or an error.
func TestRandomDamage(t *testing.T) {
	loaded, failed, older := 0, 0, 0
	for seed := range uint64(40) {
		path := t.TempDir()
		faulty := faultydisk.New(disk.OS(), seed, faultydisk.Plan{Every: 8})
		store, err := OpenDir(faulty, path)
		require.NoError(t, err)
		j, err := Open(t.Context(), store, testRun)
		require.NoError(t, err)
		pieces := func(step int) [][]byte {
			r := rand.New(rand.NewPCG(seed, uint64(step)))
			made := make([][]byte, 3)
			for i := range made {
				made[i] = make([]byte, r.IntN(3000))
				for k := range made[i] {
					made[i][k] = byte(r.Uint32() >> (8 * r.IntN(4)))
				}
			}
			return made
		}
		last := 0
		for step := 1; step <= 4; step++ {
			if _, _, err := j.Write(t.Context(), []State{state("a", step, false, pieces(step)...)}); err == nil {
				last = step
			}
		}
		require.NoError(t, store.Close())
		store, j = open(t, inDir(path), testRun)
		c, _, err := j.Load(t.Context(), nil)
		require.NoError(t, store.Close())
		switch {
		case err != nil:
			failed++
		case c == nil:
			require.Zero(t, last, "seed %d: a checkpoint that was written is lost", seed)
		default:
			loaded++
			if c.Queues[0].Superstep < last {
				older++
			}
			require.Equal(t, pieces(c.Queues[0].Superstep), c.Pieces[0], "seed %d", seed)
		}
	}
	require.Greater(t, loaded, 10)
	require.Positive(t, older)
	require.Positive(t, failed)
}

// crashing is a Store that fails at every operation that changes it after the first few, as if the
// process had been killed.
type crashing struct {
	Store
	left int
}

var errCrashed = errors.New("crashed")

func (c *crashing) Put(ctx context.Context, name string, data []byte) error {
	if c.left--; c.left < 0 {
		return errCrashed
	}
	return c.Store.Put(ctx, name, data)
}

func (c *crashing) Publish(ctx context.Context, name string, data []byte) error {
	if c.left--; c.left < 0 {
		return errCrashed
	}
	return c.Store.Publish(ctx, name, data)
}

func (c *crashing) Delete(ctx context.Context, name string) error {
	if c.left--; c.left < 0 {
		return errCrashed
	}
	return c.Store.Delete(ctx, name)
}

// TestCrash ends a run at each operation that changes the store. Afterwards the newest checkpoint
// that was written must be loaded, or a newer one that is complete, and none may be damaged.
// After a crash of Remove, either a complete checkpoint or none must be left.
func TestCrash(t *testing.T) { everywhere(t, testCrash) }

func testCrash(t *testing.T, empty func() place) {
	for most := 0; ; most++ {
		p := empty()
		opened, err := p.open(t.Context())
		require.NoError(t, err)
		store := &crashing{opened, most}
		j, err := Open(t.Context(), store, testRun)
		require.NoError(t, err)
		last := 0
		for step := 1; step <= 4 && err == nil; step++ {
			_, _, err = j.Write(t.Context(), []State{state("a", step, false, []byte{byte(step)}, []byte("x")), state(fmt.Sprint("q", step), step, true, []byte("e"))})
			if err == nil {
				last = step
			}
		}
		removing := err == nil
		if removing {
			err = j.Remove(t.Context())
		}
		finished := err == nil
		store.left = 1000
		j, err = Open(t.Context(), store, testRun)
		require.NoError(t, err)
		c, refused, err := j.Load(t.Context(), nil)
		require.NoError(t, err, "crash after %d operations", most)
		require.Empty(t, refused)
		switch {
		case c != nil:
			require.GreaterOrEqual(t, c.Queues[0].Superstep, last)
			require.Equal(t, []byte{byte(c.Queues[0].Superstep)}, c.Pieces[0][0])
			require.Len(t, c.Queues, 1+c.Queues[0].Superstep)
		case !removing:
			require.Zero(t, last)
		}
		_, leftover, err := j.Write(t.Context(), []State{state("a", 9, true, []byte{9})})
		require.NoError(t, err)
		require.NoError(t, leftover)
		_, _, err = j.Load(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, j.Remove(t.Context()))
		require.NoError(t, store.Close())
		require.Empty(t, p.blobs(t), "no blobs may be left")
		if finished {
			return
		}
	}
}

// TestFailures requires that states that cannot be encoded, and directories that cannot be used,
// are errors.
func TestFailures(t *testing.T) {
	path := t.TempDir()
	store, j := open(t, inDir(path), testRun)
	broken := State{Queue: "a", Superstep: 1, Pieces: iter.Seq2[[]byte, error](func(yield func([]byte, error) bool) { yield(nil, errCrashed) })}
	_, _, err := j.Write(t.Context(), []State{broken})
	require.ErrorIs(t, err, errCrashed)
	require.ErrorContains(t, err, `queue "a" after superstep 1 to `+path)
	require.NoError(t, store.Close())

	file := filepath.Join(path, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = OpenDir(disk.OS(), file)
	require.ErrorContains(t, err, file)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errCrashed)
	store, j = open(t, inDir(path), testRun)
	defer store.Close()
	write(t, j, state("a", 1, false, nil))
	j, err = Open(ctx, store, testRun)
	require.NoError(t, err)
	_, _, err = j.Load(ctx, nil)
	require.ErrorIs(t, err, errCrashed)
}

// FuzzManifest requires that no bytes make decodeManifest panic, and that what it accepts is
// encoded to a manifest that it accepts too.
func FuzzManifest(f *testing.F) {
	m := &Manifest{Format: 1, Number: 3, Run: testRun}
	for _, line := range []string{`{"format":1,"number":3,"written":"2026-01-02T03:04:05Z"}`, `{"format":1}`, `null`, `{"format":9}`, ""} {
		f.Add([]byte(line + "\n" + checksum([]byte(line)) + "\n"))
	}
	data, err := m.encode()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data)
		if err != nil {
			return
		}
		again, err := m.encode()
		require.NoError(t, err)
		_, err = decodeManifest(again)
		require.NoError(t, err)
	})
}

// syncedDisk is a file system that notes which files were synced.
type syncedDisk struct {
	disk.FS
	synced, renamed []string
}

func (d *syncedDisk) CreateTemp(dir, pattern string) (disk.File, error) {
	f, err := d.FS.CreateTemp(dir, pattern)
	return &syncedFile{f, d}, err
}

func (d *syncedDisk) Rename(from, to string) error {
	d.renamed = append(d.renamed, from)
	return d.FS.Rename(from, to)
}

type syncedFile struct {
	disk.File
	disk *syncedDisk
}

func (f *syncedFile) Sync() error {
	f.disk.synced = append(f.disk.synced, f.Name())
	return f.File.Sync()
}

// TestPutSyncs requires that every file is synced before it gets its name, as a crash of the
// machine could leave an empty file under that name otherwise.
func TestPutSyncs(t *testing.T) {
	on := &syncedDisk{FS: disk.OS()}
	store, err := OpenDir(on, t.TempDir())
	require.NoError(t, err)
	defer store.Close()
	j, err := Open(t.Context(), store, testRun)
	require.NoError(t, err)
	write(t, j, state("a", 1, false, []byte("one"), []byte("two")))
	require.Len(t, on.renamed, 3)
	require.Equal(t, on.renamed, on.synced)
}

// TestNoRegularFiles requires that a pipe in place of a blob is an error, as opening it would
// wait, and that files may be links.
func TestNoRegularFiles(t *testing.T) {
	made, links := t.TempDir(), t.TempDir()
	store, j := open(t, inDir(made), testRun)
	write(t, j, state("a", 1, false, []byte("one")))
	require.NoError(t, store.Close())
	for _, name := range []string{"checkpoint-00000001", pieceName(1, "a", 1, 0)} {
		require.NoError(t, os.Symlink(filepath.Join(made, name), filepath.Join(links, name)))
	}
	store, j = open(t, inDir(links), testRun)
	c, _, err := j.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "one", string(c.Pieces[0][0]))
	require.NoError(t, os.Remove(filepath.Join(links, pieceName(1, "a", 1, 0))))
	require.NoError(t, os.Mkdir(filepath.Join(links, pieceName(1, "a", 1, 0)), 0o700))
	_, _, err = j.Load(t.Context(), nil)
	require.ErrorContains(t, err, pieceName(1, "a", 1, 0)+" is no regular file")
	require.NoError(t, store.Close())
}
