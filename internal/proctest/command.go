package proctest

import (
	"bytes"
	"context"
	"os/exec"
	"runtime"
	"sync"
)

// Cmd is an exec.Cmd that ends with this process.
type Cmd struct{ *exec.Cmd }

// Command is exec.Command.
func Command(name string, args ...string) *Cmd {
	return &Cmd{exec.Command(name, args...)}
}

// CommandContext is exec.CommandContext.
func CommandContext(ctx context.Context, name string, args ...string) *Cmd {
	return &Cmd{exec.CommandContext(ctx, name, args...)}
}

// Start is Start of exec.Cmd.
func (c *Cmd) Start() error {
	tie(c.Cmd)
	var err error
	onStarter(func() { err = c.Cmd.Start() })
	return err
}

// Run is Run of exec.Cmd.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output is Output of exec.Cmd, without what it notes of standard error.
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

// starter runs functions on a thread that lasts as long as the process. Linux
// sends the signal of a parent's death when the thread that started the child
// ends, and Go ends threads whose goroutine was locked to them.
var starter = sync.OnceValue(func() chan<- func() {
	steps := make(chan func())
	go func() {
		runtime.LockOSThread()
		for step := range steps {
			step()
		}
	}()
	return steps
})

// onStarter runs f on the starter's thread.
func onStarter(f func()) {
	done := make(chan struct{})
	starter() <- func() {
		defer close(done)
		f()
	}
	<-done
}
