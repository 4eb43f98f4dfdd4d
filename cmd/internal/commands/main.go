package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/cmd/internal/settings"
	"github.com/superstep-ml/superstep/internal/flags"
)

// Streams has the outputs of a command and its environment variables.
type Streams struct {
	Out, Err io.Writer
	Lookup   func(string) (string, bool) // looks up an environment variable, as os.LookupEnv does
}

// Standard returns the streams of the process.
func Standard() *Streams { return &Streams{Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv} }

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// UsageError wraps an error about an invalid command line or configuration.
type UsageError struct{ error }

// Unwrap returns the marked error.
func (e UsageError) Unwrap() error { return e.error }

// QuietError wraps an error that is not printed, because the user already knows about it.
type QuietError struct{ error }

// Unwrap returns the marked error.
func (e QuietError) Unwrap() error { return e.error }

// Usage returns err as a UsageError.
func Usage(err error) error { return UsageError{err} }

// Quiet returns err as a QuietError.
func Quiet(err error) error { return QuietError{err} }

// ExitError is an exit code. If a command returns it, no error is printed.
type ExitError int

// Error returns a text with the code.
func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main reads a command line into cli, which is a pointer to a kong struct, and runs the
// command. It returns the exit code: 2 for an invalid command line or configuration, the code in
// an ExitError, and 1 for any other error. A value in bind is passed to each Run method that has
// a parameter of its type.
func Main(ctx context.Context, name, description string, cli any, args []string, s *Streams, bind ...any) int {
	given, err := configFlag(args)
	if err != nil {
		return fail(s, name, UsageError{err})
	}
	file, err := settings.Read(settings.Path(given, s.Lookup), s.Lookup)
	if err != nil {
		return fail(s, name, UsageError{err})
	}
	exited, code := false, 0
	parser, err := kong.New(cli, kong.Name(name), kong.Description(description), kong.Writers(s.Out, s.Err),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(n int) { exited, code = true, n }), file.Option(), flags.Once(),
		kong.Vars(defaults(s.Lookup)))
	if err != nil {
		return fail(s, name, err)
	}
	parsed, err := parser.Parse(args)
	if exited {
		return code
	}
	if err != nil {
		return fail(s, name, UsageError{err})
	}
	file.Given(parsed)
	parsed.BindTo(ctx, (*context.Context)(nil))
	return fail(s, name, parsed.Run(append(bind, s, file, parser)...))
}

// fail returns the exit code for err. It prints err unless it is an ExitError or a QuietError.
func fail(s *Streams, name string, err error) int {
	var exit ExitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return int(exit)
	}
	if !errors.As(err, new(QuietError)) {
		fmt.Fprintf(s.Err, "%s: %v\n", name, err)
	}
	if errors.As(err, new(UsageError)) {
		fmt.Fprintf(s.Err, "\"%s --help\" lists the commands and flags.\n", name)
		return exitUsage
	}
	return exitFailed
}

// ConfigFlag is the flag for the configuration file. Main reads it with configFlag before all
// other flags, whose values may come from the file. Commands embed ConfigFlag for --help.
type ConfigFlag struct {
	Config string `type:"path" placeholder:"FILE" help:"Configuration file (default: $$SUPERSTEP_CONFIG, or superstep/config.yaml under the user's configuration directory or /etc)."`
}

// configFlag returns the value of --config in args before "--", or "" if there is none.
func configFlag(args []string) (string, error) {
	for i, arg := range args {
		switch {
		case arg == "--":
			return "", nil
		case arg == "--config" && i+1 < len(args):
			return args[i+1], nil
		case arg == "--config":
			return "", errors.New("--config: want a file")
		case strings.HasPrefix(arg, "--config="):
			return strings.TrimPrefix(arg, "--config="), nil
		}
	}
	return "", nil
}

// ConfigCommand shows the configuration.
type ConfigCommand struct {
	Show configShow `cmd:"" help:"Show every setting, its value, and where that comes from."`
}

type configShow struct {
	ConfigFlag
	Output outputForm `short:"o" enum:"text,json" default:"text" placeholder:"FORM" help:"text or json."`
}

// Run prints the settings of all commands.
func (c *configShow) Run(s *Streams, file *settings.Settings, parser *kong.Kong) error {
	shown := file.Show(parser)
	if c.Output == "json" {
		return writeJSON(s.Out, settingRows(shown))
	}
	t := table{head: []string{"setting", "value", "origin"}}
	for _, v := range shown {
		t.row(v.Key, v.Value, v.Origin)
	}
	return t.write(s.Out)
}

// settingRow is a setting as JSON.
type settingRow struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func settingRows(shown []settings.Shown) []settingRow {
	rows := make([]settingRow, 0, len(shown))
	for _, v := range shown {
		rows = append(rows, settingRow{v.Key, v.Value, v.Origin})
	}
	return rows
}

// defaults returns the default values of flags that depend on the machine, for kong.
func defaults(lookup func(string) (string, bool)) kong.Vars {
	return kong.Vars{"state": stateDir(lookup)}
}

// stateDir returns the directory for files of managers that must outlive the processes of the
// managers.
func stateDir(lookup func(string) (string, bool)) string {
	if dir, ok := lookup("XDG_STATE_HOME"); ok && strings.HasPrefix(dir, "/") {
		return dir + "/superstep"
	}
	if home, ok := lookup("HOME"); ok && strings.HasPrefix(home, "/") {
		return home + "/.local/state/superstep"
	}
	return os.TempDir() + "/superstep"
}

// wordsOf returns the words that may follow command n, for completion: its subcommands, the
// values of its enumerated arguments, and the flags of n and of the commands above it.
func wordsOf(n *kong.Node) []string {
	var words []string
	for _, child := range n.Children {
		if !child.Hidden {
			words = append(words, child.Name)
		}
	}
	for _, p := range n.Positional {
		if p.Enum != "" {
			words = append(words, strings.Split(p.Enum, ",")...)
		}
	}
	for at := n; at != nil; at = at.Parent {
		for _, f := range at.Flags {
			if !f.Hidden {
				words = append(words, "--"+f.Name)
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}
