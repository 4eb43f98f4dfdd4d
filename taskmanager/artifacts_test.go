//go:build unix

package taskmanager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// store is a source of executables for tests.
type store struct {
	mu      sync.Mutex
	content map[string][]byte
	fetches map[string]int
	gate    chan struct{} // if not nil, fetches wait until the channel is closed
	noSize  bool
	active  atomic.Int32
}

func newStore() *store { return &store{content: map[string][]byte{}, fetches: map[string]int{}} }

// add adds an executable of size bytes, all of which are seed, and returns its hash.
func (s *store) add(size int, seed byte) string {
	data := bytes.Repeat([]byte{seed}, size)
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	s.content[hash] = data
	return hash
}

func (s *store) fetch(ctx context.Context, hash string) (func() (*wire.Chunk, error), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetches[hash]++
	data, known := s.content[hash]
	if !known {
		return nil, errors.New("no such artifact")
	}
	s.active.Add(1)
	first := true
	return func() (*wire.Chunk, error) {
		if s.gate != nil {
			select {
			case <-s.gate:
			case <-ctx.Done():
				s.active.Add(-1)
				return nil, ctx.Err()
			}
		}
		if len(data) == 0 && !first {
			return nil, io.EOF
		}
		c := &wire.Chunk{}
		if first && !s.noSize {
			c.Hash, c.Size = hash, int64(len(data))
		}
		first = false
		n := min(7, len(data))
		c.Data, data = data[:n], data[n:]
		return c, nil
	}, nil
}

func openTest(t *testing.T, dir string, limit int64, s *store) *artifacts {
	t.Helper()
	a, err := openArtifacts(dir, limit, "", s.fetch)
	require.NoError(t, err)
	t.Cleanup(a.close)
	return a
}

// names returns the names of the files in the cache's directory.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestArtifactIsFetchedOnce(t *testing.T) {
	s := newStore()
	hash := s.add(100, 'a')
	s.gate = make(chan struct{})
	a := openTest(t, t.TempDir(), 1000, s)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			path, release, err := a.acquire(t.Context(), hash)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			data, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(data, s.content[hash]) {
				t.Error("wrong content", err)
			}
		})
	}
	close(s.gate)
	all.Wait()
	require.Equal(t, 1, s.fetches[hash])
	info, err := os.Stat(filepath.Join(a.Dir, hash))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode())
	require.Equal(t, []string{hash}, names(t, a.Dir))
}

// TestArtifactIsLinked requires that undamaged executables in Config.Near are linked and not
// fetched.
func TestArtifactIsLinked(t *testing.T) {
	s := newStore()
	whole, damaged, pointed, absent, large := s.add(50, '1'), s.add(50, '2'), s.add(50, '3'), s.add(50, '4'), s.add(500, '5')
	near := t.TempDir()
	for hash, data := range map[string][]byte{whole: s.content[whole], damaged: []byte("something else"), large: s.content[large], "target": s.content[pointed]} {
		require.NoError(t, os.WriteFile(filepath.Join(near, hash), data, 0o600))
	}
	require.NoError(t, os.Symlink("target", filepath.Join(near, pointed)))
	a, err := openArtifacts(t.TempDir(), 250, near, s.fetch)
	require.NoError(t, err)
	t.Cleanup(a.close)
	for hash, fetches := range map[string]int{whole: 0, damaged: 1, pointed: 1, absent: 1} {
		path, release, err := a.acquire(t.Context(), hash)
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, s.content[hash], data)
		require.Equal(t, fetches, s.fetches[hash])
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode())
		release()
	}
	_, _, err = a.acquire(t.Context(), large)
	require.ErrorContains(t, err, "raise its limit")
	for _, e := range a.Kept {
		require.Equal(t, int64(50), e.Size)
	}
	require.Len(t, names(t, a.Dir), 4, "the cache must contain no other files")
	mine, err := os.Stat(filepath.Join(a.Dir, whole))
	require.NoError(t, err)
	theirs, err := os.Stat(filepath.Join(near, whole))
	require.NoError(t, err)
	require.True(t, os.SameFile(mine, theirs))
}

func TestArtifactsAreBounded(t *testing.T) {
	s := newStore()
	one, two, three, four := s.add(40, '1'), s.add(40, '2'), s.add(40, '3'), s.add(101, '4')
	for _, noSize := range []bool{false, true} {
		s.noSize = noSize
		a := openTest(t, t.TempDir(), 100, s)
		use := func(hash string) func() {
			_, release, err := a.acquire(t.Context(), hash)
			require.NoError(t, err)
			return release
		}
		use(one)()
		use(two)()
		use(one)()
		use(three)() // needs space, so the cache must remove two, the least recently used executable
		require.ElementsMatch(t, []string{one, three}, names(t, a.Dir))

		release := use(one)
		use(three)()
		releaseTwo := use(two) // one was used less recently, but is in use, so another executable must be removed
		require.ElementsMatch(t, []string{one, two}, names(t, a.Dir))
		_, _, err := a.acquire(t.Context(), three)
		require.ErrorContains(t, err, "bytes in use and may have 100")
		release()
		releaseTwo()
		_, _, err = a.acquire(t.Context(), four)
		require.ErrorContains(t, err, "it has 101 bytes, more than the artifact cache may have (100)")
		if !noSize { // if the size is known, the fetch fails before any file is removed
			require.ElementsMatch(t, []string{one, two}, names(t, a.Dir))
		}
		for _, name := range names(t, a.Dir) {
			require.NotContains(t, name, programs.Partial)
		}
		use(three)()
	}
}

func TestWrongBytes(t *testing.T) {
	s := newStore()
	hash, cut := s.add(50, 'x'), s.add(60, 'y')
	s.content[hash] = []byte("something else")
	s.content[cut] = s.content[cut][:30]
	a := openTest(t, t.TempDir(), 1000, s)
	for _, h := range []string{hash, cut} {
		_, _, err := a.acquire(t.Context(), h)
		require.ErrorContains(t, err, "it was damaged")
	}
	_, _, err := a.acquire(t.Context(), strings.Repeat("0", 64))
	require.ErrorContains(t, err, "no such artifact")
	require.Empty(t, names(t, a.Dir))
	// The next call of acquire fetches again.
	s.add(50, 'x')
	_, release, err := a.acquire(t.Context(), hash)
	require.NoError(t, err)
	release()
}

func TestHostileHashes(t *testing.T) {
	a := openTest(t, t.TempDir(), 1000, newStore())
	for _, hash := range []string{"", "../../etc/passwd", strings.Repeat("A", 64), strings.Repeat("0", 63), strings.Repeat("/", 64), strings.Repeat("x", 1<<20)} {
		_, _, err := a.acquire(t.Context(), hash)
		require.ErrorContains(t, err, "not a SHA-256")
		require.Less(t, len(err.Error()), 200)
	}
}

// TestArtifactIsCheckedAgain opens the cache that a killed task manager left. A file that was
// damaged since its last use must be fetched again. A file in use must not be checked or
// replaced.
func TestArtifactIsCheckedAgain(t *testing.T) {
	s := newStore()
	hash := s.add(40, 'g')
	a := openTest(t, t.TempDir(), 1000, s)
	for round := range 3 {
		path, release, err := a.acquire(t.Context(), hash)
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, s.content[hash], data, "the executable must have its bytes in round %d", round)
		require.Equal(t, round+1, s.fetches[hash])
		_, again, err := a.acquire(t.Context(), hash)
		require.NoError(t, err)
		require.Equal(t, round+1, s.fetches[hash], "a file in use must not be fetched again")
		again()
		release()
		data[round] ^= 1
		require.NoError(t, os.WriteFile(path, data, 0o700))
	}
}

func TestRestartOfCache(t *testing.T) {
	s := newStore()
	good, bad, old := s.add(40, 'g'), s.add(40, 'b'), s.add(40, 'o')
	dir := t.TempDir()
	write := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	write(good, s.content[good])
	write(bad, []byte("cut"))
	write(good[:12]+"-123"+programs.Partial, []byte("left"))
	write("README", []byte("not ours"))
	a := openTest(t, dir, 1000, s)
	require.ElementsMatch(t, []string{good, bad, "README"}, names(t, dir))
	for _, hash := range []string{good, bad} {
		path, release, err := a.acquire(t.Context(), hash)
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, s.content[hash], data)
		release()
	}
	require.Equal(t, map[string]int{bad: 1}, s.fetches)

	// The cache is opened again with a lower limit.
	write(old, s.content[old])
	openTest(t, dir, 50, s)
	require.Len(t, names(t, dir), 2, "the cache must contain one executable, and the file that is not an executable")
}

// TestGiveUpFetch cancels one by one the calls that wait for the same fetch. The fetch must
// continue until the last of these calls is cancelled.
func TestGiveUpFetch(t *testing.T) {
	s := newStore()
	hash := s.add(100, 'a')
	s.gate = make(chan struct{})
	a := openTest(t, t.TempDir(), 1000, s)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, _, err := a.acquire(ctx, hash); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	cancel()
	all.Wait()
	a.fetches.Wait()
	require.Zero(t, s.active.Load())
	require.Empty(t, names(t, a.Dir))
	close(s.gate)
	_, release, err := a.acquire(t.Context(), hash)
	require.NoError(t, err)
	release()
}

// TestArtifactsAtRandom requires that a small cache returns the right executables to many
// goroutines, which cancel some of their calls at random times.
func TestArtifactsAtRandom(t *testing.T) {
	s := newStore()
	var hashes []string
	for i := range 6 {
		hashes = append(hashes, s.add(30, byte('a'+i)))
	}
	a := openTest(t, t.TempDir(), 100, s)
	var all sync.WaitGroup
	for who := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(who)))
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(4) == 0 {
					go cancel()
				}
				hash := hashes[random.IntN(len(hashes))]
				path, release, err := a.acquire(ctx, hash)
				if err == nil {
					if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, s.content[hash]) {
						t.Error("wrong content", err)
					}
					release()
				} else if !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "in use") {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	a.fetches.Wait()
	require.LessOrEqual(t, len(names(t, a.Dir)), 3)
	for _, e := range a.Kept {
		require.Zero(t, e.Pins)
	}
}

// TestExecutables deploys workers whose executables are not Superstep programs, and compares
// the failures with the expected failures.
func TestExecutables(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	for name, test := range map[string]struct {
		content []byte
		kind    wire.FailureKind
		message string
	}{
		"text":      {[]byte("just some text\n"), wire.MisuseFailure, "the executable does not start: exec format error: it is no Superstep program"},
		"empty":     {nil, wire.MisuseFailure, "the executable does not start: exec format error"},
		"truncated": {program[:len(program)/2], wire.MisuseFailure, "the executable "},
		"missing":   {[]byte("#!/no/such/interpreter\n"), wire.MisuseFailure, "the executable does not start: no such file or directory"},
		"ends":      {[]byte("#!/bin/sh\necho hello\nexit 3\n"), wire.MisuseFailure, "the executable ended with code 3 before it sent anything as a worker: it is no Superstep program"},
		"succeeds":  {[]byte("#!/bin/sh\n"), wire.MisuseFailure, "the executable ended with code 0 before it sent anything"},
		"goes on":   {[]byte("#!/bin/sh\nexec sleep 1000\n"), wire.MisuseFailure, "the executable runs, but sent nothing as a worker within 500ms: it is no Superstep program"},
		"chatters":  {[]byte("#!/bin/sh\necho garbage >&4\nexec sleep 1000\n"), wire.MisuseFailure, "is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manage(t, newFakeJobManager(t), func(c *Config) {
				if name == "goes on" {
					c.Startup = 500 * time.Millisecond
				}
			})
			d := deployment("obey")
			d.Spec.Artifact = b.keep(test.content)
			b.say(t, &wire.ToTaskManager{Deploy: d})
			f := b.ended(t)
			require.NotNil(t, f)
			require.Equal(t, test.kind, f.Kind, f.Message)
			require.Contains(t, f.Message, test.message)
			if name == "ends" {
				require.Equal(t, []string{"hello"}, f.LastLines)
			}
		})
	}
}

// TestArtifact requires that two workers can run the same fetched artifact, which is another
// build of the test binary.
func TestArtifact(t *testing.T) {
	program, err := os.ReadFile(self().Path)
	require.NoError(t, err)
	b := launched(t)
	hash := b.keep(append(program, "another build"...))
	for i := range 2 {
		d := deployment("obey")
		d.Spec.Artifact, d.Attempt = hash, i+1
		b.say(t, &wire.ToTaskManager{Deploy: d})
	}
	for i := range 2 {
		b.await(t, "ready", func() bool {
			for _, h := range b.heard {
				if h.event != nil && h.event.Ready != nil && h.ref.Attempt == i+1 {
					return true
				}
			}
			return false
		})
	}
	require.Equal(t, 1, b.fetches)
	require.Equal(t, []string{hash}, names(t, filepath.Join(b.dir, "artifacts")))
}

func TestPlatform(t *testing.T) {
	b := launched(t)
	d := deployment("obey")
	d.Spec.Artifact, d.Spec.Platform = b.keep([]byte("x")), wire.Platform{OS: "plan9", Arch: "amd64"}
	b.say(t, &wire.ToTaskManager{Deploy: d})
	f := b.ended(t)
	require.Equal(t, wire.MisuseFailure, f.Kind)
	require.Contains(t, f.Message, "the executable is for plan9/amd64")
}

// TestFetchFails requires a failure if the job manager does not have the artifact or sends
// other bytes.
func TestFetchFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		serve   func(b *fakeJobManager, hash string)
		message string
	}{
		"missing": {func(b *fakeJobManager, hash string) { delete(b.artifacts, hash) }, "there is no such artifact"},
		"wrong":   {func(b *fakeJobManager, hash string) { b.artifacts[hash] = []byte("other") }, "it was damaged"},
		"large":   {func(b *fakeJobManager, hash string) { b.artifacts[hash] = make([]byte, 2000) }, "more than the artifact cache may have (1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manage(t, newFakeJobManager(t), func(c *Config) { c.CacheLimit = 1000 })
			d := deployment("obey")
			d.Spec.Artifact = b.keep([]byte("right"))
			b.change(func() { test.serve(b.fakeJobManager, d.Spec.Artifact) })
			b.say(t, &wire.ToTaskManager{Deploy: d})
			f := b.ended(t)
			require.NotNil(t, f)
			require.Equal(t, wire.ClusterFailure, f.Kind)
			require.Contains(t, f.Message, fmt.Sprintf("fetch executable %.12s", d.Spec.Artifact))
			require.Contains(t, f.Message, test.message)
		})
	}
}

// TestCancelFetch requires that a worker ends when it is cancelled while its executable is
// being fetched.
func TestCancelFetch(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.fetchGate = make(chan struct{})
	b := manage(t, jm, nil)
	d := deployment("obey")
	d.Spec.Artifact = b.keep([]byte("x"))
	b.say(t, &wire.ToTaskManager{Deploy: d})
	jm.await(t, "the fetch", func() bool { return jm.fetches == 1 })
	b.command(t, wire.WorkerCommand{Cancel: &wire.Cancel{}})
	require.Nil(t, b.ended(t))
}

// TestArtifactsOfWorkersThatEnded requires that the artifact of a worker that has ended can be
// removed to make space for another artifact.
func TestArtifactsOfWorkersThatEnded(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(self().Path)
	require.NoError(t, err)
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.CacheLimit = int64(len(program)) * 3 / 2 })
	for i, build := range []string{"one", "two"} {
		hash := b.keep(append(program, build...))
		d := deployment("obey")
		d.Spec.Artifact, d.Attempt = hash, i+1
		b.say(t, &wire.ToTaskManager{Deploy: d})
		b.await(t, "ready", func() bool {
			return slices.ContainsFunc(b.heard, func(h heard) bool { return h.event != nil && h.event.Ready != nil && h.ref.Attempt == i+1 })
		})
		require.Equal(t, []string{hash}, names(t, filepath.Join(b.dir, "artifacts")))
		b.say(t, &wire.ToTaskManager{Worker: &wire.WorkerCommand{WorkerRef: d.WorkerRef, Kill: &wire.Kill{}}})
		b.await(t, "its end", func() bool {
			return slices.ContainsFunc(b.heard, func(h heard) bool { return h.event != nil && h.event.Ended != nil && h.ref.Attempt == i+1 })
		})
	}
}

// TestFetchWhileTheJobManagerIsAway requires that a fetch is tried again while the job manager
// cannot be reached, and that it ends when no worker waits for it any more.
func TestFetchWhileTheJobManagerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		hash := s.add(100, 'a')
		began, back := time.Now(), 10*time.Second
		away := func() bool { return time.Since(began) < back }
		a, err := openArtifacts(t.TempDir(), 1000, "", func(ctx context.Context, hash string) (func() (*wire.Chunk, error), error) {
			if away() {
				s.fetches["away"]++
				return nil, wire.Error(codes.Unavailable, "connection refused")
			}
			return s.fetch(ctx, hash)
		})
		require.NoError(t, err)
		_, release, err := a.acquire(t.Context(), hash)
		require.NoError(t, err)
		release()
		require.False(t, away())
		require.Less(t, s.fetches["away"], 20, "there must be pauses between the attempts")

		back = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err = a.acquire(ctx, s.add(100, 'b'))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.close()
	})
}
