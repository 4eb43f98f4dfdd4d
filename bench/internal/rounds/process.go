package rounds

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// variable is the environment variable that tells a process started by Self what to do. Its
// value is the name of the task's type, followed by the task.
const variable = "SUPERSTEP_BENCH_TASK"

// Task is a kind of work that a process started by Self can do.
type Task struct {
	name string
	run  func(text string) (outcome any, err error)
}

// TaskOf returns the Task that calls run with a value of type T. Self passes the value to the
// process.
func TaskOf[T, O any](run func(T) (O, error)) Task {
	return Task{fmt.Sprintf("%T", *new(T)), func(text string) (any, error) {
		var t T
		if err := json.Unmarshal([]byte(text), &t); err != nil {
			return nil, err
		}
		return run(t)
	}}
}

// Main is the main function of a program. In a process that Self started, it does the process's
// task, which must be of one of the given tasks' types, and prints the outcome as JSON. In any
// other process, it runs the program. An error ends the process with status 1.
func Main(name string, program func() error, tasks ...Task) {
	if err := runMain(program, tasks); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func runMain(program func() error, tasks []Task) error {
	name, text, ok := strings.Cut(os.Getenv(variable), " ")
	if !ok {
		return program()
	}
	for _, t := range tasks {
		if t.name == name {
			outcome, err := t.run(text)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(outcome)
		}
	}
	return fmt.Errorf("there is no task %s", name)
}

// Self returns a command that runs this program in a new process, where Main does the given
// task.
func Self(task any) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	child := exec.Command(path)
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%T %s", variable, task, text))
	return child, nil
}

// Outcome runs a process and decodes the outcome that it prints as JSON.
func Outcome[O any](child *exec.Cmd) (got O, err error) {
	child.Stderr = os.Stderr
	text, err := child.Output()
	if err != nil {
		return got, err
	}
	return got, json.Unmarshal(text, &got)
}

// PrintJSON prints figures as indented JSON.
func PrintJSON(w io.Writer, figures any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(figures)
}
