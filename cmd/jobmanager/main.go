// Command jobmanager is "superstep jobmanager" as a binary of its own.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/superstep-ml/superstep/cmd/internal/builtin"
	"github.com/superstep-ml/superstep/cmd/internal/commands"
	"github.com/superstep-ml/superstep/engine"
)

func main() {
	engine.WorkerMain(builtin.Jobs()...) // jobs that name no executable are run by this one, which task managers fetch
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(commands.Main(ctx, "jobmanager", "Superstep's jobmanager.", new(commands.JobManagerCommand), os.Args[1:], commands.Standard()))
}
