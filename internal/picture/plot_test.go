package picture

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

func TestTicks(t *testing.T) {
	for _, axis := range [][2]float64{{0, 1}, {0.1, 2.5}, {-3, 4}, {1e-9, 3e-9}, {-7e12, 9e12}, {5, 6.1}, {0, 7.9}, {1e16, 1e16 + 4}} {
		marks := Ticks(axis[0], axis[1])
		require.GreaterOrEqual(t, len(marks), 3, "%v", axis)
		require.LessOrEqual(t, len(marks), 10, "%v", axis)
		for _, m := range marks {
			require.True(t, axis[0] <= m.Value && m.Value <= axis[1], "%v: %v", axis, m)
		}
	}
	require.Equal(t, []plot.Tick{{Value: 3, Label: "3"}}, Ticks(3, 3))
}

// TestSaveRow requires that a picture has its size and all its plots, and that a picture that
// cannot be drawn leaves a file as it was.
func TestSaveRow(t *testing.T) {
	row := func() []*plot.Plot { return []*plot.Plot{New("one", "x", "y"), New("other", "x", "y")} }
	path := filepath.Join(t.TempDir(), "row.svg")
	require.NoError(t, SaveRow(path, 6*vg.Inch, 2*vg.Inch, row()...))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, want := range []string{`width="432pt"`, `height="144pt"`, ">one<", ">other<", "sans-serif"} {
		require.Contains(t, string(text), want)
	}
	path = filepath.Join(t.TempDir(), "row.png")
	require.NoError(t, SaveRow(path, 6*vg.Inch, 2*vg.Inch, row()...))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	require.InDelta(t, 3*picture.Bounds().Dy(), picture.Bounds().Dx(), 3)

	path = filepath.Join(t.TempDir(), "row.bmp")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.Error(t, SaveRow(path, vg.Inch, vg.Inch, row()...))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
}
