package textfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestShardsOfManyFilesReadAtOnce requires that several files are read as one text, although
// each has a header and a byte order mark and no newline at its end, and that concurrent
// readers of one CSV read the same shards.
func TestShardsOfManyFilesReadAtOnce(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		sub := filepath.Join(dir, fmt.Sprint(n))
		require.NoError(rt, os.Mkdir(sub, 0o700))
		first, columns := tableText(rt)
		texts := []string{first}
		for range rapid.IntRange(0, 3).Draw(rt, "more files") {
			text, k := tableText(rt)
			if k == columns {
				texts = append(texts, text)
			}
		}
		header := strings.Repeat("h,", columns)[:2*columns-1]
		for i := range columns {
			header = strings.Replace(header, "h", fmt.Sprintf("c%d", i), 1)
		}
		want := [][]string{}
		for i, text := range texts {
			records, err := reference(text, columns)
			if err != nil {
				rt.Skip(err)
			}
			want = append(want, records...)
			mark := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(rt, "mark")
			require.NoError(rt, os.WriteFile(filepath.Join(sub, fmt.Sprintf("%d.csv", i)), []byte(mark+"#,\"\n"+header+"\r\n"+text), 0o600))
		}
		l := textLayout(columns)
		l.Header = l.Names
		d := Dialect{Comment: '#', Header: true, NullTokens: []string{}}
		shards := rapid.SampledFrom([]int{1, 2, 8, 128}).Draw(rt, "shards")
		c, err := OpenCSV(context.Background(), resolve(rt, sub), d, l, Config{Shards: shards, Workers: rapid.IntRange(1, 3).Draw(rt, "workers")})
		require.NoError(rt, err)
		each := make([][][]string, shards)
		errs := make([]error, shards)
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() {
				for s := g; s < shards; s += 3 {
					each[s], errs[s] = rows(context.Background(), c, s, 5)
				}
			})
		}
		wg.Wait()
		got := [][]string{}
		for s := range shards {
			require.NoError(rt, errs[s])
			got = append(got, each[s]...)
		}
		require.Equal(rt, want, got)
		require.NoError(rt, c.Close())
	})
}

// TestShardsWithoutQuoting requires that every line is a record if there is no quoting.
func TestShardsWithoutQuoting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-c";]{1,9}`), 1, 20).Draw(rt, "lines")
		require.NoError(rt, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
		shards := rapid.SampledFrom([]int{1, 2, 8, 128}).Draw(rt, "shards")
		c, err := OpenCSV(context.Background(), resolve(rt, path), Dialect{Quote: NoByte}, textLayout(1), Config{Shards: shards})
		require.NoError(rt, err)
		var got []string
		for _, row := range allRows(rt, c, 3) {
			got = append(got, row[0])
		}
		require.Equal(rt, lines, got)
		require.NoError(rt, c.Close())
	})
}

// TestReadErrors requires ErrChanged for a file that ends too early, whatever error the read
// returns.
func TestReadErrors(t *testing.T) {
	p := part{path: "a.csv", size: 9}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		err := p.readError(end)
		require.ErrorIs(t, err, ErrChanged)
		require.EqualError(t, err, "input a.csv changed between building and reading: it ends before its 9 bytes were read")
		require.Equal(t, err, p.readError(err), "the name of the file must not be added twice")
	}
	other := errors.New("no such device")
	require.EqualError(t, p.readError(other), "cannot read input a.csv: no such device")
	require.NotErrorIs(t, p.readError(other), ErrChanged)
	require.ErrorIs(t, p.readError(other), other)
}
