//go:build linux

package mapped

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/disk"
)

// leave returns the layouts of batches in a directory, which several regions share if they are small, and a
// function that releases them.
func leave(t *testing.T, dir string, batches ...arrow.Record) (layouts []Layout, release func()) {
	t.Helper()
	files := NewNamed(disk.OS(), dir)
	var all []arrow.Record
	for _, b := range batches {
		rows, region, err := files.Hold(batch.Size(b), func(mem memory.Allocator) (arrow.Record, error) {
			return batch.ConcatApart(mem, memory.DefaultAllocator, []arrow.Record{b})
		}, same)
		require.NoError(t, err)
		l, err := region.Layout(rows)
		require.NoError(t, err)
		layouts, all = append(layouts, l), append(all, rows)
	}
	return layouts, func() {
		for _, rows := range all {
			rows.Release()
		}
		files.Close()
	}
}

// TestRowsInFilesAreReopened requires that another Reopened finds the rows that are in named files, that it
// counts what is in memory, that their regions can be verified, and that the files lose their names with the
// last region of each.
func TestRowsInFilesAreReopened(t *testing.T) {
	mem := batchtest.Allocator(t)
	batches := someBatches(t, mem)
	few, err := batch.Slice(batches[0], 1, 4)
	require.NoError(t, err)
	defer few.Release()
	batches = append(batches, few, few)
	dir := t.TempDir()
	layouts, _ := leave(t, dir, batches...) // its process is gone: it releases nothing
	o := NewReopened(disk.OS(), dir)
	var all []arrow.Record
	released := 0
	for i, l := range layouts {
		rows, region, inMemory, err := o.Rows(batches[i].Schema(), l)
		require.NoError(t, err)
		require.GreaterOrEqual(t, inMemory, 4*(l.Rows+1), "offsets are in memory")
		require.Less(t, inMemory, 4*(l.Rows+1)+64)
		require.NoError(t, batch.Validate(rows))
		batchtest.Equal(t, batches[i], rows)
		require.NoError(t, region.Verify())
		again, err := region.Layout(rows)
		require.NoError(t, err)
		require.Equal(t, l, again)
		region.OnRelease(func() { released++ })
		all = append(all, rows)
	}
	o.Close()
	for i, rows := range all {
		require.Equal(t, i, released)
		rows.Release()
	}
	require.Equal(t, len(all), released)
	requireEmpty(t, dir)
}

// TestNamedFilesAreRemoved requires that files whose rows are released have no names any more.
func TestNamedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	_, release := leave(t, dir, someBatches(t, batchtest.Allocator(t))...)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, names)
	release()
	requireEmpty(t, dir)

	rows, region := hold(t, disk.OS(), 1, someBatches(t, batchtest.Allocator(t)))
	defer rows.Release()
	_, err = region.Layout(rows)
	require.ErrorContains(t, err, "has no name")
}

// TestDamagedFilesAreNotReopened requires that files which were changed, cut off, extended, replaced or
// removed are refused.
func TestDamagedFilesAreNotReopened(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"first byte": func(path string) error { return flip(path, 0) },
		"byte 5000":  func(path string) error { return flip(path, 5000) },
		"cut off":    func(path string) error { return os.Truncate(path, 4096) },
		"empty":      func(path string) error { return os.Truncate(path, 0) },
		"extended":   func(path string) error { return os.Truncate(path, 1<<22) },
		"removed":    os.Remove,
		"a directory": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			batches := someBatches(t, batchtest.Allocator(t))[:1]
			dir := t.TempDir()
			layouts, _ := leave(t, dir, batches...)
			require.NoError(t, damage(filepath.Join(dir, layouts[0].Parts[0].File)))
			o := NewReopened(disk.OS(), dir)
			defer o.Close()
			_, _, _, err := o.Rows(batches[0].Schema(), layouts[0])
			require.Error(t, err)
		})
	}
}

// flip changes a byte of a file.
func flip(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= 0x40
	_, err = f.WriteAt(b, at)
	return err
}

// TestLayoutsThatLie requires that a layout with a wrong number is refused, or describes rows that can be
// read. Checksums protect layouts, so numbers are wrong only if a program wrote them.
func TestLayoutsThatLie(t *testing.T) {
	batches := someBatches(t, batchtest.Allocator(t))[:1]
	refused := 0
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		require.NoError(t, err)
		layouts, release := leave(t, dir, batches...)
		defer release()
		l := layouts[0]
		all := append(numbersOf(l.Columns), &l.Rows)
		for i := range l.Parts {
			all = append(all, &l.Parts[i].Size, &l.Parts[i].At, &l.Parts[i].Length)
		}
		at := rapid.SampledFrom(all).Draw(r, "number")
		was := *at
		*at = rapid.SampledFrom([]int64{-1, 0, 1, 63, 64, 1 << 20, 1 << 40, 1 << 62, was + 1, was - 1, was + 64, was - 64}).Draw(r, "value")
		o := NewReopened(disk.OS(), dir)
		defer o.Close()
		rows, region, _, err := o.Rows(batches[0].Schema(), l)
		if err == nil {
			err = region.Read(func() error { return batch.Validate(rows) })
			if err == nil {
				_ = batchtest.Rows(rows)
			}
			rows.Release()
		}
		if err != nil {
			refused++
		}
	})
	require.NotZero(t, refused)
}

// numbersOf returns all numbers of arrays.
func numbersOf(arrays []LayoutArray) (all []*int64) {
	for i := range arrays {
		a := &arrays[i]
		all = append(all, &a.Rows, &a.Nulls)
		for k := range a.Buffers {
			all = append(all, &a.Buffers[k].At, &a.Buffers[k].Length)
		}
		all = append(all, numbersOf(a.Children)...)
	}
	return all
}
