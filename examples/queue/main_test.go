package main

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/proctest"
)

// patient is a line of the data.
type patient struct {
	label    float64
	features [13]float64
}

// readPatients reads the data with the standard library.
func readPatients(t *testing.T) []patient {
	t.Helper()
	text, err := os.ReadFile("data/heart_scale.libsvm")
	require.NoError(t, err)
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		return v
	}
	var all []patient
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		p := patient{label: number(words[0])}
		for _, word := range words[1:] {
			index, value, ok := strings.Cut(word, ":")
			require.True(t, ok)
			p.features[int(number(index))-1] = number(value)
		}
		all = append(all, p)
	}
	require.Len(t, all, 270)
	return all
}

// descend does the same gradient descent as the job in a loop over patients, with the functions
// of package math. It returns the coefficients after the last step, and the loss before each
// step.
func descend(patients []patient, steps int, rate float64) (w [14]float64, losses []float64) {
	for range steps {
		var gradient [14]float64
		loss := 0.0
		for _, p := range patients {
			margin := w[0]
			for j, x := range p.features {
				margin += w[j+1] * x
			}
			loss += math.Log1p(math.Exp(-p.label * margin))
			slope := -p.label / (1 + math.Exp(p.label*margin))
			gradient[0] += slope
			for j, x := range p.features {
				gradient[j+1] += slope * x
			}
		}
		losses = append(losses, loss)
		for j := range w {
			w[j] -= rate * gradient[j]
		}
	}
	return w, losses
}

// TestMain lets the tests run the program in a process of its own, as users do.
func TestMain(m *testing.M) { proctest.Main(m, main) }

// TestProgram compares the printed coefficients with the results of descend, and requires that
// the output is the same at any parallelism.
func TestProgram(t *testing.T) {
	want, _ := descend(readPatients(t), 30, 0.01)
	first := ""
	for _, p := range []string{"1", "2", "3", "5", "8", "16"} {
		code, stdout, stderr := proctest.RunProgram(t, "", "--parallelism", p)
		require.Zero(t, code, stderr)
		require.Contains(t, stderr, "descent: 30 supersteps, loss=92.8")
		if first == "" {
			first = stdout
		}
		require.Equal(t, first, stdout, "the output must not change at parallelism %s", p)
	}
	lines := strings.Split(first, "\n")
	for j, w := range want {
		cells := strings.Fields(lines[2+j])
		require.Equal(t, strconv.Itoa(j), cells[0])
		got, err := strconv.ParseFloat(cells[1], 64)
		require.NoError(t, err)
		require.InDelta(t, w, got, 1e-12)
	}
	require.Regexp(t, `^loss per superstep: \[187\.15 119\.\d{3} .* 92\.8\d{3}\]$`, lines[17])
}

func TestLoss(t *testing.T) {
	const steps, rate = 60, 0.01
	_, want := descend(readPatients(t), steps, rate)
	var first []float64
	for _, p := range []int{1, 2, 3, 5, 8, 16} {
		result, err := engine.Run(t.Context(), train, args{Steps: steps, Rate: rate}, engine.Parallelism(p))
		require.NoError(t, err)
		losses := result.Series("descent", "loss")
		result.Release()
		if first == nil {
			first = losses
		}
		require.Equal(t, first, losses, "the losses must not change at parallelism %d", p) // numbers that are equal and neither NaN nor 0 have the same bits
	}
	require.Len(t, first, steps)
	require.InEpsilonSlice(t, want, first, 1e-12)
	for i := 1; i < steps; i++ {
		require.Less(t, first[i], first[i-1], "the loss must decrease in superstep %d", i+1)
	}
}

func TestBadArguments(t *testing.T) {
	for _, c := range []struct {
		flags string
		code  int
		says  string
	}{
		{"--step=3", 2, "--steps"},
		{"--steps=x", 2, "--steps"},
		{"--steps=0", 1, ""},
		{"--steps=-1", 1, ""},
		{"--rate=nan", 2, "--rate is NaN; want a number greater than 0"},
		{"--rate=inf", 2, "--rate is +Inf"},
		{"--rate=-inf", 2, "--rate is -Inf"},
		{"--rate=0", 2, "--rate is 0"},
		{"--rate=-0.5", 2, "--rate is -0.5"},
		{"--rate=1e308", 1, "too long at --rate 1e+308"},
		{"--rate=1e308 --steps=1", 1, "too long at --rate 1e+308"},
	} {
		code, stdout, stderr := proctest.RunProgram(t, "", strings.Fields(c.flags)...)
		require.Equal(t, c.code, code, "%s: %s", c.flags, stderr)
		require.Empty(t, stdout, c.flags)
		require.Contains(t, stderr, c.says, c.flags)
		require.NotContains(t, stderr, "goroutine ")
	}
}
