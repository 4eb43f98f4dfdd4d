package model_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestReadFileTakesTheMemoryOfTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.json")
	text := bytes.Repeat([]byte("x"), 8<<20)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	var read []byte
	var err error
	require.Less(t, allocated(func() { read, err = model.ReadFile(path) }), uint64(12<<20))
	require.NoError(t, err)
	require.True(t, bytes.Equal(text, read))

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	read, err = model.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, read)

	_, err = model.ReadFile(dir)
	require.ErrorContains(t, err, "it is a directory")

	// The file is sparse: it has a size but takes no space on the disk.
	require.NoError(t, os.Truncate(path, model.MaxFile+1))
	require.Less(t, allocated(func() { _, err = model.ReadFile(path) }), uint64(1<<20))
	require.ErrorContains(t, err, "it has 2147483648 bytes: the limit is 2147483647")
}

func TestWhiteSpaceAroundAModelTakesNoMemory(t *testing.T) {
	const many = 8 << 20
	lead := bytes.Repeat([]byte(" \n\t\r"), many/4)
	var err error
	require.Less(t, allocated(func() { _, err = model.Decode(lead, "scaler", 2) }), uint64(1<<20))
	require.ErrorContains(t, err, "model is empty")
	around := append(append(append([]byte(nil), lead...), file(t)...), lead...)
	var f *model.File
	require.Less(t, allocated(func() { f, err = model.Decode(around, "scaler", 2) }), uint64(1<<20))
	require.NoError(t, err)
	require.Equal(t, "scaler", f.Kind)
	for text, want := range map[string]string{
		"{}  x":  "it ends after 8388610 of 8388613 bytes",
		"{\"a\"": "truncated after 8388612 bytes",
	} {
		_, err = model.Decode(append(append([]byte(nil), lead...), text...), "scaler", 2)
		require.ErrorContains(t, err, want)
	}
}
