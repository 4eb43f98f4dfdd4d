//go:build linux

package mapped

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/memrange"
)

// keepingFS keeps an open handle of every file that it creates. Tests need it to damage files,
// because the names of mapped files are removed.
type keepingFS struct {
	disk.FS
	t     *testing.T
	files []*os.File
}

func newKeepingFS(t *testing.T) *keepingFS { return &keepingFS{FS: disk.OS(), t: t} }

func (fs *keepingFS) CreateTemp(dir, pattern string) (disk.File, error) {
	f, err := fs.FS.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	kept, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
	require.NoError(fs.t, err)
	fs.t.Cleanup(func() { kept.Close() })
	fs.files = append(fs.files, kept)
	return f, nil
}

// many returns a batch with the given rows repeated 2500 times, so that its buffers are large.
func many(t *testing.T, mem memory.Allocator, rows arrow.Record) arrow.Record {
	defer rows.Release()
	all, err := batch.Concat(mem, slices.Repeat([]arrow.Record{rows}, 2500))
	require.NoError(t, err)
	return all
}

// someBatches returns batches with columns of all layouts. The last batch has buffers with
// offsets that are not 0.
func someBatches(t *testing.T, mem memory.Allocator) []arrow.Record {
	schema := batchtest.Schema(t, "id int64", "name utf8 null", "x vector[2]", "on bool null")
	first := many(t, mem, batchtest.Record(t, mem, schema, `[{"id": 1, "name": "one", "x": [0.5, -1], "on": true}, {"id": 2, "x": [3, 4]}]`))
	second := many(t, mem, batchtest.Record(t, mem, schema, `[{"id": 3, "name": "", "x": [7, 8], "on": false}, {"id": 4, "name": "four", "x": [9, 10], "on": true}, {"id": 5, "x": [0, 0]}]`))
	third := batchtest.WithOffset(t, mem, second)
	all := []arrow.Record{first, second, third}
	t.Cleanup(func() {
		for _, rows := range all {
			rows.Release()
		}
	})
	return all
}

// hold concatenates batches into a region. It requires that the directory of the files is empty
// afterwards.
func hold(t *testing.T, fs disk.FS, size int64, batches []arrow.Record) (arrow.Record, *Region) {
	t.Helper()
	dir := t.TempDir()
	files := NewFiles(fs, dir)
	defer files.Close()
	rows, region, err := files.Hold(size, func(mem memory.Allocator) (arrow.Record, error) { return batch.Concat(mem, batches) }, same)
	require.NoError(t, err)
	requireEmpty(t, dir)
	return rows, region
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestRowsAreThoseOfMemory requires that Hold returns the same rows as Concat in memory, for every
// size. The memory must be freed when the last reference to the rows is released.
func TestRowsAreThoseOfMemory(t *testing.T) {
	mem := batchtest.Allocator(t)
	batches := someBatches(t, mem)
	want, err := batch.Concat(mem, batches)
	require.NoError(t, err)
	defer want.Release()
	for _, size := range []int64{0, 1, batch.Size(want), 1 << 20} {
		rows, region := hold(t, disk.OS(), size, batches)
		batchtest.Equal(t, want, rows)
		require.NoError(t, region.Verify())
		require.GreaterOrEqual(t, region.Size(), max(size, 1))
		part, err := batch.Slice(rows, 3, 5)
		require.NoError(t, err)
		rows.Release()
		require.NotZero(t, region.Size(), "the region must not be freed while a slice refers to it")
		require.Equal(t, batchtest.Rows(want)[3:5], batchtest.Rows(part))
		part.Release()
		require.Zero(t, region.Size())
	}
}

// TestMoreBytesThanDeclared requires that Hold takes further mappings if make needs more bytes
// than the given size.
func TestMoreBytesThanDeclared(t *testing.T) {
	const n = 3 * leastShared / 8
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i)
	}
	column := batch.WrapVectorArray(values, 1)
	defer column.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: column.DataType()}, {Name: "y", Type: column.DataType()}}, nil)
	rec := array.NewRecord(schema, []arrow.Array{column, column}, n)
	defer rec.Release()
	rows, region := hold(t, disk.OS(), 10, []arrow.Record{rec, rec})
	defer rows.Release()
	require.Greater(t, len(region.parts), 1)
	for _, c := range rows.Columns() {
		data, _, ok := batch.DenseView(c)
		require.True(t, ok)
		require.Len(t, data, 2*n)
		for i, v := range data {
			if v != float64(i%n) {
				t.Fatalf("value %d is %v", i, v)
			}
		}
	}
	require.NoError(t, region.Verify())
}

// TestDamage requires that Verify reports a flipped bit, and a file that the disk cannot read.
func TestDamage(t *testing.T) {
	batches := someBatches(t, batchtest.Allocator(t))
	fs := newKeepingFS(t)
	rows, region := hold(t, fs, 1<<20, batches)
	defer rows.Release()
	require.Len(t, fs.files, 1)
	f := fs.files[0]
	for at := range region.Size() {
		if at%4093 != 0 {
			continue
		}
		var b [1]byte
		_, err := f.ReadAt(b[:], at)
		require.NoError(t, err)
		for _, bits := range []byte{1 << (at % 8), 0} {
			_, err = f.WriteAt([]byte{b[0] ^ bits}, at)
			require.NoError(t, err)
			err := region.Verify()
			if bits == 0 {
				require.NoError(t, err)
				continue
			}
			var damaged *disk.DamagedError
			require.ErrorAs(t, err, &damaged)
			require.Equal(t, f.Name(), damaged.File)
		}
	}
	require.NoError(t, f.Truncate(region.Size()/2))
	require.ErrorContains(t, region.Verify(), "some cannot be read")
	require.False(t, debug.SetPanicOnFault(false), "Verify must restore SetPanicOnFault")
}

// TestDamageInEveryMapping requires that Verify reports damage in every mapping of a region that
// has several.
func TestDamageInEveryMapping(t *testing.T) {
	batches := someBatches(t, batchtest.Allocator(t))
	fs := newKeepingFS(t)
	rows, region := hold(t, fs, 10, batches)
	defer rows.Release()
	require.Greater(t, len(region.parts), 1)
	for _, p := range region.parts {
		i := slices.IndexFunc(fs.files, func(f *os.File) bool { return f.Name() == p.of.name })
		f, begin := fs.files[i], int64(memrange.Address(p.data)-memrange.Address(p.of.data))
		for _, at := range []int64{begin, begin + int64(len(p.data)) - 1} {
			var b [1]byte
			_, err := f.ReadAt(b[:], at)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte{b[0] ^ 1}, at)
			require.NoError(t, err)
			var damaged *disk.DamagedError
			require.ErrorAs(t, region.Verify(), &damaged)
			require.Equal(t, f.Name(), damaged.File)
			_, err = f.WriteAt(b[:], at)
			require.NoError(t, err)
			require.NoError(t, region.Verify())
		}
	}
}

// noFile is a file without a descriptor (Fd), so it cannot be mapped.
type noFile struct{ disk.File }

type noFileFS struct{ disk.FS }

func (fs noFileFS) CreateTemp(dir, pattern string) (disk.File, error) {
	f, err := fs.FS.CreateTemp(dir, pattern)
	return noFile{f}, err
}

// reserves reports whether the file system of a directory supports reserve.
func reserves(t *testing.T, dir string) bool {
	f, err := os.CreateTemp(dir, "")
	require.NoError(t, err)
	defer os.Remove(f.Name())
	defer f.Close()
	return reserve(int(f.Fd()), 1) == nil
}

// TestHoldFails requires that no file is left if the disk is full, if the file cannot be mapped, and
// if make fails.
func TestHoldFails(t *testing.T) {
	batches := someBatches(t, batchtest.Allocator(t))
	boom := errors.New("boom")
	for _, test := range []struct {
		name string
		fs   disk.FS
		size int64
		make func(mem memory.Allocator) (arrow.Record, error)
		want error
	}{
		{name: "no room", fs: disk.OS(), size: 1 << 55},
		{name: "no file", fs: noFileFS{disk.OS()}, want: ErrUnsupported},
		{name: "no batch", fs: disk.OS(), want: boom, make: func(mem memory.Allocator) (arrow.Record, error) {
			b := memory.NewResizableBuffer(mem)
			b.Resize(100)
			b.Resize(1 << 20)
			b.Release()
			return nil, boom
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.make == nil {
				test.make = func(mem memory.Allocator) (arrow.Record, error) { return batch.Concat(mem, batches) }
			}
			dir := t.TempDir()
			if test.size > 0 && !reserves(t, dir) {
				return // Hold would write zeros until the disk is full
			}
			files := NewFiles(test.fs, dir)
			defer files.Close()
			rows, region, err := files.Hold(test.size, test.make, same)
			require.Error(t, err)
			require.Nil(t, rows)
			require.Nil(t, region)
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
			}
			requireEmpty(t, dir)
		})
	}
	files := NewFiles(disk.OS(), t.TempDir())
	defer files.Close()
	require.PanicsWithValue(t, boom, func() {
		_, _, _ = files.Hold(0, func(memory.Allocator) (arrow.Record, error) { panic(boom) }, same)
	}, "a panic of make must not be recovered")
}

// TestWriteZeros requires that writeZeros writes n bytes, and returns the errors of the file.
func TestWriteZeros(t *testing.T) {
	for _, n := range []int64{1, 4096, 3<<20 + 5} {
		f, err := os.Create(filepath.Join(t.TempDir(), "zeros"))
		require.NoError(t, err)
		require.NoError(t, writeZeros(f, n))
		info, err := f.Stat()
		require.NoError(t, err)
		require.Equal(t, n, info.Size())
		require.NoError(t, f.Close())
		require.ErrorIs(t, writeZeros(f, n), os.ErrClosed)
	}
}

// TestDamageWhileABlockIsFilled damages the file while HoldBytes fills it. Verify must report
// that, because the checksum is computed from the bytes of fill and not from the bytes in the
// file.
func TestDamageWhileABlockIsFilled(t *testing.T) {
	fs := newKeepingFS(t)
	files := NewFiles(fs, t.TempDir())
	defer files.Close()
	_, region, err := files.HoldBytes([]int{1 << 16, 0, 100}, func(piece int, b []byte) error {
		if piece == 2 {
			_, err := fs.files[0].WriteAt([]byte{1}, 4096)
			return err
		}
		return nil
	})
	require.NoError(t, err)
	defer region.Release()
	var damaged *disk.DamagedError
	require.ErrorAs(t, region.Verify(), &damaged)
}

// same is a compare function that accepts all rows.
func same(arrow.Record) error { return nil }

// TestRowsThatDiffer requires that Hold fails if compare returns an error, or if the disk cannot
// read pages back while compare runs. No file, mapping or buffer may be left.
func TestRowsThatDiffer(t *testing.T) {
	mem := batchtest.Allocator(t)
	batches := someBatches(t, mem)
	fs, differ := newKeepingFS(t), errors.New("they differ")
	for want, compare := range map[string]func(rows arrow.Record) error{
		differ.Error(): func(arrow.Record) error { return differ },
		"the disk does not hold them": func(rows arrow.Record) error {
			for _, f := range fs.files {
				require.NoError(t, f.Truncate(0))
			}
			require.Equal(t, int64(1), rows.Column(0).(*array.Int64).Value(0))
			return nil
		},
	} {
		dir := t.TempDir()
		files := NewFiles(fs, dir)
		rows, region, err := files.Hold(1<<16, func(file memory.Allocator) (arrow.Record, error) {
			return batch.ConcatApart(file, mem, batches)
		}, compare)
		files.Close()
		require.ErrorContains(t, err, want)
		require.Nil(t, rows)
		require.Nil(t, region)
		requireEmpty(t, dir)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	require.NotContains(t, string(maps), "/rows-")
}

// TestSmallBuffers requires that small buffers lie in the mapped file too.
func TestSmallBuffers(t *testing.T) {
	mem := batchtest.Allocator(t)
	one := batchtest.Record(t, mem, batchtest.Schema(t, "id int64", "x float64 null"), `[{"id": 1, "x": 0.5}, {"id": 2}]`)
	defer one.Release()
	rows, region := hold(t, newKeepingFS(t), 64, []arrow.Record{one})
	defer rows.Release()
	for _, column := range rows.Columns() {
		for _, b := range column.Data().Buffers() {
			if b != nil && b.Len() > 0 {
				in := func(p part) bool { return p.contains(memrange.Address(b.Bytes())) }
				require.True(t, slices.ContainsFunc(region.parts, in), column)
			}
		}
	}
}

// TestManySmallRegions requires that small regions share mappings, because the number of mappings
// of a process is limited. Verify must check only its own region. A mapping must be unmapped when
// its last region is released.
func TestManySmallRegions(t *testing.T) {
	mem := batchtest.Allocator(t)
	one := batchtest.Record(t, mem, batchtest.Schema(t, "id int64"), `[{"id": 1}]`)
	defer one.Release()
	dir, fs := t.TempDir(), newKeepingFS(t)
	files := NewFiles(fs, dir)
	build := func(mem memory.Allocator) (arrow.Record, error) { return batch.Concat(mem, []arrow.Record{one, one}) }
	const n = 20_000
	held, regions := make([]arrow.Record, n), make([]*Region, n)
	for i := range held {
		var err error
		held[i], regions[i], err = files.Hold(64, build, same)
		require.NoError(t, err)
		require.True(t, Contains(held[i].Column(0).Data().Buffers()[1].Bytes()))
	}
	block, region, err := files.HoldBytes([]int{100}, func(_ int, b []byte) error { b[99] = 7; return nil })
	require.NoError(t, err)
	require.Equal(t, byte(7), block[99])
	require.True(t, Contains(block[99:]))
	require.Less(t, len(fs.files), 20, "small regions must share mappings")
	requireEmpty(t, dir)

	p := regions[n/2].parts[0]
	p.data[3] ^= 1
	for i, r := range regions {
		require.Equal(t, i == n/2, r.Verify() != nil, i)
	}
	files.Close()
	for i, rows := range held {
		if i == n/2 {
			continue
		}
		rows.Release()
	}
	require.Equal(t, int64(1), held[n/2].Column(0).(*array.Int64).Value(1), "the mapping must remain until its last region is released")
	held[n/2].Release()
	require.NoError(t, region.Verify())
	region.Release()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	require.NotContains(t, string(maps), dir)
	require.False(t, Contains([]byte{1}))
	require.False(t, Contains(nil))
}

// scarceFS is a disk that is full when the second file is created, and never again.
type scarceFS struct {
	disk.FS
	made, refused int
}

func (fs *scarceFS) CreateTemp(dir, pattern string) (disk.File, error) {
	if fs.made == 1 && fs.refused == 0 {
		fs.refused++
		return nil, syscall.ENOSPC
	}
	fs.made++
	return fs.FS.CreateTemp(dir, pattern)
}

// TestLittleRoomIsEnough requires that a region gets a mapping of its own size if the disk has no
// space for a larger shared mapping.
func TestLittleRoomIsEnough(t *testing.T) {
	fs := &scarceFS{FS: disk.OS()}
	files := NewFiles(fs, t.TempDir())
	defer files.Close()
	for i := range 3 { // the second and the third region do not fit in the previous mapping
		block, region, err := files.HoldBytes([]int{leastShared * 3 / 4}, func(_ int, b []byte) error { b[5] = 7; return nil })
		require.NoError(t, err, i)
		require.Equal(t, byte(7), block[5])
		require.NoError(t, region.Verify())
		defer region.Release()
	}
	require.Equal(t, scarceFS{FS: fs.FS, made: 3, refused: 1}, *fs)
}
