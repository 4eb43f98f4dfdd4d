// Command taskmanager runs a task manager, as the command "superstep taskmanager" does.
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
	engine.WorkerMain(builtin.Jobs()...)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after that, a second Ctrl-C ends the process immediately
	os.Exit(commands.Main(ctx, "taskmanager", "Superstep's taskmanager.", new(commands.TaskManagerCommand), os.Args[1:], commands.Standard()))
}
