package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
)

// readsOnce reads the first rows of a file in memory; a panic, which the source of rows makes an
// error of damage, is one here.
func readsOnce(data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	f, err := open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	c, err := f.Rows(0, []int{0}, memory.NewGoAllocator())
	if err != nil {
		return err
	}
	rows, err := c.Next(100)
	if err != nil {
		return err
	}
	rows.Release()
	return c.Close()
}

// TestDamagedPages changes every third bit of the pages of small files: reading them must end.
func TestDamagedPages(t *testing.T) {
	files, err := filepath.Glob("testdata/levels/*.parquet")
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, readsOnce(data), path)
		footer := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
		fewer := 0
		for bit := 0; bit < 8*footer; bit += 3 {
			data[bit/8] ^= 1 << (bit % 8)
			if err := readsOnce(data); err != nil && strings.Contains(err.Error(), "has fewer levels") {
				fewer++
			}
			data[bit/8] ^= 1 << (bit % 8)
		}
		require.Positive(t, fewer, path)
	}
}

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		runs     []byte
		width, n int64
		want     bool
	}{
		{nil, 1, 0, true}, {nil, 1, 1, false},
		{[]byte{20, 1}, 1, 10, true}, {[]byte{20, 1}, 1, 11, false}, {[]byte{20}, 1, 1, false}, // ten levels alike
		{[]byte{20, 1, 2, 0}, 2, 11, true},
		{[]byte{3, 0xaa}, 1, 8, true}, {[]byte{3, 0xaa}, 1, 9, false}, // a group
		{[]byte{5, 0xaa}, 1, 8, true}, {[]byte{5, 0xaa}, 1, 9, false}, // of two the first
		{[]byte{3, 0xaa, 0xaa}, 2, 8, true}, {[]byte{3, 0xaa}, 2, 5, false},
		{[]byte{0, 1, 20, 1}, 1, 1, false}, {[]byte{1, 20, 1}, 1, 1, false}, // runs of nothing
		{[]byte{0x80}, 1, 1, false}, {[]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 1, 1}, 1, 1, false},
	} {
		require.Equal(t, c.want, holds(c.runs, c.width, c.n), c)
	}
}
