package disk_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/disk/faultydisk"
)

// form is a file format of package disk.
type form struct {
	name string
	// write writes the pieces to f, and returns a function that reads all of them from the file
	// again at every call.
	write func(t *testing.T, f disk.File, pieces [][]byte) func() ([][]byte, error)
}

var forms = []form{
	{"blocks", func(t *testing.T, f disk.File, pieces [][]byte) func() ([][]byte, error) {
		w := disk.NewBlocks(f)
		var places []disk.Block
		for _, p := range pieces {
			for part := range chunks(p, 1+len(p)/9) {
				_, err := w.Write(part)
				require.NoError(t, err)
			}
			places = append(places, w.End())
		}
		require.NoError(t, w.Flush())
		return func() (read [][]byte, err error) {
			for _, place := range places {
				data, err := disk.ReadBlock(f, place, nil)
				if err != nil {
					return nil, err
				}
				read = append(read, data)
			}
			return read, nil
		}
	}},
	{"frames", func(t *testing.T, f disk.File, pieces [][]byte) func() ([][]byte, error) {
		w := disk.NewFrames(f)
		var streams []disk.Stream
		for i, p := range pieces {
			for part := range chunks(p, 1+len(p)/9) {
				_, err := w.Write(part)
				require.NoError(t, err)
			}
			require.NoError(t, w.End(int64(i)))
			if i%3 == 2 || i == len(pieces)-1 {
				s, err := w.EndStream()
				require.NoError(t, err)
				streams = append(streams, s)
			}
		}
		return func() (read [][]byte, err error) {
			for _, s := range streams {
				r := disk.NewFrameReader(f, s)
				for {
					data, rows, err := r.Next()
					if err == io.EOF {
						break
					}
					if err != nil {
						return nil, err
					}
					require.EqualValues(t, len(read), rows)
					read = append(read, bytes.Clone(data))
				}
			}
			return read, nil
		}
	}},
	{"spool", func(t *testing.T, f disk.File, pieces [][]byte) func() ([][]byte, error) {
		w := disk.NewSpool(f)
		for _, p := range pieces {
			_, err := w.Write(p)
			require.NoError(t, err)
		}
		require.NoError(t, w.Seal())
		return func() (read [][]byte, err error) {
			var at int64
			for _, p := range pieces {
				data := make([]byte, len(p))
				if n, err := w.ReadAt(data, at); err != nil {
					require.NotErrorIs(t, err, io.EOF)
					return nil, err
				} else if n != len(p) {
					return nil, errors.New("too few")
				}
				at += int64(len(p))
				read = append(read, data)
			}
			n, err := w.ReadAt(make([]byte, 10), at-3)
			if n != 3 || err != io.EOF {
				return nil, err
			}
			return read, nil
		}
	}},
}

func chunks(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			k := min(n, len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

// somePieces returns slices of random bytes with the given sizes.
func somePieces(draw *rand.ChaCha8, sizes ...int) [][]byte {
	pieces := make([][]byte, len(sizes))
	for i, n := range sizes {
		pieces[i] = make([]byte, n)
		_, _ = draw.Read(pieces[i])
	}
	return pieces
}

func seeded(seed uint64) *rand.ChaCha8 {
	return rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
}

// TestEveryPosition flips a bit in every byte of a file, and truncates the file at every offset. It
// requires that reading fails each time with a *DamagedError that names the file, not with io.EOF.
func TestEveryPosition(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			pieces := somePieces(seeded(1), 40, 1, 40, 64, 64, 17, 40)
			path := filepath.Join(t.TempDir(), "rows")
			f, err := disk.OS().OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
			require.NoError(t, err)
			defer f.Close()
			read := form.write(t, f, pieces)
			got, err := read()
			require.NoError(t, err)
			require.Equal(t, pieces, got)
			good, err := os.ReadFile(path)
			require.NoError(t, err)
			refused := func(what string, at int) {
				t.Helper()
				got, err := read()
				var damage *disk.DamagedError
				require.ErrorAs(t, err, &damage, "%s at %d: reading must fail with a *DamagedError, but returned %v", what, at, got)
				require.Equal(t, path, damage.File)
				require.LessOrEqual(t, damage.Offset, int64(at))
				require.NotErrorIs(t, err, io.EOF)
				require.ErrorContains(t, err, path)
			}
			for at := range good {
				bad := bytes.Clone(good)
				bad[at] ^= 1 << (at % 8)
				require.NoError(t, os.WriteFile(path, bad, 0o600))
				refused("bit", at)
				require.NoError(t, os.Truncate(path, int64(at)))
				refused("end", at)
			}
			// Bytes after the last written byte are ignored.
			require.NoError(t, os.WriteFile(path, append(good, "more"...), 0o600))
			got, err = read()
			require.NoError(t, err)
			require.Equal(t, pieces, got)
		})
	}
}

// TestElsewhere requires a *DamagedError if two pieces of equal size are exchanged, if one of them
// overwrites the other, and if the file has the content of another file.
func TestElsewhere(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			const size, count = 64 << 10, 6
			dir := t.TempDir()
			var path [2]string
			var good [2][]byte
			var read [2]func() ([][]byte, error)
			for i := range path {
				path[i] = filepath.Join(dir, string(rune('a'+i)))
				f, err := disk.OS().OpenFile(path[i], os.O_CREATE|os.O_RDWR, 0o600)
				require.NoError(t, err)
				defer f.Close()
				sizes := make([]int, count)
				for j := range sizes {
					sizes[j] = size
				}
				read[i] = form.write(t, f, somePieces(seeded(uint64(i)), sizes...))
				good[i], err = os.ReadFile(path[i])
				require.NoError(t, err)
			}
			step := len(good[0]) / count
			for a := range count {
				for b := range a {
					for _, twice := range []bool{false, true} {
						bad := bytes.Clone(good[0])
						copy(bad[a*step:][:step], good[0][b*step:][:step])
						if !twice {
							copy(bad[b*step:][:step], good[0][a*step:][:step])
						}
						require.NoError(t, os.WriteFile(path[0], bad, 0o600))
						_, err := read[0]()
						var damage *disk.DamagedError
						require.ErrorAs(t, err, &damage, "exchanged pieces %d and %d must be damage; twice: %v", a, b, twice)
					}
				}
			}
			require.NoError(t, os.WriteFile(path[0], good[1], 0o600))
			_, err := read[0]()
			var damage *disk.DamagedError
			require.ErrorAs(t, err, &damage)
		})
	}
}

// TestFaults reads every format from a disk that fails at random. Reading must fail if and only if
// the disk returned wrong bytes or refused to read; otherwise it must return the written bytes.
func TestFaults(t *testing.T) {
	dir, damaged, refused := t.TempDir(), 0, 0
	for _, form := range forms {
		for seed := range uint64(100) {
			d := faultydisk.New(disk.OS(), seed, faultydisk.Plan{Every: 6, Kinds: []faultydisk.Kind{
				faultydisk.FlipBit, faultydisk.ZeroRange, faultydisk.Repeat, faultydisk.Swap, faultydisk.Truncate,
				faultydisk.ReadError, faultydisk.ShortRead, faultydisk.SlowRead,
			}})
			f, err := d.CreateTemp(dir, "rows-*")
			require.NoError(t, err)
			pieces := somePieces(seeded(seed), 100, 70<<10, 1, 30, 140<<10)
			got, err := form.write(t, f, pieces)()
			read := d.Read()
			if err == nil {
				require.Empty(t, read, "reading %s succeeded, so no fault may have affected it; seed %d", form.name, seed)
				require.Equal(t, pieces, got, "reading %s must return the written bytes; seed %d", form.name, seed)
			} else {
				require.NotEmpty(t, read, "reading %s may fail only after a fault; seed %d: %v", form.name, seed, err)
				require.ErrorContains(t, err, f.Name())
				require.NotErrorIs(t, err, io.EOF)
				if read[len(read)-1].Kind.Refuses() {
					refused++
				} else {
					damaged++
				}
			}
			require.NoError(t, f.Close())
			require.NoError(t, d.Remove(f.Name()))
		}
	}
	require.Greater(t, damaged, 50)
	require.Greater(t, refused, 10)
}

// TestLongPieces requires that pieces much longer than every buffer are verified from their first
// byte to their last.
func TestLongPieces(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			f, err := disk.OS().OpenFile(filepath.Join(t.TempDir(), "rows"), os.O_CREATE|os.O_RDWR, 0o600)
			require.NoError(t, err)
			defer f.Close()
			pieces := somePieces(seeded(1), 1<<20+1, 17<<20)
			read := form.write(t, f, pieces)
			got, err := read()
			require.NoError(t, err)
			require.True(t, slices.EqualFunc(pieces, got, bytes.Equal))
			file := f.(*os.File)
			info, err := file.Stat()
			require.NoError(t, err)
			good := make([]byte, 1)
			for _, at := range []int64{0, 1 << 19, 1 << 20, 10 << 20, info.Size() - 1} {
				_, err := file.ReadAt(good, at)
				require.NoError(t, err)
				_, err = file.WriteAt([]byte{good[0] ^ 4}, at)
				require.NoError(t, err)
				_, err = read()
				var damage *disk.DamagedError
				require.ErrorAs(t, err, &damage, "a change of byte %d must be damage", at)
				_, err = file.WriteAt(good, at)
				require.NoError(t, err)
			}
			got, err = read()
			require.NoError(t, err, "the piece must be readable after every changed byte was restored")
			require.True(t, slices.EqualFunc(pieces, got, bytes.Equal))
		})
	}
}

// idle is a file whose ReadAt returns no bytes and no error while stalls is set. After left such
// reads it fails with errAsked, so that a reader that tries for ever does not hang the test.
type idle struct {
	disk.File
	stalls bool
	left   int
}

var errAsked = errors.New("asked on and on")

func (f *idle) ReadAt(b []byte, at int64) (int, error) {
	if !f.stalls {
		return f.File.ReadAt(b, at)
	}
	if f.left--; f.left < 0 {
		return 0, errAsked
	}
	return 0, nil
}

// TestIdleFile requires io.ErrNoProgress if a file system returns neither bytes nor an error.
func TestIdleFile(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			under, err := disk.OS().OpenFile(filepath.Join(t.TempDir(), "rows"), os.O_CREATE|os.O_RDWR, 0o600)
			require.NoError(t, err)
			defer under.Close()
			f := &idle{File: under, left: 1000}
			read := form.write(t, f, somePieces(seeded(1), 40, 100<<10))
			_, err = read()
			require.NoError(t, err)
			f.stalls = true
			_, err = read()
			require.ErrorIs(t, err, io.ErrNoProgress)
			require.ErrorContains(t, err, under.Name())
		})
	}
}
