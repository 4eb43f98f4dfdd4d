package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/superstep-ml/superstep/cmd/internal/settings"
	"github.com/superstep-ml/superstep/internal/client"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager"
	"github.com/superstep-ml/superstep/jobmanager/core"
	"github.com/superstep-ml/superstep/jobmanager/rest"
	"github.com/superstep-ml/superstep/taskmanager"
)

// logFlags are the flags for the level and the format of the log.
type logFlags struct {
	LogLevel string `setting:"log.level" enum:"trace,debug,info,warn,error,off" default:"info" placeholder:"LEVEL" help:"Lowest level that is logged on standard error: trace, debug, info, warn, error or off (default: ${default})."`
	LogJSON  bool   `name:"log-json" setting:"log.json" help:"Log as JSON, one object per line."`
}

func (f *logFlags) logger(name string, w io.Writer) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: name, Level: hclog.LevelFromString(f.LogLevel), Output: w, JSONFormat: f.LogJSON})
}

// last handles err, the error that ended a manager. If --log-json is set, all output must be
// JSON, so last logs err and returns an ExitError, and err is not also printed as text.
// Otherwise it returns err.
func (f *logFlags) last(log hclog.Logger, err error) error {
	if err == nil || !f.LogJSON || !log.IsError() {
		return err
	}
	log.Error("ended", "error", err.Error())
	if errors.As(err, new(UsageError)) {
		return ExitError(exitUsage)
	}
	return ExitError(exitFailed)
}

// JobManagerCommand runs a job manager.
type JobManagerCommand struct {
	ConfigFlag
	Listen      string        `setting:"jobmanager.listen" default:"127.0.0.1:6123" placeholder:"HOST:PORT" help:"Where task managers and clients connect (default: ${default}). Anything but this machine needs TLS, or --insecure."`
	HTTP        string        `name:"http" setting:"jobmanager.http" default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Where REST and metrics are served (default: ${default}); \"off\" for nowhere."`
	Probes      string        `setting:"jobmanager.probes" default:"off" placeholder:"HOST:PORT" help:"Another address where only /healthz and /readyz are served, without TLS and without a token, for a kubelet (default: ${default})."`
	AllowHost   []string      `setting:"jobmanager.allow-hosts" placeholder:"HOST" help:"Further names by which browsers may reach the HTTP port."`
	Dir         string        `setting:"jobmanager.dir" default:"${state}/jobmanager" placeholder:"DIR" help:"Where artifacts, results and history are kept (default: ${default})."`
	MaxArtifact settings.Size `setting:"jobmanager.max-artifact" default:"1GiB" placeholder:"SIZE" help:"Largest executable that may be uploaded (default: ${default})."`
	Cache       settings.Size `name:"artifact-cache" setting:"jobmanager.artifact-cache" default:"8GiB" placeholder:"SIZE" help:"How much all kept executables may take (default: ${default})."`
	NoUploads   bool          `setting:"jobmanager.no-uploads" help:"Take no executables: built-in jobs only."`
	MaxResult   settings.Size `setting:"jobmanager.max-result" default:"1GiB" placeholder:"SIZE" help:"How much the collected rows of a job may take (default: ${default})."`
	KeepBytes   settings.Size `setting:"jobmanager.keep-bytes" default:"16GiB" placeholder:"SIZE" help:"How much the results and logs of ended jobs may take; the oldest go first (default: ${default})."`
	MinFree     settings.Size `setting:"jobmanager.min-free" default:"64MiB" placeholder:"SIZE" help:"Disk space below which no jobs are taken, until there is a quarter more (default: ${default}); 0 for any."`
	KeepJobs    int           `setting:"jobmanager.keep-jobs" default:"1000" placeholder:"N" help:"How many ended jobs are remembered (default: ${default})."`
	Placement   string        `setting:"jobmanager.placement" enum:"pack,spread" default:"spread" placeholder:"POLICY" help:"pack jobs onto few task managers, or spread them (default: ${default})."`
	Detection   time.Duration `setting:"jobmanager.detection" default:"1.5s" placeholder:"TIME" help:"How long a task manager or a worker may be silent before it counts as lost (default: ${default})."`
	Lease       time.Duration `setting:"jobmanager.lease" default:"16s" placeholder:"TIME" help:"How long task managers keep their workers running without a message from here, and so how long this process may be away (default: ${default})."`
	Settle      time.Duration `setting:"jobmanager.settle" default:"5s" placeholder:"TIME" help:"How long slots and waiting jobs must not have changed before elastic jobs grow or shrink (default: ${default})."`
	ScaleEvery  time.Duration `setting:"jobmanager.scale-every" default:"30s" placeholder:"TIME" help:"How long an elastic job runs at least before it gets more slots (default: ${default})."`
	Ageing      time.Duration `setting:"jobmanager.ageing" default:"10m" placeholder:"TIME" help:"How much earlier a job must have been submitted to get slots before a job whose priority is higher by one (default: ${default})."`
	Insecure    bool          `setting:"insecure" help:"Allow other machines to connect without TLS. The token, programs and data can then be read and changed on the way."`
	tokenFlag
	tlsFlags
	logFlags
}

// Run runs the job manager until ctx is done.
func (c *JobManagerCommand) Run(ctx context.Context, s *Streams, file *settings.Settings, parser *kong.Kong) error {
	log := c.logger("jobmanager", s.Err)
	return c.last(log, c.serve(ctx, s, file.Show(parser), log))
}

func (c *JobManagerCommand) serve(ctx context.Context, s *Streams, shown []settings.Shown, log hclog.Logger) error {
	c.warn(log, s, "jobmanager", c.Insecure, "anyone on the network can read the token and run programs here")
	m, err := c.start(ctx, shown, log)
	if err != nil {
		return err
	}
	if !c.LogJSON { // with --log-json, the log has the addresses
		fmt.Fprintf(s.Out, "job manager at %s\n", m.Address())
		m.announceHTTP(s)
	}
	select {
	case <-ctx.Done():
	case <-m.Done():
	}
	return m.Close()
}

// warn prints or logs a warning if insecure is set, which is the value of --insecure. what is
// the part of the warning that says what others on the network can do.
func (f *logFlags) warn(log hclog.Logger, s *Streams, name string, insecure bool, what string) {
	switch {
	case insecure && f.LogJSON:
		log.Warn("--insecure: " + what)
	case insecure:
		fmt.Fprintf(s.Err, "%s: WARNING: --insecure: %s\n", name, what)
	}
}

// manager is a job manager with its HTTP server.
type manager struct {
	*jobmanager.Manager
	http   *rest.Server // nil if off
	probes *rest.Probes // nil if off
}

// start starts the job manager. It also starts the HTTP server and the server for probes,
// unless they are off. shown has the settings that the HTTP server shows to clients.
func (c *JobManagerCommand) start(ctx context.Context, shown []settings.Shown, logger hclog.Logger) (*manager, error) {
	policy, err := core.ParsePolicy(c.Placement)
	if err != nil {
		return nil, UsageError{err}
	}
	m, err := jobmanager.New(ctx, jobmanager.Config{
		Listen: c.Listen, Dir: c.Dir, TokenFile: c.TokenFile, TLS: c.files(), Insecure: c.Insecure,
		MaxArtifact: int64(c.MaxArtifact), ArtifactCache: int64(c.Cache), NoUploads: c.NoUploads, MaxResult: int64(c.MaxResult), KeepJobs: c.KeepJobs, KeepBytes: int64(c.KeepBytes), MinFree: int64(c.MinFree),
		Policy: policy, Detection: c.Detection, Lease: c.Lease, Settle: c.Settle, ScaleInterval: c.ScaleEvery, Ageing: c.Ageing, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	all := &manager{Manager: m}
	if c.Probes != "" && c.Probes != "off" {
		if all.probes, err = rest.NewProbes(c.Probes, m, logger.Named("probes")); err != nil {
			return nil, errors.Join(err, all.Close())
		}
	}
	if c.HTTP == "off" {
		return all, nil
	}
	all.http, err = rest.New(rest.Config{
		Listen: c.HTTP, Manager: m, Token: m.Token(), TLS: c.files(), Insecure: c.Insecure, AllowHosts: c.AllowHost, Logger: logger.Named("http"),
		Settings: func() any { return settingRows(shown) },
	})
	if err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return all, nil
}

// announceHTTP prints the URL of the HTTP server, unless the server is off.
func (m *manager) announceHTTP(s *Streams) {
	if m.http != nil {
		fmt.Fprintf(s.Out, "HTTP at %s\n", m.http.URL())
	}
}

// Close stops the HTTP servers and the job manager.
func (m *manager) Close() error {
	var err error
	if m.probes != nil {
		err = m.probes.Close()
	}
	if m.http != nil {
		err = errors.Join(err, m.http.Close())
	}
	return errors.Join(err, m.Manager.Close())
}

// TaskManagerCommand runs a task manager.
type TaskManagerCommand struct {
	ConfigFlag
	JobManager string        `name:"jobmanager" setting:"taskmanager.jobmanager" default:"localhost:6123" placeholder:"HOST:PORT" help:"The job manager (default: ${default})."`
	Name       string        `setting:"taskmanager.name" placeholder:"NAME" help:"Name in lists and logs (default: the host and the start of its identity)."`
	Slots      int           `setting:"taskmanager.slots" placeholder:"N" help:"Slots offered (default: one per processor)."`
	Memory     settings.Size `setting:"taskmanager.memory" placeholder:"SIZE" help:"Memory for workers, such as 16GiB (default: a quarter of the machine's)."`
	Dir        string        `setting:"taskmanager.dir" default:"${state}/taskmanager" placeholder:"DIR" help:"Where executables and temporary files are kept; one task manager per directory (default: ${default})."`
	Cache      settings.Size `setting:"taskmanager.cache" default:"4GiB" placeholder:"SIZE" help:"How much kept executables may take (default: ${default})."`
	MinFree    settings.Size `setting:"taskmanager.min-free" default:"256MiB" placeholder:"SIZE" help:"Disk space below which no work is taken, until there is a quarter more (default: ${default}); 0 for any."`
	Near       string        `setting:"taskmanager.near" placeholder:"DIR" help:"Where the job manager keeps executables, if it is on this machine and of this user: they are linked instead of fetched."`
	Listen     string        `setting:"taskmanager.listen" default:"127.0.0.1" placeholder:"HOST" help:"Address at which workers accept connections of other workers (default: ${default}). Anything but this machine needs TLS, or --insecure."`
	Advertise  string        `setting:"taskmanager.advertise" placeholder:"HOST" help:"Name by which other machines reach that address (default: that of --listen)."`
	Ports      string        `name:"worker-ports" setting:"taskmanager.worker-ports" placeholder:"FIRST-LAST" help:"Ports of that address for workers, such as 6200-6299: one for each job that has slots here at the same time (default: any free one)."`
	PassEnv    []string      `setting:"taskmanager.pass-env" placeholder:"NAME" help:"Names of variables of the environment that workers get in addition to harmless ones such as PATH, for example AWS_ACCESS_KEY_ID. All jobs can read them."`
	Drain      time.Duration `name:"drain-within" setting:"taskmanager.drain-within" default:"30s" placeholder:"TIME" help:"How long to stay after SIGTERM, Ctrl-C or a preemption notice, so that jobs can go on elsewhere (default: ${default}); 0s to leave at once, as a second signal does."`
	Notice     string        `name:"preemption-notice" setting:"taskmanager.preemption-notice" placeholder:"COMMAND" help:"Shell command that runs until this machine is about to be taken away, and then ends with exit code 0."`
	Insecure   bool          `setting:"insecure" help:"Allow other machines to connect without TLS."`
	tokenFlag
	tlsFlags
	logFlags
}

// Run runs the task manager, which offers slots to the job manager, until ctx is done. Then it stays
// for the time of --drain-within while jobs go on elsewhere.
func (c *TaskManagerCommand) Run(ctx context.Context, s *Streams) error {
	closeFilesOnExec()
	log := c.logger("taskmanager", s.Err)
	if c.LogJSON && c.Name != "" { // several task managers may log to the same stream
		log = log.With("name", c.Name)
	}
	return c.last(log, c.offer(ctx, s, log))
}

func (c *TaskManagerCommand) offer(ctx context.Context, s *Streams, log hclog.Logger) error {
	c.warn(log, s, "taskmanager", c.Insecure, "anyone on the network can read the token, programs and data")
	secure := !c.files().IsZero()
	if err := security.CheckListen(net.JoinHostPort(c.Listen, "0"), secure, c.Insecure); err != nil {
		return UsageError{err}
	}
	if c.Drain < 0 {
		return UsageError{fmt.Errorf("--drain-within is %v: want a time, or 0s to leave at once", c.Drain)}
	}
	var ports wire.Ports
	var err error
	if c.Ports != "" { // checked first, since dialOptions may wait for the token
		if ports, err = wire.ParsePorts(c.Ports); err != nil {
			return UsageError{fmt.Errorf("--worker-ports: %w", err)}
		}
	}
	address, options, err := c.dialOptions(ctx, s, log)
	if err != nil {
		return err
	}
	if slots := cmp.Or(c.Slots, runtime.NumCPU()); ports.Count() > 0 && ports.Count() < slots {
		log.Warn("there are fewer ports than slots, and each slot may have a worker of another job: a worker that finds no free port fails its job", "ports", ports, "slots", slots)
	}
	for _, name := range c.PassEnv {
		if name == "" || strings.ContainsAny(name, "= ") {
			return UsageError{fmt.Errorf("--pass-env: %q is no name of a variable", name)}
		}
	}
	atOnce, stop := secondSignal()
	defer stop()
	cfg := taskmanager.Config{
		JobManager: address, DialOptions: options, Name: c.Name, Slots: c.Slots, Memory: int64(c.Memory),
		Dir: c.Dir, CacheLimit: int64(c.Cache), MinFree: int64(c.MinFree), Near: c.Near, Listen: c.Listen, Advertise: c.Advertise, Ports: ports,
		PassEnv: c.PassEnv, Logger: log, DrainWithin: c.Drain, AtOnce: atOnce, PreemptionNotice: c.Notice,
	}
	return taskmanager.Run(ctx, cfg)
}

// dialOptions returns the address of the job manager and the gRPC options for connections to it.
// It waits for the cluster's token if necessary.
func (c *TaskManagerCommand) dialOptions(ctx context.Context, s *Streams, log hclog.Logger) (address string, options []grpc.DialOption, err error) {
	address, port, err := client.ParseAddress(c.JobManager)
	if err != nil {
		return "", nil, UsageError{fmt.Errorf("--jobmanager: %w", err)}
	}
	token, err := c.awaitToken(ctx, s, log, port)
	if err != nil {
		return "", nil, err
	}
	config, err := c.files().Client()
	if err != nil {
		return "", nil, err
	}
	if local, err := security.IsLoopback(address); config == nil && (err != nil || !local && !c.Insecure) {
		return "", nil, UsageError{errors.Join(err, fmt.Errorf("the job manager at %s is on another machine, and without TLS anyone on the network can read the token: give --tls-ca, --tls-cert and --tls-key (superstep tls init makes them), or --insecure", address))}
	}
	return address, []grpc.DialOption{
		grpc.WithTransportCredentials(security.ClientCredentials(config)), grpc.WithPerRPCCredentials(security.TokenCredentials(token, config != nil)), grpc.WithNoProxy(),
	}, nil
}

// tokenWait is how long a task manager waits for the file with the token to be created.
const tokenWait = 10 * time.Second

// awaitToken reads the cluster's token. If there is no file with a token, it waits up to
// tokenWait for one: a job manager that was started at the same time may create the file soon.
func (c *TaskManagerCommand) awaitToken(ctx context.Context, s *Streams, log hclog.Logger, port int) (security.Token, error) {
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(tokenWait)
	defer late.Stop()
	for told := false; ; {
		token, err := security.FindToken(port)
		if c.TokenFile != "" {
			token, err = security.ReadToken(c.TokenFile)
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return token, err
		}
		if !told {
			told = true
			if c.LogJSON {
				log.Info("waiting for the token", "error", err.Error())
			} else {
				fmt.Fprintf(s.Err, "taskmanager: waiting for the token: %v\n", err)
			}
		}
		select {
		case <-look.C:
		case <-late.C:
			return token, err
		case <-ctx.Done():
			return token, err
		}
	}
}

// TLSCommand makes certificates.
type TLSCommand struct {
	Init tlsInit `cmd:"" help:"Make a certificate authority, and certificates for job managers, task managers and clients."`
}

type tlsInit struct {
	Dir     string   `arg:"" help:"Directory for the files, which is made if it does not exist."`
	Hosts   []string `name:"host" placeholder:"HOST" help:"Names and addresses by which the job manager is reached, beside localhost."`
	Replace bool     `help:"Replace existing files."`
}

// Run makes the files and prints command lines that use them.
func (c *tlsInit) Run(s *Streams) error {
	set, err := security.InitTLS(c.Dir, c.Hosts, c.Replace)
	if err != nil {
		return err
	}
	flags := func(f security.TLSFiles) string {
		return fmt.Sprintf("--tls-ca %s --tls-cert %s --tls-key %s", f.CA, f.Cert, f.Key)
	}
	fmt.Fprintf(s.Out, "certificates for %s, good until %s\n\n", strings.Join(set.Hosts, ", "), set.Expires.Format(time.DateOnly))
	fmt.Fprintf(s.Out, "superstep jobmanager --listen 0.0.0.0:6123 %s\n", flags(set.JobManager))
	fmt.Fprintf(s.Out, "superstep taskmanager --jobmanager HOST:6123 --listen 0.0.0.0 %s\n", flags(set.TaskManager))
	fmt.Fprintf(s.Out, "superstep list --cluster HOST:6123 %s\n\n", flags(set.Client))
	fmt.Fprintf(s.Out, "Keep %s off the machines: who has it can make certificates that the cluster trusts.\n", set.AuthorityKey)
	return nil
}
