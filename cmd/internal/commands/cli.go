package commands

// Cluster has the commands for clusters, jobs and models. The superstep binary embeds Cluster
// and adds the bench command.
type Cluster struct {
	JobManager  JobManagerCommand  `cmd:"" name:"jobmanager" help:"Run a job manager."`
	TaskManager TaskManagerCommand `cmd:"" name:"taskmanager" help:"Run a task manager, which offers slots to a job manager."`
	Dev         DevCommand         `cmd:"" help:"Run a whole cluster on this machine, until Ctrl-C."`

	Train    TrainCommand    `cmd:"" help:"Train a model on the rows of files."`
	Predict  PredictCommand  `cmd:"" passthrough:"" help:"Apply a model to the rows of files."`
	Evaluate EvaluateCommand `cmd:"" passthrough:"" help:"Measure predictions."`
	Inspect  InspectCommand  `cmd:"" help:"Show what is in the file of a model."`
	Export   ExportCommand   `cmd:"" help:"Write a model in a format of other programs."`
	Import   ImportCommand   `cmd:"" help:"Read a model that is in a format of other programs."`

	Run          RunCommand          `cmd:"" help:"Run a built-in job or a program, and wait for it."`
	Submit       SubmitCommand       `cmd:"" help:"Submit a built-in job or a program to a cluster, and leave."`
	List         listCommand         `cmd:"" help:"List jobs."`
	Show         showCommand         `cmd:"" help:"Show a job: state, placement, progress, plan."`
	Results      resultsCommand      `cmd:"" help:"Print or write what a job that has finished collected and printed."`
	Attach       attachCommand       `cmd:"" help:"Follow a job to its end; Ctrl-C leaves it running."`
	Logs         logsCommand         `cmd:"" help:"Print what the workers of a job wrote."`
	Cancel       cancelCommand       `cmd:"" help:"Cancel jobs."`
	Checkpoints  checkpointsCommand  `cmd:"" help:"List the checkpoints of a job, or those in a directory or S3."`
	Scale        scaleCommand        `cmd:"" help:"Set with how many subtasks a job may run; a job that runs is saved and goes on with another number."`
	Savepoint    savepointCommand    `cmd:"" help:"Save the state of a running job at a place of its own, from which run --from continues."`
	TaskManagers taskManagersCommand `cmd:"" name:"taskmanagers" aliases:"nodes" help:"List task managers and their slots."`
	Cordon       cordonCommand       `cmd:"" help:"Keep new workers from a task manager; those that run there go on."`
	Uncordon     uncordonCommand     `cmd:"" help:"Allow new workers on a task manager."`
	Drain        drainCommand        `cmd:"" help:"Cordon a task manager, and make the jobs there go on elsewhere."`

	TLS        TLSCommand        `cmd:"" name:"tls" help:"Make certificates."`
	Config     ConfigCommand     `cmd:"" help:"Show the configuration."`
	Completion CompletionCommand `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	Version    VersionCommand    `cmd:"" help:"Print the version."`
}
