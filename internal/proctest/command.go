package proctest

import (
	"bytes"
	"context"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Cmd is an exec.Cmd whose program is killed when this process ends.
type Cmd struct {
	*exec.Cmd
	ended chan struct{} // closed once the program has ended
	left  chan struct{} // closed once the goroutine of hold has ended
	once  sync.Once
}

// Command does what exec.Command does.
func Command(name string, args ...string) *Cmd {
	return &Cmd{Cmd: exec.Command(name, args...)}
}

// CommandContext does what exec.CommandContext does.
func CommandContext(ctx context.Context, name string, args ...string) *Cmd {
	return &Cmd{Cmd: exec.CommandContext(ctx, name, args...)}
}

// Start does what Start of exec.Cmd does. The caller must call Wait afterwards.
func (c *Cmd) Start() error {
	tie(c.Cmd)
	c.endAtOnce()
	started := make(chan error)
	c.ended, c.left = make(chan struct{}), make(chan struct{})
	go c.hold(started)
	if err := <-started; err != nil {
		c.leave()
		return err
	}
	return nil
}

// endAtOnce makes a program that is built with the race detector exit without delay. By default,
// such a program sleeps for a second before it exits, to detect races in threads that still run
// (atexit_sleep_ms). Tests that start many short programs would spend most of their time on that.
func (c *Cmd) endAtOnce() {
	env := c.Environ()
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "GORACE=") }) {
		c.Env = append(env, "GORACE=atexit_sleep_ms=0")
	}
}

// hold starts the program, and keeps the thread that started it until the program has ended. Linux
// sends the parent-death signal already when that thread ends, and Go ends a thread if a goroutine
// that is locked to it exits.
func (c *Cmd) hold(started chan<- error) {
	defer close(c.left)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started <- c.Cmd.Start()
	<-c.ended
}

// leave ends the goroutine of hold, which keeps the thread, and waits for its end.
func (c *Cmd) leave() {
	close(c.ended)
	<-c.left
}

// Wait does what Wait of exec.Cmd does.
func (c *Cmd) Wait() error {
	err := c.Cmd.Wait()
	c.once.Do(c.leave)
	return err
}

// Run does what Run of exec.Cmd does.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output does what Output of exec.Cmd does, except that its error does not contain the program's
// standard error.
func (c *Cmd) Output() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := c.Run()
	return out.Bytes(), err
}

// CombinedOutput does what CombinedOutput of exec.Cmd does.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}
