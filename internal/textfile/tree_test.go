package textfile

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// sealed is a file system whose files do not support random access.
type sealed struct{ fstest.MapFS }

func (s sealed) Open(name string) (fs.File, error) {
	f, err := s.MapFS.Open(name)
	if d, ok := f.(fs.ReadDirFile); ok || err != nil {
		return d, err
	}
	return struct{ fs.File }{f}, err
}

func TestFilesOfAFileSystem(t *testing.T) {
	content := fstest.MapFS{
		"in/a.csv":    {Data: []byte("\ufeffn,m\n1,\"x\n\"\n2,y\n")},
		"in/b.csv.gz": {Data: gz(t, "n,m\n3,z\n")},
		"in/_c.csv":   {Data: []byte("n,m\n9,9\n")},
		"svm":         {Data: []byte("1 2:3\n")},
	}
	for _, fsys := range []fs.FS{content, sealed{content}} {
		for _, pattern := range []string{"in", "./in/", "in/*.csv*", "i?/[ab]*"} {
			files, err := ResolveIn(fsys, pattern)
			require.NoError(t, err, pattern)
			require.Equal(t, []string{"a.csv", "b.csv.gz"}, names(files))
			require.Zero(t, files[0].ModTime)
			require.NotEmpty(t, files[0].Hash)
			require.NoError(t, VerifyIn(fsys, files))
		}
		files, err := ResolveIn(fsys, "in")
		require.NoError(t, err)
		d := Dialect{Header: true}
		l, err := InferCSV(t.Context(), files, d, InferOptions{FS: fsys})
		require.NoError(t, err)
		c := opened(t, files, d, l, Config{Shards: 5, FS: fsys})
		require.Equal(t, [][]string{{"1", "x\n"}, {"2", "y"}, {"3", "z"}}, allRows(t, c, 2))

		files, err = ResolveIn(fsys, "svm")
		require.NoError(t, err)
		svm, err := ScanLibSVM(t.Context(), files, LibSVMOptions{}, Config{Shards: 3, FS: fsys})
		require.NoError(t, err)
		require.Equal(t, 2, svm.Size)
	}
	_, err := ResolveIn(content, "in/a.cvs")
	require.ErrorContains(t, err, "there is a.csv")
	files, err := ResolveIn(content, "in/a.csv")
	require.NoError(t, err)
	other := fstest.MapFS{"in/a.csv": {Data: []byte("\ufeffn,m\n1,\"x\n\"\n2,Y\n")}}
	require.ErrorIs(t, VerifyIn(other, files), ErrChanged)
	_, err = OpenCSV(t.Context(), files, Dialect{}, textLayout(2), Config{Shards: 1, FS: other})
	require.ErrorIs(t, err, ErrChanged)
}
