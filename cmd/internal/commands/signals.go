package commands

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// secondSignal returns a channel that is closed when this process has got two of the signals SIGINT and
// SIGTERM, and a function that ends the waiting for them. The first signal is for others to act upon.
// A third signal ends the process.
func secondSignal() (second <-chan struct{}, stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	came, quit := make(chan struct{}), make(chan struct{})
	var task sync.WaitGroup
	task.Go(func() {
		defer signal.Stop(signals)
		for range 2 {
			select {
			case <-signals:
			case <-quit:
				return
			}
		}
		close(came)
	})
	return came, func() {
		close(quit)
		task.Wait()
	}
}
