package engine

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// executable is the program file to upload.
type executable struct {
	path     string
	name     string // name that is shown to people
	platform wire.Platform
	build    string // version of the build
	aside    string // directory that was made for the file, or ""
}

// remove deletes the directory that was made for the file, if any.
func (e *executable) remove() {
	if e.aside != "" {
		_ = os.RemoveAll(e.aside) // if this fails, files stay in the system's temporary directory
	}
}

// executable finds or builds an executable that the cluster can run: the file that the options
// name; this program, if a task manager has its platform; or else a build for the platform of
// the task managers.
func (r *clusterRun) executable(ctx context.Context) (*executable, error) {
	platforms := r.client.Cluster().Platforms
	if path := r.c.cluster.workerBinary; path != "" {
		return namedBinary(path, platforms)
	}
	self, err := programs.Self()
	if err != nil {
		return nil, err
	}
	// Without task managers no platform is known yet. It is probably the platform of this
	// machine; the job manager checks it later.
	if len(platforms) == 0 || slices.Contains(platforms, self.Platform) {
		return &executable{path: self.Path, name: self.Name, platform: self.Platform, build: wire.Build()}, nil
	}
	info, _ := debug.ReadBuildInfo()
	b := crossBuild{from: self.Platform, to: platforms[0], goTool: goTool}
	if info != nil {
		b.pkg = info.Path
		b.tags = setting(info, "-tags")
	}
	return b.build(ctx, r.confirmBuild())
}

// confirmBuild returns a function that asks the user through the hook confirm, or nil if nobody
// can answer. After the answer yes, signals cancel the run instead of ending the process, as the
// files of a build must be removed.
func (r *clusterRun) confirmBuild() func(question string) bool {
	hooks := &r.c.cluster.hooks
	if hooks.confirm == nil {
		return nil
	}
	return func(question string) bool {
		yes := hooks.confirm(question)
		if yes {
			hooks.begin()
		}
		return yes
	}
}

// namedBinary checks an executable that the user has built for the cluster.
func namedBinary(path string, platforms []wire.Platform) (*executable, error) {
	info, err := buildinfo.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("--worker-binary: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--worker-binary: %s is not a Go program: %w", path, err)
	}
	e := &executable{path: path, name: path, platform: wire.Platform{OS: setting(info, "GOOS"), Arch: setting(info, "GOARCH")}}
	e.build = wire.BuildOf(info, e.platform)
	if self, ok := debug.ReadBuildInfo(); ok && self.Path != "" && info.Path != "" && info.Path != self.Path {
		return nil, fmt.Errorf("--worker-binary: %s is a build of %s, but this program is %s", path, info.Path, self.Path)
	}
	if len(platforms) > 0 && !slices.Contains(platforms, e.platform) {
		return nil, fmt.Errorf("--worker-binary: %s is for %s, but the cluster's task managers are %s", path, e.platform, wire.PlatformNames(platforms))
	}
	return e, nil
}

// setting returns a setting of a build, or "" if it is not recorded.
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// crossBuild builds this program for another platform.
type crossBuild struct {
	pkg      string // path of the main package
	tags     string // build tags
	from, to wire.Platform
	// goTool runs the go command with additional environment and returns what it wrote.
	goTool func(ctx context.Context, env []string, args ...string) (string, error)
}

// command returns the shell command with which a user can build the program.
func (b *crossBuild) command(output string) string {
	return fmt.Sprintf("%s go %s", strings.Join(b.env(), " "), strings.Join(b.args(output), " "))
}

func (b *crossBuild) env() []string {
	return []string{"GOOS=" + b.to.OS, "GOARCH=" + b.to.Arch, "CGO_ENABLED=0"}
}

func (b *crossBuild) args(output string) []string {
	args := []string{"build", "-o", output}
	if b.tags != "" {
		args = append(args, "-tags="+b.tags)
	}
	return append(args, b.packageName())
}

// packageName returns the path of the main package, or a placeholder for a program that was
// built from single files, which has no path.
func (b *crossBuild) packageName() string {
	if b.pkg == "" || b.pkg == "command-line-arguments" {
		return "PACKAGE"
	}
	return b.pkg
}

// build asks the user and then builds the program. If the answer is no, if nobody can answer or if
// the source is missing, the error says how to build the program by hand.
func (b *crossBuild) build(ctx context.Context, confirm func(question string) bool) (*executable, error) {
	byHand := fmt.Errorf("the cluster's task managers are %s and this program is %s: build it for them and name the file,\n  %s\n  … --worker-binary worker", b.to, b.from, b.command("worker"))
	if confirm == nil || b.packageName() != b.pkg {
		return nil, byHand
	}
	// Without the source of the package the build would fail, so the user is not asked.
	if _, err := b.goTool(ctx, b.env(), "list", "-f", "{{.Dir}}", b.pkg); err != nil {
		return nil, byHand
	}
	if !confirm(fmt.Sprintf("The cluster's task managers are %s and this program is %s. Build it for them now (go build %s)?", b.to, b.from, b.pkg)) {
		return nil, byHand
	}
	aside, err := os.MkdirTemp("", "superstep-build-")
	if err != nil {
		return nil, err
	}
	e := &executable{path: filepath.Join(aside, "worker"), platform: b.to, aside: aside}
	e.name = e.path
	if text, err := b.goTool(ctx, b.env(), b.args(e.path)...); err != nil {
		e.remove()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("build %s for %s: %w\n%s", b.pkg, b.to, err, strings.TrimSpace(text))
	}
	if info, err := buildinfo.ReadFile(e.path); err == nil {
		e.build = wire.BuildOf(info, e.platform)
	}
	return e, nil
}

// goToolTimeout is how long the go command may take to exit after an interrupt.
const goToolTimeout = 5 * time.Second

// goTool runs the go command.
func goTool(ctx context.Context, env []string, args ...string) (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("there is no go command here")
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	// After an interrupt the go command ends its compilers and removes its files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = goToolTimeout
	out, err := cmd.CombinedOutput()
	return string(out), err
}
