package comqueue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesOfFunctions requires that a closure has the name of the function that contains it,
// and any other function its own name.
func TestNamesOfFunctions(t *testing.T) {
	for symbol, want := range map[string]string{
		"assign":                        "assign",
		"trainer.update":                "trainer.update",
		"(*trainer).update":             "(*trainer).update",
		"Train.func1":                   "Train",
		"Train.func12.3":                "Train",
		"Train.func1.stages.2.1":        "stages",
		"Train.gowrap1":                 "Train",
		"(*trainer).addTo.func2":        "(*trainer).addTo",
		"Train-range1":                  "Train-range1",
		"Train.Train-range1.func2":      "Train.Train-range1",
		"glob..func1":                   "glob..func1",
		"init.func1":                    "init.func1",
		"gear":                          "gear",
		"funcs":                         "funcs",
		"function1":                     "function1",
		"TestIt.func5.keeping.2.func10": "keeping",
	} {
		require.Equal(t, want, sourcePart(symbol), symbol)
	}
}
