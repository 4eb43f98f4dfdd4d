package taskmanager

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// fetch starts to acquire the executable of the worker. The result is sent to w.got.
func (w *worker) fetch() {
	if w.runsOwnExecutable() {
		w.got <- gotArtifact{path: w.own.Path, release: func() {}, err: w.own.Check()}
		return
	}
	hash := w.deployment.Spec.Artifact
	w.work.Go(func() {
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
		w.step(core.Unstarted, payload{failure: &wire.Failure{Kind: wire.ClusterFailure, Message: g.err.Error()}})
		return
	}
	w.release = g.release
	w.step(core.Fetched, payload{path: g.path})
}

// launch starts the worker's process, and sends the deployment to it.
func (w *worker) launch(executable string) {
	f := w.prepare()
	if f == nil {
		f = w.start(executable)
	}
	if f != nil {
		w.step(core.Unstarted, payload{failure: f})
		return
	}
	w.log.Info("worker started", "pid", w.process.PID())
	w.startDeliveries()
	w.sendDeployment()
}

// redeploy sends the deployment to the worker's process, which an earlier attempt has kept.
func (w *worker) redeploy() {
	w.startDeliveries()
	if f := w.prepare(); f != nil {
		w.step(core.Unstarted, payload{failure: f})
		return
	}
	w.log.Info("worker goes on in the process of an earlier attempt", "pid", w.process.PID())
	w.sendDeployment()
}

// startDeliveries starts to deliver what the worker's process sends.
func (w *worker) startDeliveries() {
	w.delivery = newDeliverer(w.ref, w.client, w.out, w.Seed)
	w.broken = w.delivery.broken
	ctx := w.ctx
	w.work.Go(func() { w.delivery.run(ctx) })
}

// sendDeployment sends the deployment to the worker's process.
func (w *worker) sendDeployment() {
	d := w.deployment
	d.TaskManager, d.Listen, d.Advertise, d.Ports, d.WorkDir, d.StateDir = w.Name, w.Listen, w.Advertise, w.Ports, w.path, w.stateDir()
	w.outgo <- &wire.ToWorker{Deployment: &d}
}

// prepare makes the worker's directory and completes its memory budget. If the worker cannot run here,
// prepare returns a failure that says why.
func (w *worker) prepare() *wire.Failure {
	d := &w.deployment
	if !runsHere(d.Spec) {
		return &wire.Failure{Kind: wire.MisuseFailure, Message: fmt.Sprintf("the executable is for %s, and the task manager runs on %s/%s: build it for that and give it with --worker-binary", d.Spec.Platform, runtime.GOOS, runtime.GOARCH)}
	}
	if d.Memory <= 0 {
		d.Memory = w.Memory / int64(w.Slots) * int64(w.slots())
	}
	var err error
	if w.path, err = w.dir.forWorker(w.ref); err != nil {
		return unable("make the worker's directory", err)
	}
	if d.RowsDir = ""; d.Keep && d.Mode == wire.RunMode {
		if d.RowsDir, err = w.rows.use(d.Job); err != nil {
			w.log.Warn("rows in files will not outlive the worker", "error", err)
		}
	}
	return nil
}

// unable returns the failure that the task manager could not do something because of err.
func unable(what string, err error) *wire.Failure {
	return &wire.Failure{Kind: wire.ClusterFailure, Message: fmt.Sprintf("%s: %v", what, err)}
}

// start starts the process, with its child, in the worker's directory. If that is not possible, start
// returns a failure that says why.
func (w *worker) start(executable string) *wire.Failure {
	ends, spec, err := makePipes()
	if err != nil {
		return unable("make the worker's pipes", err)
	}
	defer spec.close()
	spec.Executable, spec.Name, spec.Dir = executable, executable, w.path
	if w.runsOwnExecutable() {
		spec.Name = w.own.Name
	}
	spec.Env = workerEnviron(w.Environ, w.PassEnv, max(1, w.slots()), w.deployment.Memory)
	process, err := w.launcher.Launch(spec)
	if err != nil {
		ends.close()
		if !w.runsOwnExecutable() && unusable(err) {
			return &wire.Failure{Kind: wire.MisuseFailure, Message: fmt.Sprintf("the executable does not start: %v: %s", cause(err), notOurs)}
		}
		return unable("start the worker", err)
	}
	w.child = newChild(process, ends, w.release)
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
