package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMainNumbers(t *testing.T) {
	type digits struct {
		One bool `short:"1"`
		N   int
	}
	type numeric struct {
		Small   int8          `short:"s"`
		Byte    uint8         `default:"255"`
		Word    uint16        `default:"0x10"`
		Float   float64       `short:"f"`
		Wait    time.Duration `default:"1s"`
		List    []int
		Pointer *int64
	}
	var got numeric
	job := Define("numeric", func(b *Builder, a numeric) error {
		got = a
		numbers(b, 1)
		return nil
	})
	ran := runProgram(t, job, "--progress off -s -128 --float -.5 --wait -3s --list -1,-2 --list 3 --pointer -7")
	require.Equal(t, exitOK, ran.code, ran.stderr)
	seven := int64(-7)
	require.Equal(t, numeric{Small: -128, Byte: 255, Word: 16, Float: -0.5, Wait: -3 * time.Second, List: []int{-1, -2, 3}, Pointer: &seven}, got)
	require.Equal(t, exitOK, runProgram(t, job, "--progress off -f -1e3").code)
	require.Equal(t, -1000.0, got.Float)
	for line, want := range map[string]string{
		"-s -129":      "--small: want a whole number from -128 to 127, but got -129\n",
		"--byte 256":   "--byte: want a whole number from 0 to 255, but got 256\n",
		"--word -1":    "--word: want a whole number from 0 to 65535, but got -1\n",
		"--word 1.5":   `--word: want a whole number, but got "1.5"`,
		"--list 1,x":   `--list: want a whole number, but got "x"`,
		"--pointer":    "--pointer: want a whole number, but no value is given",
		"-- -1":        "unexpected argument -1",
		"--float=2 -1": "unknown flag -1",
	} {
		ran := runProgram(t, job, line)
		require.Equal(t, exitUsage, ran.code, line)
		require.Contains(t, ran.stderr, want, line)
	}

	var flags digits
	job2 := Define("digits", func(b *Builder, a digits) error {
		flags = a
		numbers(b, 1)
		return nil
	})
	require.Equal(t, exitOK, runProgram(t, job2, "--progress off -1 --n=-2").code)
	require.Equal(t, digits{One: true, N: -2}, flags)
}
