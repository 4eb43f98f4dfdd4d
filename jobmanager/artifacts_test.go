package jobmanager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// executable returns the bytes of a small ELF file for linux/amd64. Different salts give
// different files.
func executable(salt string) []byte {
	le := func(n int, v uint64) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(v >> (8 * i))
		}
		return b
	}
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	for _, field := range []struct {
		n int
		v uint64
	}{
		{2, 2}, {2, 62}, {4, 1}, {8, 0x400078}, {8, 64}, {8, 0}, {4, 0}, {2, 64}, {2, 56}, {2, 1}, {2, 64}, {2, 0}, {2, 0},
		{4, 1}, {4, 5}, {8, 0}, {8, 0x400000}, {8, 0x400000}, {8, uint64(0x78 + len(salt))}, {8, uint64(0x78 + len(salt))}, {8, 0x1000},
	} {
		b.Write(le(field.n, field.v))
	}
	b.WriteString(salt)
	return b.Bytes()
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pieces returns a function that returns data in pieces of n bytes.
func pieces(data []byte, n int) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(data) == 0 {
			return nil, io.EOF
		}
		piece := data[:min(n, len(data))]
		data = data[len(piece):]
		return piece, nil
	}
}

var linux = wire.Platform{OS: "linux", Arch: "amd64"}

func testRoot(t testing.TB) *os.Root {
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

func testArtifacts(t *testing.T, limit, cache int64) *artifacts {
	a, err := openArtifacts(t.TempDir(), limit, cache)
	require.NoError(t, err)
	return a
}

// onDisk returns the names of the files in the store's directory.
func onDisk(t *testing.T, a *artifacts) (names []string) {
	entries, err := os.ReadDir(a.Dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func fetched(t *testing.T, a *artifacts, hash string) []byte {
	var b []byte
	require.NoError(t, a.send(t.Context(), hash, func(c *wire.Chunk) error {
		if len(b) == 0 {
			require.Equal(t, hash, c.Hash)
		}
		b = append(b, c.Data...)
		return nil
	}))
	return b
}

func TestArtifactRoundTrip(t *testing.T) {
	a := testArtifacts(t, 1<<20, 1<<20)
	data := executable(strings.Repeat("abc", 200_000))
	hash := hashOf(data)
	require.False(t, a.has(hash))
	require.NoError(t, a.put(hash, int64(len(data)), pieces(data, 1000)))
	require.True(t, a.has(hash))
	require.Equal(t, data, fetched(t, a, hash))

	again, err := openArtifacts(a.Dir, 1<<20, 1<<20)
	require.NoError(t, err)
	require.True(t, again.has(hash), "the store must have the executable after a restart")
	require.NoError(t, again.pin(hash, linux))
	require.EqualValues(t, len(data), again.bytes())
}

// TestDamagedArtifact requires that sending a damaged executable fails, and that the executable
// can be uploaded again.
func TestDamagedArtifact(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"a bit":     func(b []byte) []byte { b[len(b)-3] ^= 8; return b },
		"cut":       func(b []byte) []byte { return b[:len(b)-1] },
		"longer":    func(b []byte) []byte { return append(b, 0) },
		"all zeros": func(b []byte) []byte { clear(b); return b },
	} {
		t.Run(name, func(t *testing.T) {
			a := testArtifacts(t, 1<<20, 1<<20)
			data := executable(strings.Repeat("abc", 200_000))
			hash := hashOf(data)
			require.NoError(t, a.put(hash, int64(len(data)), pieces(data, 1000)))
			require.NoError(t, a.pin(hash, linux))
			path := a.Path(hash)
			require.NoError(t, os.WriteFile(path, damage(bytes.Clone(data)), 0o600))
			err := a.send(t.Context(), hash, func(*wire.Chunk) error { return nil })
			require.ErrorIs(t, err, errNoSuch)
			require.ErrorContains(t, err, "it was damaged where it was kept")
			require.False(t, a.has(hash))
			require.Empty(t, onDisk(t, a))
			require.Zero(t, a.bytes())
			a.unpin(hash)
			require.NoError(t, a.put(hash, int64(len(data)), pieces(data, 1000)))
			require.Equal(t, data, fetched(t, a, hash))
		})
	}
}

// TestDamagedArtifactIsHeldOn requires that jobs pin executables by hash and not by file. If an
// executable is removed because it is damaged, and is uploaded again, the store must keep it as
// long as any job pins it, even a job that began before the removal, and no longer.
func TestDamagedArtifactIsHeldOn(t *testing.T) {
	one, two := executable("1"), executable("2")
	size := int64(len(one))
	for name, c := range map[string]struct {
		steps string // l: the file is lost; u: the executable is uploaded again; +: a job begins; -: a job ends
		held  int
	}{
		"another job begins":                  {"+ l u + -", 1},
		"it begins and the first goes on":     {"+ l u +", 2},
		"both end":                            {"+ l u + - -", 0},
		"nobody begins":                       {"+ l u", 1},
		"nobody begins and the first ends":    {"+ l u -", 0},
		"the first ends before the upload":    {"+ l - u", 0},
		"one of two ends before the upload":   {"+ + l - u", 1},
		"lost twice":                          {"+ l u + l u -", 1},
		"lost twice and nobody uploaded once": {"+ l u l - u +", 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := testArtifacts(t, size, size)
			hash := hashOf(one)
			upload := func() {
				t.Helper()
				require.NoError(t, a.put(hash, size, pieces(one, 50)))
				require.Equal(t, one, fetched(t, a, hash))
			}
			upload()
			for step := range strings.FieldsSeq(c.steps) {
				switch step {
				case "l":
					require.NoError(t, os.WriteFile(a.Path(hash), two, 0o600))
					require.ErrorIs(t, a.send(t.Context(), hash, func(*wire.Chunk) error { return nil }), errNoSuch)
				case "u":
					upload()
				case "+":
					require.NoError(t, a.pin(hash, linux))
				case "-":
					a.unpin(hash)
				}
			}
			for range c.held {
				require.ErrorIs(t, a.put(hashOf(two), size, pieces(two, 50)), errNoRoom)
				require.True(t, a.has(hash))
				a.unpin(hash)
			}
			for range 2 {
				require.NoError(t, a.put(hashOf(two), size, pieces(two, 50)), "an executable must be removable after the last unpin")
				require.False(t, a.has(hash))
				require.Equal(t, []string{hashOf(two)}, onDisk(t, a))
				upload()
			}
			require.Len(t, a.Kept, 1)
		})
	}
}

// TestRemovedArtifact requires that an executable whose file was deleted counts as missing, so
// that it is uploaded again.
func TestRemovedArtifact(t *testing.T) {
	a := testArtifacts(t, 1<<20, 1<<20)
	data := executable("x")
	hash := hashOf(data)
	for range 2 {
		require.NoError(t, a.put(hash, int64(len(data)), pieces(data, 50)))
		require.NoError(t, os.Remove(a.Path(hash)))
		err := a.send(t.Context(), hash, func(*wire.Chunk) error { return nil })
		require.ErrorIs(t, err, errNoSuch)
		require.ErrorContains(t, err, "upload")
		require.False(t, a.has(hash))
		require.Zero(t, a.bytes())
	}
}

func TestArtifactRefused(t *testing.T) {
	good := executable("payload")
	hash, size := hashOf(good), int64(len(good))
	shorter := good[:len(good)-1] // its header says that it has one byte more
	for name, c := range map[string]struct {
		hash string
		size int64
		data []byte
		is   error
		says string
	}{
		"wrong hash":      {hashOf([]byte("x")), size, good, errWrong, "its SHA-256 is " + hash},
		"truncated":       {hash, size, good[:size-1], errWrong, "cut short"},
		"cut before":      {hashOf(shorter), size - 1, shorter, errWrong, "cut short"},
		"too large":       {hash, 1 << 21, good, errTooLarge, "the limit is 1048576"},
		"more than said":  {hash, size - 1, good, errWrong, "more than the"},
		"empty":           {hash, 0, nil, errWrong, "size of 0"},
		"negative":        {hash, -1, nil, errWrong, "size of -1"},
		"script":          {hashOf([]byte("#!/bin/sh\n")), 10, []byte("#!/bin/sh\n"), errWrong, "script"},
		"text":            {hashOf([]byte("hello")), 5, []byte("hello"), errWrong, "not an executable"},
		"header alone":    {hashOf(good[:20]), 20, good[:20], errWrong, "cut short"},
		"path as hash":    {"../../etc/passwd", size, good, errWrong, "not a SHA-256"},
		"upper-case hash": {strings.ToUpper(hash), size, good, errWrong, "not a SHA-256"},
	} {
		t.Run(name, func(t *testing.T) {
			a := testArtifacts(t, 1<<20, 1<<22)
			err := a.put(c.hash, c.size, pieces(c.data, 16))
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, onDisk(t, a))
			require.Empty(t, a.Kept)
			require.NoError(t, a.put(hash, size, pieces(good, 16)), "the next upload must succeed")
		})
	}
}

func TestArtifactStreamBreaks(t *testing.T) {
	a := testArtifacts(t, 1<<20, 1<<20)
	data := executable("x")
	broken := errors.New("connection lost")
	err := a.put(hashOf(data), int64(len(data)), func() ([]byte, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
	require.Empty(t, onDisk(t, a))
}

func TestArtifactsEvicted(t *testing.T) {
	one, two, three := executable("1"), executable("2"), executable("3")
	size := int64(len(one))
	a := testArtifacts(t, size, 2*size)
	for _, data := range [][]byte{one, two} {
		require.NoError(t, a.put(hashOf(data), size, pieces(data, 50)))
	}
	require.True(t, a.has(hashOf(one))) // now two is the least recently used
	require.NoError(t, a.put(hashOf(three), size, pieces(three, 50)))
	require.True(t, a.has(hashOf(one)))
	require.False(t, a.has(hashOf(two)))
	require.ErrorIs(t, a.pin(hashOf(two), linux), errNoSuch)

	require.NoError(t, a.pin(hashOf(one), linux))
	require.NoError(t, a.pin(hashOf(three), linux))
	err := a.put(hashOf(two), size, pieces(two, 50))
	require.ErrorIs(t, err, errNoRoom)
	require.ErrorContains(t, err, "--artifact-cache")
	a.unpin(hashOf(one))
	require.NoError(t, a.put(hashOf(two), size, pieces(two, 50)))
	require.False(t, a.has(hashOf(one)))
	require.Equal(t, 2*size, a.bytes())
	require.Len(t, onDisk(t, a), 2)
}

func TestArtifactOfAnotherPlatform(t *testing.T) {
	a := testArtifacts(t, 1<<20, 1<<20)
	data := executable("x")
	require.NoError(t, a.put(hashOf(data), int64(len(data)), pieces(data, 50)))
	err := a.pin(hashOf(data), wire.Platform{OS: "linux", Arch: "arm64"})
	require.ErrorContains(t, err, "runs on linux/amd64, not on linux/arm64")
}

func TestArtifactUploadedTwiceAtOnce(t *testing.T) {
	a := testArtifacts(t, 1<<20, 1<<21)
	data := executable(strings.Repeat("z", 100_000))
	meet := make(chan struct{}) // both uploads are in progress before either continues
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			next, calls := pieces(data, 60_000), 0
			err := a.put(hashOf(data), int64(len(data)), func() ([]byte, error) {
				if calls++; calls == 2 {
					if i == 0 {
						meet <- struct{}{}
					} else {
						<-meet
					}
				}
				return next()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []string{hashOf(data)}, onDisk(t, a))
	require.EqualValues(t, len(data), a.bytes())
	require.Len(t, a.Kept, 1)
	require.Equal(t, data, fetched(t, a, hashOf(data)))
}

// fullDisk is a file to which at most room further bytes can be written, as on a full disk.
type fullDisk struct {
	uploadFile
	room int
}

func (f *fullDisk) Write(p []byte) (int, error) {
	if len(p) > f.room {
		n, _ := f.uploadFile.Write(p[:f.room])
		f.room = 0
		return n, syscall.ENOSPC
	}
	f.room -= len(p)
	return f.uploadFile.Write(p)
}

// fillDisk makes writes of uploads fail, as on a full disk, after room bytes.
func fillDisk(a *artifacts, room int) {
	create := a.create
	a.create = func(name string) (uploadFile, error) {
		f, err := create(name)
		return &fullDisk{f, room}, err
	}
}

func TestArtifactOnFullDisk(t *testing.T) {
	a := testArtifacts(t, 1<<20, 1<<20)
	create := a.create
	fillDisk(a, 70)
	data := executable("x")
	err := a.put(hashOf(data), int64(len(data)), pieces(data, 50))
	require.ErrorIs(t, err, errNoRoom)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Empty(t, onDisk(t, a))
	require.False(t, a.has(hashOf(data)))
	a.create = create
	require.NoError(t, a.put(hashOf(data), int64(len(data)), pieces(data, 50)))
}

func TestArtifactsClearedAtStart(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "X"+programs.Partial), []byte("half"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), []byte("someone's"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, hashOf(nil)), []byte("text"), 0o600))
	a, err := openArtifacts(dir, 1<<20, 1<<20)
	require.NoError(t, err)
	require.False(t, a.has(hashOf(nil)), "the store must refuse a file that is not an executable")
	require.NoError(t, os.Remove(a.Path(hashOf(nil))))
	require.Equal(t, []string{"README"}, onDisk(t, a))
}

func TestSendStopsWithItsContext(t *testing.T) {
	a := testArtifacts(t, 1<<20, 1<<20)
	data := executable("x")
	require.NoError(t, a.put(hashOf(data), int64(len(data)), pieces(data, 50)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.send(ctx, hashOf(data), func(*wire.Chunk) error { return nil }), context.Canceled)
	require.ErrorIs(t, a.send(t.Context(), hashOf([]byte("?")), nil), errNoSuch)
	require.Error(t, a.send(t.Context(), "../history.db", nil))
}

// TestPlatformOfThisProgram requires that the test binary, which Go's linker made, is accepted
// as an executable for this platform.
func TestPlatformOfThisProgram(t *testing.T) {
	path, err := os.Executable()
	require.NoError(t, err)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	platforms, err := platformsOf(f)
	require.NoError(t, err)
	require.Contains(t, platforms, wire.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH})
}

func FuzzPlatformsOf(f *testing.F) {
	f.Add(executable("x"))
	f.Add([]byte("MZ" + strings.Repeat("\x00", 100)))
	f.Add([]byte("\xca\xfe\xba\xbe\x00\x00\x00\x02" + strings.Repeat("\x01", 60)))
	f.Add([]byte("\xcf\xfa\xed\xfe" + strings.Repeat("\x02", 60)))
	f.Fuzz(func(t *testing.T, data []byte) {
		platforms, err := platformsOf(bytes.NewReader(data))
		if err == nil && len(platforms) == 0 {
			t.Fatal("an executable for nothing")
		}
	})
}
