package builtin

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// TestPicturesHaveAnEdge requires that pictures have a white margin of 4 pixels, so that no
// text is cut off.
func TestPicturesHaveAnEdge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bars.png")
	require.NoError(t, drawBars(path, "forest: importance", "share of the gain", []model.Term{{Name: "clarity", Value: 0.2}, {Name: "f25", Value: 0.3}}))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	picture, err := png.Decode(file)
	require.NoError(t, err)
	b := picture.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if min(x-b.Min.X, y-b.Min.Y, b.Max.X-1-x, b.Max.Y-1-y) >= 4 {
				continue
			}
			r, g, blue, _ := picture.At(x, y).RGBA()
			require.Equal(t, [3]uint32{0xffff, 0xffff, 0xffff}, [3]uint32{r, g, blue}, "the pixel at %d, %d must be white", x, y)
		}
	}
}
