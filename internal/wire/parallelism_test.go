package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseParallelism(t *testing.T) {
	for text, want := range map[string]Parallelism{"4": {4, 4}, "2:8": {2, 8}, " 3 : 3 ": {3, 3}, "0": {}} {
		got, err := ParseParallelism(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseParallelism(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for text, want := range map[string]string{
		"":     `"" is neither a number of subtasks such as 4 nor a range such as 2:8`,
		"two":  `"two" is neither`,
		"2:":   `"2:" is neither`,
		"2:8:": `"2:8:" is neither`,
		"0:8":  `"0:8" begins below 1`,
		"5:2":  `"5:2" ends below its beginning: want the smaller number first, as in 2:5`,
	} {
		_, err := ParseParallelism(text)
		require.ErrorContains(t, err, want)
	}
}
