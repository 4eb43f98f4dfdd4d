package spelling

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNear(t *testing.T) {
	all := []string{"sepal_length", "sepal_width", "petal_length", "petal_width", "species", "x", "sepal_length", "", strings.Repeat("x", 100)}
	for name, want := range map[string][]string{
		"sepal_lenght":           {"sepal_length", "petal_length"},
		"sepal":                  {"sepal_width", "sepal_length"},
		"width":                  {"sepal_width", "petal_width"},
		"SPECIES":                {"species"},
		"specie":                 {"species"},
		"spceies":                {"species"},
		"species":                nil, // not misspelt
		"X":                      {"x"},
		"y":                      nil, // has no byte in common with "x"
		"colour":                 nil,
		"":                       nil,
		strings.Repeat("a", 100): nil,
	} {
		require.Equal(t, want, Near(name, all), name)
	}
	require.Len(t, Near("ab1", []string{"ab2", "ab3", "ab4", "ab5"}), 3)
}

// TestEditDistance compares editDistance with a recursive form of its definition, for all pairs of
// words of up to four letters a and b.
func TestEditDistance(t *testing.T) {
	var define func(a, b string) int
	define = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		change := 1
		if a[len(a)-1] == b[len(b)-1] {
			change = 0
		}
		cutA, cutB := a[:len(a)-1], b[:len(b)-1]
		d := min(define(cutA, b)+1, define(a, cutB)+1, define(cutA, cutB)+change)
		if len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-2] && a[len(a)-2] == b[len(b)-1] {
			d = min(d, define(a[:len(a)-2], b[:len(b)-2])+1)
		}
		return d
	}
	words := []string{""}
	for i := 0; len(words[i]) < 4; i++ {
		words = append(words, words[i]+"a", words[i]+"b")
	}
	for _, a := range words {
		for _, b := range words {
			require.Equal(t, define(a, b), editDistance(a, b), "%q %q", a, b)
		}
	}
}

func ExampleNear() {
	fmt.Println(Near("petal lenght", []string{"sepal_length", "petal_length", "species"}))
	// Output: [petal_length sepal_length]
}

func TestDidYouMean(t *testing.T) {
	require.Equal(t, `; did you mean "species"?`, DidYouMean("; ", "specie", []string{"x", "species"}))
	require.Empty(t, DidYouMean("; ", "specie", []string{"x"}))
}
