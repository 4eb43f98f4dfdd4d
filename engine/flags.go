package engine

import (
	"cmp"
	"encoding"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/internal/flags"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// engineFlags are the flags that Main adds to every program.
type engineFlags struct {
	Parallelism parallelism  `placeholder:"N|MIN:MAX" help:"Subtasks of each vertex; changes no result. On a cluster a range such as 2:8 lets the job start, shrink and grow with the slots that there are. 0, the default, is one per processor, or on a cluster one per slot."`
	Shards      int          `placeholder:"S" default:"${shards}" help:"Shards that data are cut into, a power of two (default: ${shards})."`
	Explain     explainForm  `placeholder:"FORM" help:"Print the plan instead of running it, as text (the default), json or dot."`
	Check       bool         `help:"Run the job at two parallelisms and batch sizes in this process, write nothing, and report whether all operators and queues gave the same results, or which did not."`
	Progress    progressMode `enum:"auto,plain,json,off" default:"auto" placeholder:"MODE" help:"How to show progress on standard error: auto, plain, json or off (default: auto, a live line on a terminal)."`
	IfExists    string       `enum:"fail,replace" default:"fail" placeholder:"WHAT" help:"What to do where an output exists: fail or replace (default: fail)."`
	LogLevel    string       `enum:"trace,debug,info,warn,error,off" default:"warn" placeholder:"LEVEL" help:"Lowest level that is logged on standard error: trace, debug, info, warn, error or off (default: warn)."`
	LogJSON     bool         `name:"log-json" help:"Log as JSON, one object per line."`
	BatchRows   int          `placeholder:"N" default:"${batch_rows}" help:"Rows that sources aim at per batch; changes no result (default: ${batch_rows})."`
	Memory      byteSize     `placeholder:"SIZE" help:"Memory that exchanges and results may hold before they spill, such as 512MiB or 4GB (default: a share of what there is)."`
	SpillDir    string       `placeholder:"DIR" help:"Directory for temporary files, which is made if it does not exist (default: the system's)."`
	Version     versionFlag  `help:"Print the version and exit."`
	checkpointFlags
	clusterFlags
}

// parallelism is the value of --parallelism.
type parallelism struct{ wire.Parallelism }

// UnmarshalText reads a number or a range.
func (p *parallelism) UnmarshalText(text []byte) (err error) {
	p.Parallelism, err = wire.ParseParallelism(string(text))
	return err
}

// option returns the option of a run for the flag.
func (p parallelism) option() Option {
	if p.Elastic() {
		return ParallelismRange(p.Min, p.Max)
	}
	return Parallelism(p.Max)
}

// checkpointFlags are the flags for checkpoints.
type checkpointFlags struct {
	Checkpoint          string             `enum:"allow,require" default:"allow" placeholder:"WHAT" help:"What to do with a queue that cannot continue from a saved state: allow it, so that it begins at superstep 1 again after a loss, or require that every queue can (default: allow)."`
	CheckpointDir       string             `placeholder:"DIR" help:"Save the states of queues in this directory, or at s3://BUCKET/PREFIX, of this run alone, so that --resume can continue the run if it ends early."`
	CheckpointEvery     checkpointInterval `placeholder:"TIME" help:"How often to save them: a time such as 30s, supersteps such as 20steps, or auto, which chooses from what a checkpoint costs and from --mtbf (default: ${checkpoint_every})."`
	MTBF                time.Duration      `name:"mtbf" placeholder:"TIME" help:"Mean time between failures of the run, all machines together, for --checkpoint-every auto (default: ${mtbf})."`
	CheckpointFailAfter time.Duration      `placeholder:"TIME" help:"Fail if they could not be saved for this long, such as 10m (default: go on)."`
	Resume              bool               `help:"Continue from the newest checkpoint in --checkpoint-dir."`
	From                string             `placeholder:"DIR" help:"Continue from the savepoint in this directory, or at s3://BUCKET/PREFIX, also with another build of the program, other arguments or parallelism."`
}

// checkpointInterval is the value of --checkpoint-every.
type checkpointInterval struct {
	auto       bool
	every      time.Duration
	supersteps int
}

// UnmarshalText reads a duration, a number of supersteps such as 20steps, or auto.
func (i *checkpointInterval) UnmarshalText(text []byte) (err error) {
	in := strings.TrimSpace(string(text))
	*i = checkpointInterval{auto: in == "auto"}
	if i.auto {
		return nil
	}
	if n, steps := strings.CutSuffix(strings.TrimSuffix(in, "s"), "step"); steps {
		i.supersteps, err = strconv.Atoi(strings.TrimSpace(n))
	} else {
		i.every, err = time.ParseDuration(in)
	}
	if err != nil || i.supersteps <= 0 && i.every <= 0 {
		return fmt.Errorf("%q is neither a time such as 30s nor a number of supersteps such as 20steps nor auto", in)
	}
	return nil
}

// options returns the options of a run for the flags.
func (c *checkpointFlags) options() []Option {
	var opts []Option
	if c.CheckpointDir != "" {
		opts = append(opts, CheckpointDir(c.CheckpointDir))
	}
	if i := c.CheckpointEvery; i.auto {
		opts = append(opts, CheckpointAuto(cmp.Or(c.MTBF, DefaultMTBF)))
	} else if i != (checkpointInterval{}) {
		opts = append(opts, CheckpointEvery(i.every), CheckpointSupersteps(i.supersteps))
	}
	if c.MTBF != 0 {
		opts = append(opts, func(of *config) { of.checkpoints.mtbf = c.MTBF }) // an error unless the interval is auto
	}
	if c.CheckpointFailAfter != 0 {
		opts = append(opts, CheckpointFailAfter(c.CheckpointFailAfter))
	}
	if c.Checkpoint == "require" {
		opts = append(opts, RequireCheckpoints(true))
	}
	if c.Resume {
		opts = append(opts, Resume(true))
	}
	if c.From != "" {
		opts = append(opts, FromSavepoint(c.From))
	}
	return opts
}

// clusterFlags are the flags for jobs that run on a cluster. Defaults come from the
// environment, see fromEnvironment.
type clusterFlags struct {
	Cluster      string        `placeholder:"HOST:PORT" help:"Run on the cluster of the job manager there; the port is 6123 unless given (default: SUPERSTEP_CLUSTER; local runs in this process)."`
	Detach       bool          `help:"Leave the job to the cluster: print its ID and exit, without results."`
	TokenFile    string        `placeholder:"FILE" help:"File with the cluster's token (default: SUPERSTEP_TOKEN_FILE, or where a job manager of this user left it)."`
	TLSCA        string        `name:"tls-ca" placeholder:"FILE" help:"Certificate of the authority that vouches for the job manager (default: SUPERSTEP_TLS_CA)."`
	TLSCert      string        `name:"tls-cert" placeholder:"FILE" help:"Certificate that this program shows to the job manager (default: SUPERSTEP_TLS_CERT)."`
	TLSKey       string        `name:"tls-key" placeholder:"FILE" help:"Key of that certificate (default: SUPERSTEP_TLS_KEY)."`
	Insecure     bool          `help:"Talk to a job manager on another machine without TLS: anyone on the network can read the token."`
	WorkerBinary string        `placeholder:"FILE" help:"This program, built for the cluster's platform (default: this executable)."`
	Copies       int           `placeholder:"N" default:"1" help:"Other workers in whose memory each worker keeps copies of the states of queues, from which the job continues after a loss: 0 to 3 (default: 1)."`
	Priority     int           `placeholder:"N" default:"0" help:"Priority among the jobs that wait for slots, from ${min_priority} to ${max_priority}: higher ones come first, and stop no other job (default: 0)."`
	WaitTimeout  time.Duration `placeholder:"TIME" help:"Give up a job that has waited for slots this long, such as 10m (default: wait for ever)."`
	restartFlags
}

// restartFlags are the flags for restarts of a job on a cluster.
type restartFlags struct {
	Restart         restartStrategy `placeholder:"STRATEGY" help:"When the cluster begins the job again after the loss of a worker: exponential-delay, fixed-delay, failure-rate or none (default: exponential-delay)."`
	RestartAttempts int             `placeholder:"N" help:"Most restarts, with failure-rate within --restart-window (default: 3, with exponential-delay no limit)."`
	RestartDelay    time.Duration   `placeholder:"TIME" help:"Time from the loss of a worker to the restart; exponential-delay doubles it every time, up to a minute (default: ${first_delay} with exponential-delay, otherwise ${restart_delay})."`
	RestartWindow   time.Duration   `placeholder:"TIME" help:"Period in which failure-rate counts restarts; with exponential-delay, how long an attempt runs before the delay is the first again (default: ${restart_window})."`
}

// restartStrategy is the value of --restart.
type restartStrategy struct {
	given    bool
	strategy RestartStrategy
}

// UnmarshalText reads the name of a strategy.
func (s *restartStrategy) UnmarshalText(text []byte) error {
	strategy, err := wire.ParseRestartStrategy(string(text))
	*s = restartStrategy{true, RestartStrategy(strategy)}
	return err
}

// options returns the options of a run for the flags.
func (r *restartFlags) options() []Option {
	if *r == (restartFlags{}) {
		return nil
	}
	return []Option{Restarts(Restart{Strategy: r.Restart.strategy, Attempts: r.RestartAttempts, Delay: r.RestartDelay, Window: r.RestartWindow})}
}

// fromEnvironment sets, from environment variables, the flags that the command line has not
// set.
func (c *clusterFlags) fromEnvironment(getenv func(string) string) {
	for name, flag := range map[string]*string{
		"SUPERSTEP_CLUSTER": &c.Cluster, "SUPERSTEP_TLS_CA": &c.TLSCA,
		"SUPERSTEP_TLS_CERT": &c.TLSCert, "SUPERSTEP_TLS_KEY": &c.TLSKey,
	} {
		if *flag == "" {
			*flag = getenv(name)
		}
	}
}

// options returns the options of a run for the flags.
func (c *clusterFlags) options() []Option {
	var opts []Option
	given := func(is bool, option Option) {
		if is {
			opts = append(opts, option)
		}
	}
	given(c.Cluster != "", Cluster(c.Cluster))
	given(c.Cluster == "local", Local())
	given(c.TokenFile != "", ClusterTokenFile(c.TokenFile))
	given(c.TLSCA != "" || c.TLSCert != "" || c.TLSKey != "", ClusterTLS(c.TLSCA, c.TLSCert, c.TLSKey))
	given(c.Insecure, ClusterInsecure())
	given(c.Detach, Detach())
	given(c.WorkerBinary != "", WorkerBinary(c.WorkerBinary))
	given(c.WaitTimeout != 0, WaitTimeout(c.WaitTimeout))
	given(c.Priority != 0, Priority(c.Priority))
	given(c.Copies != wire.DefaultCopies, Copies(c.Copies))
	return append(opts, c.restartFlags.options()...)
}

// seedFlag is not part of engineFlags because a job may have a flag --seed of its own.
type seedFlag struct {
	Seed uint64 `placeholder:"SEED" default:"0" help:"Seed of all random draws (default: 0)."`
}

// explainForm is the value of --explain, or "" if the flag was not given. The flag may be given
// without a value.
type explainForm string

var explainForms = []string{"text", "json", "dot"}

// Decode reads the word after the flag as its value only if it is one of the forms, so that
// "--explain" may be given without a value. The value in "--explain=form" must be one of the
// forms.
func (e *explainForm) Decode(ctx *kong.DecodeContext) error {
	*e = "text"
	next := ctx.Scan.Peek()
	word := fmt.Sprint(next.Value)
	known := slices.Contains(explainForms, word)
	if next.Type != kong.FlagValueToken && !(known && next.IsValue()) {
		return nil
	}
	if !known {
		return fmt.Errorf("want text, json or dot, but got %q", word)
	}
	ctx.Scan.Pop()
	*e = explainForm(word)
	return nil
}

// versionFlag prints the version and ends the program.
type versionFlag bool

// BeforeReset prints the version. The parser calls it before it checks required flags.
func (versionFlag) BeforeReset(app *kong.Kong, vars kong.Vars) error {
	fmt.Fprintln(app.Stdout, vars["version"])
	app.Exit(0)
	return nil
}

// byteSize is a number of bytes given with a unit.
type byteSize int64

var _ encoding.TextUnmarshaler = (*byteSize)(nil)

// UnmarshalText reads "512MiB", "4GB", "1.5g" or a plain number of bytes.
func (s *byteSize) UnmarshalText(text []byte) error {
	n, ok := humanize.ParseBytes(string(text))
	if !ok || n == 0 {
		return fmt.Errorf("%q is no size: want a positive number and a unit, such as 512MiB or 4GB", strings.TrimSpace(string(text)))
	}
	*s = byteSize(n)
	return nil
}

// commandLine is a parsed command line.
type commandLine struct {
	engineFlags
	seedFlag
	// ended says that the program has nothing more to do, as after --help.
	ended bool
}

// usageError is the error of a command line that cannot be used.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// parseArgs parses words into args, a pointer to the struct of the job's arguments, and into the
// engine's flags, which it returns. For a mistake of the user the error is a *usageError; for a
// mistake of the program's author it has another type.
func parseArgs(name, about string, args any, words []string, stdout, stderr io.Writer) (*commandLine, error) {
	own, err := ownFlags(args)
	if err != nil {
		return nil, err
	}
	c := &commandLine{}
	seed, err := jobSeed(own)
	if err != nil {
		return nil, err
	}
	if err := collision(own); err != nil {
		return nil, err
	}
	options := append(kongOptions(), integers(), flags.Once(), kong.Name(name), kong.Description(about), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { c.ended = true }),
		kong.ExplicitGroups([]kong.Group{{Key: "engine", Title: "Engine flags:"}}),
		kong.PostBuild(func(k *kong.Kong) error {
			k.Model.HelpFlag.Help = "Show this help and exit."
			return nil
		}))
	if seed == nil {
		options = append(options, kong.Embed(&c.seedFlag, `group:"engine"`))
	}
	options = append(options, kong.Embed(&c.engineFlags, `group:"engine"`))
	parser, err := kong.New(args, options...)
	if err != nil {
		return nil, fmt.Errorf("the arguments %s cannot be flags: %w", typeName(args), err)
	}
	_, err = parser.Parse(joinNegative(words, own))
	if c.ended {
		return c, nil // --help or --version was given and is done
	}
	if err != nil {
		return nil, &usageError{err}
	}
	for _, f := range parser.Model.Flags {
		if seed != nil && f.Name == seed.Name {
			c.Seed = seedOf(f.Target)
		}
	}
	return c, nil
}

// kongOptions returns the options that every parser of this package needs.
func kongOptions() []kong.Option {
	return []kong.Option{kong.Vars{
		"version":    programVersion(),
		"shards":     strconv.Itoa(DefaultShards),
		"batch_rows": strconv.Itoa(DefaultBatchRows),

		"checkpoint_every": DefaultCheckpointEvery.String(),
		"mtbf":             strings.TrimSuffix(DefaultMTBF.String(), "0m0s"),
		"min_priority":     strconv.Itoa(MinPriority),
		"max_priority":     strconv.Itoa(MaxPriority),
		"first_delay":      wire.DefaultFirstDelay.String(),
		"restart_delay":    wire.DefaultRestartDelay.String(),
		"restart_window":   wire.DefaultRestartWindow.String(),
	}}
}

// ownFlags returns the flags of the job's arguments.
func ownFlags(args any) ([]*kong.Flag, error) {
	if t := reflect.TypeOf(args); t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("the arguments %s cannot be flags: want a struct", typeName(args))
	}
	// kong.New writes defaults into the struct, so it gets a copy of args. A struct in an interface
	// is not copied, but is reset when words are parsed.
	scratch := reflect.New(reflect.TypeOf(args).Elem())
	scratch.Elem().Set(reflect.ValueOf(args).Elem())
	parser, err := kong.New(scratch.Interface(), append(kongOptions(), kong.NoDefaultHelp())...)
	if err != nil {
		// The parser regards a nested struct as a command, but a job has no commands.
		hint := strings.NewReplacer(`perhaps missing a cmd:"" tag?`, `nested structs take the tag embed:"" prefix:"name-"`)
		return nil, fmt.Errorf("the arguments %s cannot be flags: %s", typeName(args), hint.Replace(err.Error()))
	}
	if len(parser.Model.Children) > 0 {
		return nil, fmt.Errorf("the arguments %s cannot be flags: the command %q of a job is no argument", typeName(args), parser.Model.Children[0].Name)
	}
	return parser.Model.Flags, nil
}

// jobSeed returns the job's own flag --seed, or nil if it has none. As the value of this flag
// is also the seed of the run, it must be an integer. Callers may use only the flag's name and
// type, as the flag does not belong to the struct into which words are parsed.
func jobSeed(own []*kong.Flag) (*kong.Flag, error) {
	for _, f := range own {
		if f.Name != "seed" {
			continue
		}
		if !f.Target.CanInt() && !f.Target.CanUint() {
			return nil, fmt.Errorf("flag --seed of the job's arguments is a %s, but the engine's --seed, which it also sets, is an integer; change its type or rename it with the tag `name`", f.Target.Type())
		}
		return f, nil
	}
	return nil, nil
}

// seedOf returns an integer as a seed; negative integers wrap around.
func seedOf(v reflect.Value) uint64 {
	if v.CanUint() {
		return v.Uint()
	}
	return uint64(v.Int())
}

// collision returns an error if both the job and the engine define a flag other than --seed.
func collision(own []*kong.Flag) error {
	engine, err := kong.New(&struct {
		engineFlags
		seedFlag
	}{}, kongOptions()...)
	if err != nil {
		return fmt.Errorf("the engine's own flags: %w", err)
	}
	taken := map[string]bool{}
	for _, f := range engine.Model.Flags {
		for _, name := range spellings(f) {
			taken[name] = true
		}
	}
	for _, f := range own {
		for _, name := range spellings(f) {
			if taken[name] && name != "--seed" {
				return fmt.Errorf("flag %s is defined both by the job's arguments (--%s) and by the engine; rename the job's with the tag `name` or `short`", name, f.Name)
			}
		}
	}
	return nil
}

// spellings returns all ways to write a flag.
func spellings(f *kong.Flag) []string {
	names := []string{"--" + f.Name}
	if f.Short != 0 {
		names = append(names, "-"+string(f.Short))
	}
	for _, alias := range f.Aliases {
		names = append(names, "--"+alias)
	}
	switch neg := f.Tag.Negatable; {
	case neg == "":
	case strings.HasPrefix(neg, "--"), neg != "_" && neg != "true":
		names = append(names, "--"+strings.TrimPrefix(neg, "--"))
	default:
		names = append(names, "--no-"+f.Name)
	}
	return names
}

// typeName returns the type of a job's arguments for a message.
func typeName(args any) string {
	t := reflect.TypeOf(args)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.String()
}

// programVersion returns the version of the running program from its build information: "name
// version (commit), go1.26".
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown version"
	}
	path, version := info.Main.Path, info.Main.Version
	if path == "" {
		path = info.Path
	}
	if version == "" || version == "(devel)" {
		version = "development version"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			version += " (" + s.Value[:min(len(s.Value), 12)] + ")"
		}
	}
	return fmt.Sprintf("%s %s, %s", path, version, info.GoVersion)
}

// options returns the options of a run for the flags.
func (c *commandLine) options() []Option {
	exists := Fail
	if c.IfExists == "replace" {
		exists = Replace
	}
	return append(append(c.clusterFlags.options(), c.checkpointFlags.options()...),
		c.Parallelism.option(), Shards(c.Shards), Seed(c.Seed), IfExists(exists),
		BatchRows(c.BatchRows), MemoryBudget(int64(c.Memory)), SpillDir(c.SpillDir),
	)
}
