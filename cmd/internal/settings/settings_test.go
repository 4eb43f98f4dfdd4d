package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/cmd/internal/settings"
)

// cli is a kong struct with two commands that have settings.
type cli struct {
	Serve struct {
		Listen string        `setting:"serve.listen" default:"127.0.0.1:1"`
		Wait   time.Duration `setting:"serve.wait" default:"5s"`
		Room   settings.Size `setting:"serve.room" default:"1GiB"`
		Hosts  []string      `setting:"serve.hosts"`
		Loud   bool          `setting:"serve.loud"`
		Word   string        `setting:"serve.word" secret:""`
		Manner string        `setting:"serve.manner" enum:"kind,brisk" default:"kind"`
		Slots  int           `setting:"serve.slots"`
		Other  string        `default:"not a setting"`
	} `cmd:""`
	Ask struct {
		Server string `setting:"server"`
	} `cmd:""`
}

// parsed parses args with the environment env and a configuration file with the content file,
// and returns the flags and all settings. In origins, "file" replaces the path of the file.
func parsed(t *testing.T, env map[string]string, file string, args ...string) (*cli, []settings.Shown, error) {
	t.Helper()
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	}
	s, err := settings.Read(path, func(key string) (string, bool) { v, ok := env[key]; return v, ok })
	if err != nil {
		return nil, nil, err
	}
	var c cli
	k, err := kong.New(&c, s.Option())
	require.NoError(t, err)
	ctx, err := k.Parse(args)
	if err != nil {
		return nil, nil, err
	}
	s.Given(ctx)
	shown := s.Show(k)
	for i := range shown {
		if path != "" && len(shown[i].Origin) > len(path) && shown[i].Origin[:len(path)] == path {
			shown[i].Origin = "file" + shown[i].Origin[len(path):]
		}
	}
	return &c, shown, nil
}

func TestOrder(t *testing.T) {
	const file = "serve:\n  listen: file:1\n  wait: 7s\n  room: 2 GB\n  hosts: [a, b]\nserver: there:1\n"
	env := map[string]string{"SUPERSTEP_SERVE_LISTEN": "env:1", "SUPERSTEP_SERVE_WAIT": "9s", "SUPERSTEP_SERVE_LOUD": "true"}
	c, shown, err := parsed(t, env, file, "serve", "--listen", "flag:1", "--slots=3", "--word", "hush", "--other", "x")
	require.NoError(t, err)
	require.Equal(t, "flag:1", c.Serve.Listen)
	require.Equal(t, 9*time.Second, c.Serve.Wait)
	require.Equal(t, settings.Size(2e9), c.Serve.Room)
	require.Equal(t, []string{"a", "b"}, c.Serve.Hosts)
	require.True(t, c.Serve.Loud)
	require.Equal(t, "x", c.Serve.Other)

	origins := map[string]string{}
	for _, s := range shown {
		origins[s.Key] = s.Value + " from " + s.Origin
	}
	require.Equal(t, map[string]string{
		"serve.listen": "flag:1 from command line",
		"serve.wait":   "9s from environment SUPERSTEP_SERVE_WAIT",
		"serve.room":   "2 GB from file:4",
		"serve.hosts":  "a,b from file:5",
		"serve.loud":   "true from environment SUPERSTEP_SERVE_LOUD",
		"serve.word":   "(not shown) from command line",
		"serve.manner": "kind from default",
		"serve.slots":  "3 from command line",
		"server":       "there:1 from file:6",
	}, origins)

	// Values of every type that are given on the command line are shown as text.
	_, shown, err = parsed(t, env, file, "serve", "--wait", "90s", "--room", "3GiB", "--hosts", "c,d", "--hosts", "e", "--no-such=x")
	require.Error(t, err)
	require.Nil(t, shown)
	_, shown, err = parsed(t, env, file, "serve", "--wait", "90s", "--room", "3GiB", "--hosts", "c,d", "--hosts", "e", "--loud", "--manner", "brisk")
	require.NoError(t, err)
	for _, s := range shown {
		origins[s.Key] = s.Value + " from " + s.Origin
	}
	require.Equal(t, "1m30s from command line", origins["serve.wait"])
	require.Equal(t, "3GiB from command line", origins["serve.room"])
	require.Equal(t, "c,d,e from command line", origins["serve.hosts"])
	require.Equal(t, "true from command line", origins["serve.loud"])
	require.Equal(t, "brisk from command line", origins["serve.manner"])
	require.Equal(t, "env:1 from environment SUPERSTEP_SERVE_LISTEN", origins["serve.listen"])

	c, _, err = parsed(t, nil, "", "serve")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:1", c.Serve.Listen)
	require.Equal(t, settings.Size(1<<30), c.Serve.Room)
}

func TestSecretsAreNotShown(t *testing.T) {
	c, shown, err := parsed(t, map[string]string{"SUPERSTEP_SERVE_WORD": "sesame"}, "", "serve")
	require.NoError(t, err)
	require.Equal(t, "sesame", c.Serve.Word)
	require.NotContains(t, fmt.Sprint(shown), "sesame")
}

func TestWrongFiles(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"serve: {lisen: x}", `config.yaml:1: there is no setting "serve.lisen"; did you mean "serve.listen"?`},
		{"\n\nnothing: 1", `config.yaml:3: there is no setting "nothing"`},
		{"serve: {listen: a}\nserve: {listen: b}", "serve.listen is set in line 1 already"},
		{"serve.listen: a\nserve: {listen: b}", "line 2: serve.listen is set in line 1 already"},
		{"serve: {wait: soon}", `"soon"`},
		{"serve: {room: 3 apples}", `"3 apples" is no size: want a number and a unit, such as 512MiB or 4GB`},
		{"just words", "line 1: want settings such as"},
		{"serve: {hosts: [[a]]}", "want a list of plain values"},
		{"a: {b: {c: {d: {e: {f: {g: {h: {i: {j: 1}}}}}}}}}", "too deep"},
		{"{", "line 1"},
	} {
		_, _, err := parsed(t, nil, c.file, "serve")
		require.ErrorContains(t, err, c.want, c.file)
	}
	_, err := settings.Read(filepath.Join(t.TempDir(), "none"), os.LookupEnv)
	require.ErrorContains(t, err, "does not exist")
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 2<<20), 0o600))
	_, err = settings.Read(large, os.LookupEnv)
	require.ErrorContains(t, err, "is it the right one?")
}

// TestWrongValuesNameTheirOrigin requires that the error about an invalid value of any type
// names where the value is set: the environment variable, or the file and line. Commands
// without the setting must not report an error.
func TestWrongValuesNameTheirOrigin(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"slots", "many", `"many"`},
		{"slots", "2.5", `"2.5"`},
		{"wait", "soon", `"soon"`},
		{"room", "3 apples", `"3 apples" is no size`},
		{"loud", "perhaps", `"perhaps"`},
		{"manner", "rude", `"rude" is not one of kind, brisk`},
	} {
		name := settings.EnvName("serve." + c.key)
		_, _, err := parsed(t, map[string]string{name: c.value}, "", "serve")
		require.ErrorContains(t, err, "--"+c.key+": environment "+name+": serve."+c.key+": ")
		require.ErrorContains(t, err, c.want)
		_, _, err = parsed(t, nil, "server: x\nserve:\n  "+c.key+": "+c.value+"\n", "serve")
		require.ErrorContains(t, err, "config.yaml:3: serve."+c.key+": ")
		require.ErrorContains(t, err, c.want)
		_, _, err = parsed(t, map[string]string{name: c.value}, "", "ask")
		require.NoError(t, err, "the command ask does not have this setting, so the invalid value must not matter")
	}
	_, _, err := parsed(t, map[string]string{"SUPERSTEP_SERVE_SLOTS": "many"}, "", "serve", "--slots", "3")
	require.NoError(t, err, "the value on the command line must take precedence over the invalid value in the environment")
}

func TestWhichFile(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	lookup := func(key string) (string, bool) { v, ok := env[key]; return v, ok }
	require.Equal(t, "given", settings.Path("given", lookup))
	require.NotContains(t, settings.Path("", lookup), home)
	of := filepath.Join(home, ".config", "superstep", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(of), 0o700))
	require.NoError(t, os.WriteFile(of, nil, 0o600))
	require.Equal(t, of, settings.Path("", lookup))
	env[settings.FileEnv] = "elsewhere"
	require.Equal(t, "elsewhere", settings.Path("", lookup))
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]settings.Size{
		"0": 0, "512": 512, "1k": 1000, "1.5 KiB": 1536, "4gb": 4e9, "2GiB": 2 << 30, "1TiB": 1 << 40, "7B": 7,
	} {
		var s settings.Size
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, s, text)
		var again settings.Size
		require.NoError(t, again.UnmarshalText([]byte(s.String())))
		require.Equal(t, s, again)
	}
	for _, text := range []string{"", "GB", "-1", "1 parsec", "9999999TiB", "NaN", "..", "1..2"} {
		require.Error(t, new(settings.Size).UnmarshalText([]byte(text)), text)
	}
}

func FuzzFile(f *testing.F) {
	for _, seed := range []string{"serve: {listen: x}", "a: [1, 2]", "&a [*a]", "a: &b {c: *b}", "- x", "\t", "a: 1\na: 2"} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "config.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		s, err := settings.Read(path, func(string) (string, bool) { return "", false })
		if err != nil {
			return
		}
		var c cli
		k, err := kong.New(&c, s.Option())
		require.NoError(t, err)
		_, _ = k.Parse([]string{"serve"})
	})
}
