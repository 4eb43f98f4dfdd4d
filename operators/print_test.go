package operators

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// printed runs a job and returns what it prints.
func printed(t *testing.T, build func(b *engine.Builder, out *bytes.Buffer), opts ...engine.Option) string {
	t.Helper()
	var out bytes.Buffer
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		build(b, &out)
		return nil
	}), struct{}{}, opts...)
	require.NoError(t, err)
	result.Release()
	return out.String()
}

func TestPrint(t *testing.T) {
	rows := flowers(100)
	rows[1].Name = "line\nbreak \x1b[31m and much more text than fits"
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		got := printed(t, func(b *engine.Builder, out *bytes.Buffer) {
			Print(FromSlice(b, rows), PrintOptions{Rows: 5, Width: 24, Title: "some flowers", Writer: out})
			Print(First(Range(b, 7, 100), 1), PrintOptions{Writer: out})
			Print(Range(b, 0, 0), PrintOptions{Writer: out})
		}, opts...)
		require.Equal(t, strings.TrimPrefix(`
some flowers
id  name                      width  size
──  ────────────────────────  ─────  ─────────
 0  flower 0                      0  [0 -0]
 1  line\nbreak \x1b[31m an…  0.125  [0.25 -1]
 2  flower 4                   0.25  [0.5 -2]
 3  flower 9                  0.375  [0.75 -3]
 4  flower 16                  null  [1 -4]
(the first 5 rows)
value
─────
    7
(1 row)
value
─────
(0 rows)
`, "\n"), got)
	})
}

func TestPrintNothingWhenTheJobFails(t *testing.T) {
	var out bytes.Buffer
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		d := Range(b, 0, 100)
		Print(d, PrintOptions{Writer: &out})
		return MapErr(d, func(i int64) (int64, error) { return i, errBoom })
	})
	require.ErrorIs(t, err, errBoom)
	require.Empty(t, out.String())
}

// full is a writer that always fails.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestPrintFailures(t *testing.T) {
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		Print(Range(b, 0, 100), PrintOptions{Writer: full{}})
		return nil
	})
	require.ErrorIs(t, err, errFull)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		Print(Range(b, 0, 100), PrintOptions{Rows: -1})
		return nil
	}, "Print: -1 rows")
	operator := func(d *engine.Dataset) *engine.Dataset {
		Print(d, PrintOptions{})
		return nil
	}
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}
