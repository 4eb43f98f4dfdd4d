// Command jobmanager runs a job manager, as the command "superstep jobmanager" does.
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
	engine.WorkerMain(builtin.Jobs()...) // workers of jobs that name no executable run this executable, which task managers fetch
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after that, a second Ctrl-C ends the process immediately
	os.Exit(commands.Main(ctx, "jobmanager", "Superstep's jobmanager.", new(commands.JobManagerCommand), os.Args[1:], commands.Standard()))
}
