package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckPlace requires that only absolute paths and places in S3-compatible stores are accepted.
func TestCheckPlace(t *testing.T) {
	for _, place := range []string{"/a", "/a b/c", "s3://bucket", "s3://bucket/prefix"} {
		require.NoError(t, CheckPlace(place), place)
	}
	for place, want := range map[string]string{
		"": "is empty", "a": "is not an absolute path", "./a": "is not an absolute path",
		"gs://b/sp": "neither an absolute path nor s3://", "file:///x": "neither", "s3://": "neither", "s3:///": "neither", "S3://b": "neither",
	} {
		require.ErrorContains(t, CheckPlace(place), want, place)
	}
}
