package programs

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCache opens a folder with files of different ages. It requires that Fit removes the oldest
// executable first, and keeps pinned executables and files that do not belong to the cache.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	c, err := OpenCache[int](dir, 10)
	require.NoError(t, err)
	one, two, three := hashOf([]byte("one")), hashOf([]byte("two")), hashOf([]byte("three"))
	for i, name := range []string{three, one, two, "half" + Partial, "README"} {
		require.NoError(t, os.WriteFile(c.Path(name), make([]byte, 4), 0o600))
		at := time.Unix(int64(i), 0)
		require.NoError(t, os.Chtimes(c.Path(name), at, at))
	}
	require.NoError(t, os.Mkdir(c.Path(hashOf(nil)), 0o700))
	require.NoError(t, os.Mkdir(c.Path("folder"+Partial), 0o700))
	require.NoError(t, os.Symlink(c.Path("README"), c.Path("link"+Partial)))
	c, err = OpenCache[int](dir, 10)
	require.NoError(t, err)
	require.NoFileExists(t, c.Path("half"+Partial))
	require.Len(t, c.Kept, 3)
	c.Use(one).Pins++
	total, err := c.Fit()
	require.NoError(t, err)
	require.EqualValues(t, 8, total)
	require.NoFileExists(t, c.Path(three))

	c.Use("room").Size = 10
	c.Use("room").Pins++
	total, err = c.Fit()
	require.NoError(t, err)
	require.EqualValues(t, 14, total, "the total must exceed the limit, because all entries are pinned")
	require.Len(t, c.Kept, 2)
	require.FileExists(t, c.Path(one))
	require.FileExists(t, c.Path("README"))
	require.DirExists(t, c.Path(hashOf(nil)))
	require.DirExists(t, c.Path("folder"+Partial))
	require.FileExists(t, c.Path("link"+Partial))
}
