package commands

import (
	"strings"

	"github.com/superstep-ml/superstep/cmd/internal/builtin"
)

// ExportCommand writes a model in another format.
type ExportCommand struct {
	File     string `arg:"" help:"File of a model of any kind."`
	To       string `placeholder:"FORMAT" help:"Format to write (default: by the ending of --output)."`
	Output   string `required:"" placeholder:"FILE" help:"File to write."`
	IfExists string `enum:"fail,replace" default:"fail" placeholder:"WHAT" help:"What to do if the file exists: fail (the default) or replace."`
}

// Help lists the formats.
func (c *ExportCommand) Help() string { return formatsHelp() }

func formatsHelp() string { return "Formats:\n\n  " + strings.Join(builtin.Formats(), "\n\n  ") }

// Run writes the file.
func (c *ExportCommand) Run(s *Streams) error {
	ok, err := builtin.Export(s.Out, c.File, c.To, c.Output, c.IfExists == "replace")
	return misuse(ok, err)
}

// ImportCommand converts a model from another format.
type ImportCommand struct {
	File string `arg:"" help:"File of a model in another format."`
	From string `placeholder:"FORMAT" help:"Format to read (default: by the ending of the file)."`
	builtin.ImportArgs
	Output   string `required:"" placeholder:"FILE" help:"File to write the model to, for predict, evaluate and inspect."`
	IfExists string `enum:"fail,replace" default:"fail" placeholder:"WHAT" help:"What to do if the file exists: fail (the default) or replace."`
}

// Help lists the formats.
func (c *ImportCommand) Help() string { return formatsHelp() }

// Run reads the file and writes the model.
func (c *ImportCommand) Run(s *Streams) error {
	ok, err := builtin.Import(s.Out, c.File, c.From, c.Output, c.IfExists == "replace", c.ImportArgs)
	return misuse(ok, err)
}

// misuse returns err, as a UsageError if ok is false, which means that the arguments are
// invalid.
func misuse(ok bool, err error) error {
	if ok || err == nil {
		return err
	}
	return UsageError{err}
}
