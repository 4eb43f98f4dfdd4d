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
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(commands.Main(ctx, "taskmanager", "Superstep's taskmanager.", new(commands.TaskManagerCommand), os.Args[1:], commands.Standard()))
}
