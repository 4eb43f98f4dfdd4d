package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/cmd/internal/settings"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// DevCommand runs a whole cluster on this machine: the job manager in this process, and the
// task managers as child processes.
type DevCommand struct {
	ConfigFlag
	TaskManagers int           `name:"taskmanagers" setting:"dev.taskmanagers" default:"1" placeholder:"N" help:"Task managers (default: ${default})."`
	Slots        int           `setting:"dev.slots" default:"2" placeholder:"N" help:"Slots of each (default: ${default})."`
	Memory       settings.Size `setting:"dev.memory" placeholder:"SIZE" help:"Memory of each for workers (default: an equal share of three quarters of the machine's)."`
	Listen       string        `setting:"jobmanager.listen" default:"127.0.0.1:6123" placeholder:"HOST:PORT" help:"Where clients connect (default: ${default})."`
	HTTP         string        `name:"http" setting:"jobmanager.http" default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Where REST and metrics are served (default: ${default}); \"off\" for nowhere."`
	Placement    string        `setting:"jobmanager.placement" enum:"pack,spread" default:"spread" placeholder:"POLICY" help:"pack jobs onto few task managers, or spread them (default: ${default})."`
	Dir          string        `setting:"dev.dir" placeholder:"DIR" help:"Directory for all files of the cluster (default: one that is removed at the end)."`
	tokenFlag
	logFlags
}

// Run starts the cluster, prints its addresses, and stops it when ctx is done.
func (c *DevCommand) Run(ctx context.Context, s *Streams, file *settings.Settings, parser *kong.Kong) error {
	lines := &lineWriter{out: s.Err}
	log := c.logger("jobmanager", lines)
	return c.last(log, c.serve(ctx, s, file.Show(parser), lines, log))
}

func (c *DevCommand) serve(ctx context.Context, s *Streams, shown []settings.Shown, lines *lineWriter, log hclog.Logger) error {
	if c.TaskManagers < 1 || c.TaskManagers > 1000 || c.Slots < 1 {
		return UsageError{fmt.Errorf("%d task managers of %d slots: want at least one of both, and at most 1000 task managers", c.TaskManagers, c.Slots)}
	}
	if err := security.CheckListen(c.Listen, false, false); err != nil {
		return UsageError{fmt.Errorf("dev is for this machine alone: %w", err)}
	}
	dir := c.Dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "superstep-dev-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	command := JobManagerCommand{
		Listen: c.Listen, HTTP: c.HTTP, Placement: c.Placement, Dir: filepath.Join(dir, "jobmanager"),
		MaxArtifact: 1 << 30, MaxResult: 1 << 30, KeepJobs: 1000, Detection: core.DefaultDetection, Lease: 16 * time.Second,
		tokenFlag: c.tokenFlag, logFlags: c.logFlags,
	}
	// The job manager does not end with ctx: m.Close below ends it after the task managers have
	// ended. Task managers that outlive their job manager would try to reconnect.
	m, err := command.start(context.WithoutCancel(ctx), shown, log)
	if err != nil {
		return err
	}
	processes := c.start(dir, m.Address(), lines, log)
	err = c.awaitRegistration(ctx, m, processes)
	if err == nil {
		c.announce(s, m, log)
		select {
		case <-ctx.Done():
		case <-m.Done():
		case <-processes.empty:
			err = errors.New("all task managers have ended")
		}
	}
	processes.stop()
	return errors.Join(err, m.Close())
}

// announce prints or logs that the cluster is ready, and how to use the cluster.
func (c *DevCommand) announce(s *Streams, m *manager, log hclog.Logger) {
	if c.LogJSON {
		log.Info("cluster is up", "address", m.Address(), "task managers", c.TaskManagers, "slots", c.TaskManagers*c.Slots)
		return
	}
	fmt.Fprintf(s.Out, "cluster at %s: %d task managers, %d slots\n", m.Address(), c.TaskManagers, c.TaskManagers*c.Slots)
	m.announceHTTP(s)
	fmt.Fprintf(s.Out, "\nIn another terminal:\n  go run ./examples/kmeans --cluster %s --parallelism %d\n\nCtrl-C ends the cluster.\n", m.Address(), c.TaskManagers*c.Slots)
}

// awaitRegistration waits until all task managers have registered. It waits at most 30 seconds.
func (c *DevCommand) awaitRegistration(ctx context.Context, m *manager, processes *taskManagers) error {
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		registered := m.Stats().Slots / c.Slots
		if registered >= c.TaskManagers {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-processes.empty:
			return errors.New("the task managers have ended: their messages are above")
		case <-late.C:
			return fmt.Errorf("%d of %d task managers have registered after 30 s: the messages of the others are above", registered, c.TaskManagers)
		case <-look.C:
		}
	}
}

// taskManagers has the processes of the task managers.
type taskManagers struct {
	processes []*exec.Cmd
	empty     chan struct{} // closed when all processes have ended
	alive     sync.WaitGroup
}

// start starts the task managers. If a task manager cannot be started, start prints the error
// and still starts the other task managers.
func (c *DevCommand) start(dir, address string, lines *lineWriter, log hclog.Logger) *taskManagers {
	w := &taskManagers{empty: make(chan struct{})}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	for i := range c.TaskManagers {
		name := fmt.Sprintf("taskmanager-%d", i+1)
		args := []string{"taskmanager", "--jobmanager", address, "--name", name, "--slots", strconv.Itoa(c.Slots),
			"--dir", filepath.Join(dir, name), "--near", filepath.Join(dir, "jobmanager", "artifacts"), "--log-level", c.LogLevel,
			// The jobs have nowhere else to go on, whatever the settings of task managers are.
			"--drain-within", "0s", "--preemption-notice="}
		if c.TokenFile != "" {
			args = append(args, "--token-file", c.TokenFile)
		}
		if memory := c.memoryEach(); memory > 0 {
			args = append(args, "--memory", strconv.FormatInt(memory, 10))
		}
		if c.LogJSON {
			args = append(args, "--log-json")
		}
		cmd := exec.Command(self, args...)
		own := lines.prefixed(fmt.Sprintf("[%s] ", name))
		if c.LogJSON {
			own = lines.asJSON(log.ResetNamed(name))
		}
		cmd.Stdout, cmd.Stderr = own, own
		cmd.SysProcAttr = childAttributes()
		if err := cmd.Start(); err != nil {
			fmt.Fprintf(own, "cannot be started: %v\n", err)
			continue
		}
		w.processes = append(w.processes, cmd)
		w.alive.Go(func() {
			if err := cmd.Wait(); err != nil {
				fmt.Fprintf(own, "ended: %v\n", err)
			}
		})
	}
	go func() {
		w.alive.Wait()
		close(w.empty)
	}()
	return w
}

// memoryEach returns the memory of each task manager in bytes, or 0 if it is unknown.
func (c *DevCommand) memoryEach() int64 {
	if c.Memory > 0 {
		return int64(c.Memory)
	}
	return machineMemory() / 4 * 3 / int64(c.TaskManagers)
}

// stop sends SIGTERM to the task managers, and kills the task managers that have not ended
// after 5 seconds.
func (w *taskManagers) stop() {
	for _, p := range w.processes {
		_ = p.Process.Signal(syscall.SIGTERM)
	}
	patience := time.NewTimer(5 * time.Second)
	defer patience.Stop()
	select {
	case <-w.empty:
		return
	case <-patience.C:
	}
	for _, p := range w.processes {
		_ = p.Process.Kill()
	}
	<-w.empty
}

// lineWriter serializes writes of several goroutines to out. Each write must consist of whole
// lines.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write writes p to the underlying writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// prefixed returns a writer that puts a prefix before each line. Only one goroutine may use it
// at a time.
func (w *lineWriter) prefixed(prefix string) io.Writer {
	return &prefixWriter{pass: func(line string) error {
		_, err := fmt.Fprintf(w, "%s%s\n", prefix, terminalText(line))
		return err
	}}
}

// asJSON returns a writer that writes lines of JSON unchanged, and logs all other lines, such as
// the stack of a panic, as errors to log. Only one goroutine may use it at a time.
func (w *lineWriter) asJSON(log hclog.Logger) io.Writer {
	return &prefixWriter{pass: func(line string) error {
		if !json.Valid([]byte(line)) {
			log.Error(line)
			return nil
		}
		_, err := io.WriteString(w, line+"\n")
		return err
	}}
}

// maxLine is the number of bytes at which prefixWriter splits an unfinished line.
const maxLine = 16 << 10

type prefixWriter struct {
	pass func(line string) error
	part []byte
}

// Write buffers p, and calls pass for each complete line in the buffer.
func (w *prefixWriter) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		n, line, _ := bufio.ScanLines(w.part, false)
		if n == 0 && len(w.part) > maxLine {
			n, line = maxLine, w.part[:maxLine]
		}
		if n == 0 {
			return len(p), nil
		}
		if err := w.pass(string(line)); err != nil {
			return 0, err
		}
		w.part = w.part[:copy(w.part, w.part[n:])]
	}
}
