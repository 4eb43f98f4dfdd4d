package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/term"

	"github.com/superstep-ml/superstep/engine/plan"
)

// Exit codes of a program that uses Main.
const (
	exitOK     = 0
	exitFailed = 1 // the job failed or was cancelled
	exitUsage  = 2 // the command line cannot be used
)

// Main runs a job as a whole program with a command line. It ends the process with exit code 0
// after success, 1 if the job failed or was cancelled, and 2 if the command line is wrong.
//
// The exported fields of A are flags: a field K is --k, a field InputFile is --input-file. Tags
// describe the flags: `help` is the text for --help, `default` the default value, `short` a
// letter as a short name, `enum` the list of valid values and `name` the name. `required` says
// that the flag must be given. The elements of a slice are separated by commas, or the flag is
// repeated. Durations are written as 1m30s. Embedded structs add their fields, and so do fields
// with the tag `embed:"" prefix:"init-"`. If A has a method Validate() error, Main calls it before
// the job is built.
//
// The program also has the engine's flags, which --help lists. The job's flags must have other
// names. The exception is --seed: a job may have its own, of an integer type, whose value is
// then also the seed of the run.
//
// Hooks such as AfterRun write results to standard output. Progress, logs and errors go to
// standard error, without colours if NO_COLOR is set.
//
// The first interrupt cancels the run. A second interrupt ends the process at once. It is
// ignored if it comes within a quarter of a second, as one key press may send two interrupts.
// While the job is being built, the first interrupt ends the process at once, as nothing has
// started. While hooks run, interrupts have the default effect.
//
// With --cluster the job runs on a cluster, see Cluster. Everything else is the same, except
// that with --detach Main prints the job's name on standard output and calls no hooks.
func Main[A any](job *Job[A], opts ...MainOption) {
	WorkerMain(job)
	os.Exit(mainWith(context.Background(), job, programEnv{
		name:   filepath.Base(os.Args[0]),
		args:   os.Args[1:],
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.Getenv,
		width:  func() int { return terminalWidth(os.Stderr) },
		ask:    terminalAsk(os.Stdin, os.Stderr),
		listen: listen,
		now:    time.Now,
		exit:   os.Exit,
	}, opts...))
}

// MainOption changes what Main does. AfterRun, Finally, CommandLine and InWords return a
// MainOption, and every Option of a run is a MainOption. A flag that is given overrides the
// Option. Settings whose flags have a default, such as parallelism, shards and seed, are always
// taken from the flags.
type MainOption interface{ setMain(c *mainConfig) }

// setMain makes an Option an option of Main.
func (o Option) setMain(c *mainConfig) { c.options = append(c.options, o) }

// mainSetting is an option of Main that Run does not have.
type mainSetting func(*mainConfig)

func (f mainSetting) setMain(c *mainConfig) { f(c) }

type mainConfig struct {
	after   []afterRun
	options []Option
	finally []func()
	line    []string // the program's name and arguments; nil means the name and arguments of the process
	words   func(message string) string
}

// afterRun is a function to call after the run, with the type of its parameter args.
type afterRun struct {
	site string
	args reflect.Type
	call func(args any, r *Result) error // nil if the function given to AfterRun is nil
}

// AfterRun sets a function that Main calls after the job has succeeded, to print or plot its
// results. If it returns an error, the program fails. Several functions are called in the order
// in which they were given; the result is released after the last function. If A is not the
// type of the job's arguments, Main fails before anything runs.
func AfterRun[A any](f func(args A, r *Result) error) MainOption {
	hook := afterRun{site: userSite(), args: reflect.TypeFor[A]()}
	if f != nil {
		hook.call = func(args any, r *Result) error {
			a, _ := args.(A) // the method named of has checked the type; args is nil if A is an interface and its value is nil
			return f(a, r)
		}
	}
	return mainSetting(func(c *mainConfig) { c.after = append(c.after, hook) })
}

// of returns an error if the function cannot be called with arguments of type args.
func (h *afterRun) of(args reflect.Type) error {
	switch {
	case h.call == nil:
		return Misuse{Site: h.site, Err: errors.New("AfterRun: the function is nil")}
	case h.args != args:
		return Misuse{Site: h.site, Err: fmt.Errorf("AfterRun: the function takes %v, the job's arguments are %v", h.args, args)}
	}
	return nil
}

// Finally sets a function that Main calls at the end, whether the job succeeded or not, to
// release the program's resources.
func Finally(f func()) MainOption {
	return mainSetting(func(c *mainConfig) { c.finally = append(c.finally, f) })
}

// CommandLine sets the program's name, for messages, and the words of its command line. Without
// this option Main takes both from os.Args. A program with several commands uses CommandLine to
// call Main for one of them.
func CommandLine(name string, words ...string) MainOption {
	return mainSetting(func(c *mainConfig) { c.line = append([]string{name}, words...) })
}

// InWords sets a function that rewrites an error message before Main prints it. It is for
// programs whose users know flags, while messages name the fields of Go packages.
func InWords(words func(message string) string) MainOption {
	return mainSetting(func(c *mainConfig) { c.words = words })
}

// programEnv holds what a program uses of its process. Tests replace it.
type programEnv struct {
	name           string // name of the program
	args           []string
	stdout, stderr io.Writer
	getenv         func(string) string
	// width returns the width of stderr's terminal, or 0 if stderr is not a terminal.
	width func() int
	// ask asks the user a question and reports whether the answer is yes. It is nil if nobody can
	// answer.
	ask func(question string) bool
	// listen begins to receive the signals that cancel the run, until stop is called. Before and
	// after that, these signals end the process.
	listen func() (signals <-chan os.Signal, stop func())
	now    func() time.Time
	exit   func(code int) // ends the process at once
}

// terminalWidth returns the number of characters on a line of a terminal, or 0 if
// the file is not a terminal.
func terminalWidth(f *os.File) int {
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// mainWith does the work of Main with the process replaced by w, and returns the exit code.
func mainWith[A any](ctx context.Context, job *Job[A], w programEnv, opts ...MainOption) int {
	var mc mainConfig
	for _, opt := range opts {
		if opt != nil {
			opt.setMain(&mc)
		}
	}
	defer func() {
		for _, f := range mc.finally {
			f()
		}
	}()
	if len(mc.line) > 0 {
		w.name, w.args = mc.line[0], mc.line[1:]
	}
	p := program{programEnv: w, words: mc.words}
	if err := job.check(); err != nil {
		return p.fail(err)
	}
	for i := range mc.after {
		if err := mc.after[i].of(reflect.TypeFor[A]()); err != nil {
			return p.fail(err)
		}
	}
	args := job.Arguments()
	var line *commandLine
	err := guarded(func() (err error) { // parseArgs calls methods of A, such as Validate
		line, err = parseArgs(w.name, job.about, &args, w.args, w.stdout, w.stderr)
		return err
	})
	if err != nil {
		return p.fail(err)
	}
	if line.ended {
		return exitOK
	}
	line.fromEnvironment(w.getenv)
	if line.Explain != "" {
		compiled, err := Compile(job, args, slices.Concat(mc.options, line.options())...)
		if err != nil {
			return p.fail(err)
		}
		return p.fail(compiled.Print(w.stdout, string(line.Explain)))
	}
	if line.Check {
		return p.fail(checkMain(ctx, job, args, line, &p, &mc))
	}
	return p.fail(runMain(ctx, job, args, line, &p, &mc))
}

// checkMain checks the job instead of running it; see Check. It calls no hooks, as there are no
// results.
func checkMain[A any](ctx context.Context, job *Job[A], args A, line *commandLine, p *program, mc *mainConfig) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	interrupts := p.interrupts()
	defer interrupts.stop()
	interrupts.cancelWith(cancel)
	opts := slices.Concat(mc.options, line.options(), []Option{Logger(p.logger(line, p.display(progressOff)))})
	done, err := check(ctx, job, args, opts)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, done)
	return err
}

// runMain runs the job and shows its progress. After that it calls the hooks.
func runMain[A any](ctx context.Context, job *Job[A], args A, line *commandLine, p *program, mc *mainConfig) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	interrupts := p.interrupts()
	defer interrupts.stop()
	screen := p.display(line.Progress)
	opts := slices.Concat(mc.options, line.options())
	opts = append(opts, Logger(p.logger(line, screen)), Stdout(sharedScreen{screen, p.stdout}))
	if screen.mode != progressOff {
		opts = append(opts, OnProgress(screen.update))
	}
	c, err := newConfig(opts)
	if err != nil {
		return err
	}
	limitHeap(c.memory, p.getenv)
	c.checkpoints.getenv = p.getenv
	c.checkpoints.say = func(line string) { fmt.Fprintf(screen, "%s: %s\n", p.name, line) }
	var result *Result
	if c.cluster.address != "" {
		c.cluster.hooks = p.clusterHooks(screen, func() { interrupts.cancelWith(cancel) })
		result, err = runOnCluster(ctx, job, args, c)
	} else {
		result, err = runHere(ctx, job, args, c, func(p *plan.Plan) {
			screen.begin(p)
			interrupts.cancelWith(cancel)
		})
	}
	interrupts.stop() // the run has ended, and hooks have no context that could be cancelled
	if err != nil {
		return err
	}
	defer result.Release()
	if result.detached {
		return p.sayDetached(screen, result.JobID)
	}
	for _, hook := range mc.after {
		// A panic would end the process with exit code 2, which stands for a wrong command line.
		// So panics of hooks are caught.
		if err := guarded(func() error { return hook.call(args, result) }); err != nil {
			return fmt.Errorf("after the run: %w", err)
		}
	}
	return nil
}

// runHere runs the job in this process. It calls begin with the plan before anything runs.
func runHere[A any](ctx context.Context, job *Job[A], args A, c *config, begin func(*plan.Plan)) (*Result, error) {
	ready, err := prepare(job, args, c)
	if err != nil {
		return nil, err
	}
	begin(ready.plan)
	return ready.run(ctx, c)
}

// clusterHooks returns the hooks of a program whose job runs on a cluster. began is called when
// signals must begin to cancel the run instead of ending the process.
func (p *program) clusterHooks(screen *display, began func()) clusterHooks {
	return clusterHooks{
		began:   began,
		planned: screen.begin,
		confirm: p.ask,
		say:     func(line string) { fmt.Fprintf(screen, "%s: %s\n", p.name, line) },
		cancelling: func(job string) {
			fmt.Fprintf(screen, "%s: cancelling %s; press Ctrl-C again to leave at once, without waiting for its end\n", p.name, job)
		},
		getenv: p.getenv,
	}
}

// sayDetached prints the name of a job that was left to its cluster on standard output, for
// programs. For people it also prints the commands that can be used with the job.
func (p *program) sayDetached(screen *display, job string) error {
	if screen.mode != progressOff {
		fmt.Fprintf(screen, "%s: the cluster has the job; `superstep show %s` shows its state, `superstep logs %s` what it writes, `superstep cancel %s` ends it\n", p.name, job, job, job)
	}
	_, err := fmt.Fprintln(p.stdout, job)
	return err
}

// terminalAsk returns a function that asks on the terminal, or nil if there is no terminal. An
// empty answer means yes.
func terminalAsk(in, out *os.File) func(string) bool {
	if terminalWidth(out) == 0 || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	return func(question string) bool { return askOn(in, out, question) }
}

// askOn asks until the answer is yes or no. The end of the input means no.
func askOn(in io.Reader, out io.Writer, question string) bool {
	answers := bufio.NewScanner(in)
	for {
		fmt.Fprintf(out, "%s [Y/n] ", question)
		if !answers.Scan() {
			fmt.Fprintln(out)
			return false
		}
		switch strings.ToLower(strings.TrimSpace(answers.Text())) {
		case "", "y", "yes":
			return true
		case "n", "no":
			return false
		}
	}
}

// heapMargin is the number of bytes that a program needs in addition to the budget of --memory,
// for its own objects, rows in flight and stacks.
const heapMargin = 64 << 20

// limitHeap makes the garbage collector keep the size of the heap near granted, which is the
// value of --memory in bytes. Without a limit, garbage may grow to the size of the live heap. A
// GOMEMLIMIT that the user has set takes precedence. Only Main sets the limit: a program that
// calls Run controls its own process.
func limitHeap(granted int64, getenv func(string) string) {
	if granted > 0 && getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(granted + heapMargin)
	}
}

// program holds the parts of Main that do not depend on the job's arguments.
type program struct {
	programEnv
	words func(message string) string // rewrites failure messages; nil leaves them as they are
}

// display returns the display of the run's progress.
func (p *program) display(mode progressMode) *display {
	if mode == progressAuto {
		mode = progressPlain
		if p.width() > 0 && p.getenv("TERM") != "dumb" {
			mode = progressLive
		}
	}
	return newDisplay(mode, p.stderr, func() int {
		if w := p.width(); w > 0 {
			return w
		}
		return math.MaxInt
	})
}

// logger returns the logger with the level and the format that the flags give.
func (p *program) logger(line *commandLine, screen *display) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Level:      hclog.LevelFromString(line.LogLevel),
		Output:     screen,
		JSONFormat: line.LogJSON,
	})
}

// fail prints err, if it is not nil, and returns the exit code.
func (p *program) fail(err error) int {
	if err == nil {
		return exitOK
	}
	var usage *usageError
	var option *optionError
	message := err.Error()
	if p.words != nil {
		message = p.words(message)
	}
	if errors.As(err, &usage) || errors.As(err, &option) {
		fmt.Fprintf(p.stderr, "%s: %s %s\n\"%s --help\" lists the flags.\n", p.name, p.red("error:"), message, p.name)
		return exitUsage
	}
	if onlyInterrupted(err) {
		p.sayCancelled()
		return exitFailed
	}
	fmt.Fprintf(p.stderr, "%s: %s %s\n", p.name, p.red("error:"), message)
	return exitFailed
}

// red returns s in red if standard error is a terminal on which colours are wanted.
func (p *program) red(s string) string {
	if p.width() == 0 || p.getenv("NO_COLOR") != "" || p.getenv("TERM") == "dumb" {
		return s
	}
	return "\x1b[1;31m" + s + "\x1b[0m"
}
