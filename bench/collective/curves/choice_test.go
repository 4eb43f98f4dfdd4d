package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChoice compares the output of the command choice with best runs and shares that were
// computed by hand.
func TestChoice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	var text strings.Builder
	add := func(name string, chosen bool, ranks, bytes int, us float64) {
		fmt.Fprintf(&text, `{"collective":"allreduce","algorithm":%q,"chosen":%v,"ranks":%d,"bytes":%d,"p50_us":%v}`+"\n", name, chosen, ranks, bytes, us)
	}
	run := func(check bool) (string, error) {
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		var out strings.Builder
		err := (&choiceCommand{Measured: path, Check: check}).Run(&out)
		return out.String(), err
	}
	add("linear", false, 4, 8, 12)
	_, err := run(false)
	require.ErrorContains(t, err, "nothing was chosen")

	// The time of the choice is the median over the rounds of the choice and the rounds in
	// which the same algorithm ran by its name: the median of 90, 13.4, 11 and 13 is 13.2.
	text.WriteString(`{"collective":"allreduce","algorithm":"direct","chosen":true,"ranks":4,"bytes":8,"p50_us":50,"round_p50_us":[90,13.4,11]}` + "\n")
	add("direct", false, 4, 8, 13)
	add("ring", false, 4, 8, 10)   // it folds in another order, so it does not compete
	add("linear", false, 8, 8, 1)  // another number of ranks
	add("linear", false, 4, 64, 1) // another size
	out, err := run(true)
	require.NoError(t, err)
	require.Contains(t, out, "| allreduce | 4 | 8 B | direct | 13.2 µs | linear | 12.0 µs | 1.10 | ring | 1.32 |\n")
	require.Contains(t, out, "Of 1 choices, 1 (100 %) took at most 1.2 times as long as the best that competes, 0 (0 %) as the best of all.")

	add("direct", true, 2, 8, 25)
	add("ring", false, 2, 8, 20) // between two ranks, ring folds in the canonical order
	out, err = run(true)
	require.ErrorContains(t, err, "not as near")
	require.Contains(t, out, "| 2 | 8 B | direct | 25.0 µs | ring | 20.0 µs | 1.25 | ring | 1.25 |\n")
	require.Contains(t, out, "Of 2 choices, 1 (50 %)")
	require.Less(t, strings.Index(out, "| 2 | 8 B"), strings.Index(out, "| 4 | 8 B"), "choices must be in order of ranks")

	add("direct", true, 4, 512, 25)
	_, err = run(false)
	require.ErrorContains(t, err, "allreduce direct among 4 of 512 bytes was chosen, but no algorithm that it competed with was measured")
}
