package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/superstep-ml/superstep/cmd/internal/builtin"
	"github.com/superstep-ml/superstep/internal/spelling"
	"github.com/superstep-ml/superstep/internal/wire"
)

// RunCommand runs a built-in job or a program.
type RunCommand struct {
	What []string `arg:"" passthrough:"" help:"A built-in job, or the path of a program made with engine.Main, and its flags. --cluster HOST:PORT runs it on a cluster; without, it runs here."`
}

// Help lists the built-in jobs.
func (c *RunCommand) Help() string {
	return "Built-in jobs:\n\n  " + strings.Join(builtin.About(), "\n\n  ")
}

// Run runs the job or the program until it ends. It returns the exit code of a program.
func (c *RunCommand) Run(ctx context.Context, s *Streams) error {
	return launch(ctx, s, "superstep run", c.What, nil)
}

// SubmitCommand submits a built-in job or a program to a cluster and does not wait until it
// ends.
type SubmitCommand struct {
	What []string `arg:"" passthrough:"" help:"A built-in job, or the path of a program made with engine.Main, and its flags."`
}

// Run submits the job. It adds the flag --detach, and the flag --cluster localhost unless a
// cluster is given by a flag or by the environment.
func (c *SubmitCommand) Run(ctx context.Context, s *Streams) error {
	var more []string
	if !named(c.What, "--detach") {
		more = append(more, "--detach")
	}
	if _, set := s.Lookup("SUPERSTEP_CLUSTER"); !set && !named(c.What, "--cluster") {
		more = append(more, "--cluster", "localhost")
	}
	return launch(ctx, s, "superstep submit", c.What, more)
}

// named reports whether words contain flag, alone or with "=" and a value.
func named(words []string, flag string) bool {
	for _, w := range words {
		if w == flag || strings.HasPrefix(w, flag+"=") {
			return true
		}
	}
	return false
}

// launch runs what[0]. If it is a built-in job, launch runs it in this process and then ends
// the process. If it is a program, launch runs it in a new process. The arguments are the
// elements of more, followed by the other elements of what.
func launch(ctx context.Context, s *Streams, command string, what, more []string) error {
	name, words := what[0], append(more, what[1:]...)
	if !strings.ContainsRune(name, os.PathSeparator) {
		if builtin.Main(command, name, words) {
			return nil
		}
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s is neither a built-in job (%s) nor a program: %w", name, strings.Join(builtin.Names(), ", "), err)
		if near := spelling.Near(name, builtin.Names()); len(near) > 0 {
			err = fmt.Errorf("%w; did you mean %s?", err, near[0])
		}
		return UsageError{err}
	}
	// The program shares the terminal and handles Ctrl-C itself. This process must ignore it.
	signal.Ignore(os.Interrupt)
	cmd := exec.CommandContext(ctx, path, words...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, s.Out, s.Err
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return ExitError(exit.ExitCode())
	}
	return err
}

// VersionCommand prints the version.
type VersionCommand struct{}

// Run prints the version of the binary and of the protocol that it speaks.
func (*VersionCommand) Run(s *Streams) error {
	_, err := fmt.Fprintf(s.Out, "superstep %s, protocol %d\n", wire.Build(), wire.Version)
	return err
}
