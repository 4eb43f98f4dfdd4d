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

// Cmd is an exec.Cmd that ends with this process.
type Cmd struct {
	*exec.Cmd
	ended chan struct{} // closed once the program has ended
	left  chan struct{} // closed once its thread was let go
	once  sync.Once
}

// Command is exec.Command.
func Command(name string, args ...string) *Cmd {
	return &Cmd{Cmd: exec.Command(name, args...)}
}

// CommandContext is exec.CommandContext.
func CommandContext(ctx context.Context, name string, args ...string) *Cmd {
	return &Cmd{Cmd: exec.CommandContext(ctx, name, args...)}
}

// Start is Start of exec.Cmd. Wait must follow.
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

// endAtOnce makes a program that is built with the race detector end at once. Otherwise the
// program waits at its end for a second, for races in threads that still run. Tests of many short
// programs would spend most of their time on that.
func (c *Cmd) endAtOnce() {
	env := c.Environ()
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "GORACE=") }) {
		c.Env = append(env, "GORACE=atexit_sleep_ms=0")
	}
}

// hold starts the program and keeps the thread that did so until the program has
// ended. Linux sends the signal of a parent's death when the thread that started
// the child ends, and Go ends threads whose goroutine was locked to them.
func (c *Cmd) hold(started chan<- error) {
	defer close(c.left)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started <- c.Cmd.Start()
	<-c.ended
}

// leave lets the thread go.
func (c *Cmd) leave() {
	close(c.ended)
	<-c.left
}

// Wait is Wait of exec.Cmd.
func (c *Cmd) Wait() error {
	err := c.Cmd.Wait()
	c.once.Do(c.leave)
	return err
}

// Run is Run of exec.Cmd.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output is Output of exec.Cmd, except that its error does not have the standard error.
func (c *Cmd) Output() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := c.Run()
	return out.Bytes(), err
}

// CombinedOutput is CombinedOutput of exec.Cmd.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}
