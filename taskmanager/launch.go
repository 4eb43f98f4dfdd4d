package taskmanager

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// pipes has the task manager's ends of a worker's pipes. They are nil until the process is
// launched.
type pipes struct {
	to    *os.File // commands for the worker, which reads them from file descriptor 3
	from  *os.File // frames of the worker, which writes them to file descriptor 4
	words *os.File // standard output and error of the worker
}

// makePipes makes the pipes of a worker. It returns the task manager's ends and the worker's
// ends.
func makePipes() (ours pipes, its Launch, err error) {
	pipe := func(r, w **os.File) {
		if err == nil {
			*r, *w, err = os.Pipe()
		}
	}
	pipe(&its.Reads, &ours.to)
	pipe(&ours.from, &its.Writes)
	pipe(&ours.words, &its.Output)
	if err != nil {
		ours.close()
		its.close()
	}
	return ours, its, err
}

// close closes this process's copies of the worker's ends; the worker's process has its own
// copies.
func (l Launch) close() { closeAll(l.Reads, l.Writes, l.Output) }

// close closes the task manager's ends of the pipes. The goroutines that read and write the
// pipes then end.
func (p pipes) close() { closeAll(p.to, p.from, p.words) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close() // a pipe has no buffered data that could be lost, so the error does not matter
		}
	}
}

// boundDrain bounds the time for reading the rest of the output of a process that has ended.
func (p pipes) boundDrain() { setDeadline(p.words, time.Now().Add(drainTime)) }

// stopReading ends the reading of frames of a process that has ended.
func (p pipes) stopReading() { setDeadline(p.from, time.Now()) }

func setDeadline(f *os.File, at time.Time) {
	if f != nil {
		_ = f.SetReadDeadline(at) // cannot fail for a pipe
	}
}

// settle waits, for a bounded time, until the output that the process wrote before its last
// frame was read.
func (p pipes) settle() {
	for range 50 {
		if !readable(p.words) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// fetch starts to acquire the executable of the worker. The result is sent to w.got.
func (w *worker) fetch() {
	if w.runsOwnExecutable() {
		w.got <- gotArtifact{path: w.own.Path, release: func() {}, err: w.own.Check()}
		return
	}
	hash := w.deployment.Spec.Artifact
	w.tasks.Go(func() {
		var g gotArtifact
		g.path, g.release, g.err = w.artifacts.acquire(w.ctx, hash)
		w.got <- g
	})
}

// runsOwnExecutable reports whether the worker's executable is the task manager's own.
func (w *worker) runsOwnExecutable() bool { return w.deployment.Spec.Artifact == w.own.Hash }

// haveArtifact processes the result of acquiring the executable.
func (w *worker) haveArtifact(g gotArtifact) {
	if g.err != nil {
		w.step(unstarted, payload{failure: &wire.Failure{Kind: wire.ClusterFailure, Message: g.err.Error()}})
		return
	}
	w.release = g.release
	w.step(fetched, payload{path: g.path})
}

// launch starts the worker's process and the goroutines for its pipes, and sends the deployment
// to the process.
func (w *worker) launch(executable string) {
	if f := w.start(executable); f != nil {
		w.step(unstarted, payload{failure: f})
		return
	}
	w.log.Info("worker started", "pid", w.process.PID())
	w.delivery = newDeliverer(w.ref, w.client, w.out, w.Seed)
	w.broken = w.delivery.broken
	w.outEnd = make(chan struct{})
	ctx, outEnd, p, process := w.ctx, w.outEnd, w.pipes, w.process
	w.tasks.Go(func() { w.delivery.run(ctx) })
	w.tasks.Go(func() {
		w.out.readFrom(p.words)
		close(outEnd)
	})
	w.tasks.Go(func() {
		exit, err := process.Wait()
		w.exits <- ended{exit, err}
	})
	w.tasks.Go(func() { w.listen(p.from) })
	w.tasks.Go(func() { w.writeOrders(p.to) })
	d := w.deployment
	d.TaskManager, d.Listen, d.Advertise, d.Ports, d.WorkDir = w.Name, w.Listen, w.Advertise, w.Ports, w.path
	w.outgo <- &wire.ToWorker{Deployment: &d}
}

// start starts the process in a new directory. If that is not possible, start returns a failure
// that says why.
func (w *worker) start(executable string) *wire.Failure {
	ours := func(what string, err error) *wire.Failure {
		return &wire.Failure{Kind: wire.ClusterFailure, Message: fmt.Sprintf("%s: %v", what, err)}
	}
	d := &w.deployment
	if !runsHere(d.Spec) {
		return &wire.Failure{Kind: wire.MisuseFailure, Message: fmt.Sprintf("the executable is for %s, and the task manager runs on %s/%s: build it for that and give it with --worker-binary", d.Spec.Platform, runtime.GOOS, runtime.GOARCH)}
	}
	slots := d.Slots[d.Worker].Hi - d.Slots[d.Worker].Lo
	if d.Memory <= 0 {
		d.Memory = w.Memory / int64(w.Slots) * int64(slots)
	}
	var err error
	if w.path, err = w.dir.forWorker(w.ref); err != nil {
		return ours("make the worker's directory", err)
	}
	ends, spec, err := makePipes()
	if err != nil {
		return ours("make the worker's pipes", err)
	}
	defer spec.close()
	spec.Executable, spec.Name, spec.Dir = executable, executable, w.path
	if w.runsOwnExecutable() {
		spec.Name = w.own.Name
	}
	spec.Env = workerEnviron(w.Environ, w.PassEnv, slots, d.Memory)
	process, err := w.launcher.Launch(spec)
	if err != nil {
		ends.close()
		if !w.runsOwnExecutable() && unusable(err) {
			return &wire.Failure{Kind: wire.MisuseFailure, Message: fmt.Sprintf("the executable does not start: %v: %s", cause(err), notOurs)}
		}
		return ours("start the worker", err)
	}
	w.process, w.pipes = process, ends
	return nil
}

// runsHere reports whether the executable of spec is for the platform of this machine.
func runsHere(spec wire.JobSpec) bool {
	return spec.Platform == wire.Platform{} || spec.Platform == wire.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}
}

// unusable reports whether err means that the file itself cannot be executed. err is the error
// of starting an executable that exists and whose hash was checked.
func unusable(err error) bool {
	return errors.Is(err, syscall.ENOEXEC) || errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EINVAL)
}

// cause returns err without the path of the executable, because the path is of no use to users.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// listen reads the worker's frames and sends them to w.frames until EOF or an error.
func (w *worker) listen(from *os.File) {
	frames := wire.NewReader[wire.FromWorker](from)
	for {
		f, err := frames.Next()
		select {
		case w.frames <- frame{f, err}:
		case <-w.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// writeOrders sends messages to the worker. A worker that does not read blocks only this
// goroutine. writeOrders ignores errors that mean that the process has ended, because w.exits
// reports the end.
func (w *worker) writeOrders(to *os.File) {
	frames := wire.NewWriter[wire.ToWorker](to)
	for m := range w.outgo {
		err := frames.Write(m)
		if err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
			continue
		}
		select {
		case w.unsent <- fmt.Errorf("a message for the worker cannot be sent: %w", err):
		default:
		}
	}
}
