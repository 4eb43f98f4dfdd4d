package flags_test

import (
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/flags"
)

// list is a named slice type: a flag of this type collects its values too.
type list []string

func TestOnce(t *testing.T) {
	type line struct {
		Name  string            `short:"n" aliases:"called" default:"none"`
		Loud  bool              `negatable:""`
		Maybe *bool             //
		Words []string          //
		List  list              //
		Types map[string]string //
		Must  string            `required:""`
	}
	for words, want := range map[string]string{
		"--name=a --must=b": "",
		"--words=a --words=b --list=a --list=b --types=a=b --types=c=d --must=x": "",
		"--name=a --must=b --name=a":                               "--name is given twice",
		"-n a --called=c --name=d":                                 "--name is given 3 times",
		"--loud --no-loud --maybe --maybe=false --must=x --must=y": "--loud is given twice\n--maybe is given twice\n--must is given twice",
		"--name=a --name=b --help":                                 "",
	} {
		var parsed line
		ended := false
		k, err := kong.New(&parsed, flags.Once(), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) { ended = true }))
		require.NoError(t, err)
		_, err = k.Parse(strings.Fields(words))
		if ended {
			continue // --help ends the program before Once acts
		}
		if want == "" {
			require.NoError(t, err, words)
		} else {
			require.EqualError(t, err, want, words)
		}
	}
}

// TestOnceBesideTheEnvironment requires that a flag may be given once even if it also has a
// value from the environment and a default.
func TestOnceBesideTheEnvironment(t *testing.T) {
	t.Setenv("FLAGS_TEST_NAME", "x")
	var parsed struct {
		Name string `env:"FLAGS_TEST_NAME" default:"y"`
	}
	k, err := kong.New(&parsed, flags.Once())
	require.NoError(t, err)
	_, err = k.Parse([]string{"--name=z"})
	require.NoError(t, err)
	require.Equal(t, "z", parsed.Name)
}
