package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/bench/internal/usage"
)

// work describes the task of a contestant: to train on the rows of the file csv, save the model
// in the file model, and write predictions for the same rows to the file output.
type work struct {
	problem *problem
	threads int
	csv     string
	model   string
	output  string
}

// contestant is one of the libraries that are compared. train and predict return the commands
// that do the task; each runs in a process of its own.
type contestant interface {
	name() string
	train(w work) *exec.Cmd
	predict(w work) *exec.Cmd
	// columns returns the column names of the file that predict writes. It returns nil if the
	// first line of that file has the names.
	columns(p *problem) []string
}

// contestants returns the contestants that take part, Superstep first. Unless the flag
// o.Superstep names the executable of the command superstep, it builds the command in dir.
func (o *options) contestants(dir string) ([]contestant, error) {
	command := o.Superstep
	if command == "" {
		command = filepath.Join(dir, "superstep")
		if out, err := exec.Command("go", "build", "-o", command, "github.com/superstep-ml/superstep/cmd/superstep").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	all := []contestant{superstep{command}}
	if o.Alink != "" {
		if _, err := os.Stat(filepath.Join(o.Alink, "classes", alinkProgram+".class")); err != nil {
			return nil, fmt.Errorf("--alink: %w: install it as the program's documentation says", err)
		}
		all = append(all, alink{o.Java, o.Alink})
	}
	return all, nil
}

// train runs the training of a contestant in a process and measures the whole process.
func (w work) train(c contestant) (outcome, error) {
	if err := os.RemoveAll(w.model); err != nil {
		return outcome{}, err
	}
	child := c.train(w)
	began := time.Now()
	if err := run(child); err != nil {
		return outcome{}, err
	}
	state := child.ProcessState
	out := outcome{Wall: time.Since(began).Seconds(), CPU: (state.UserTime() + state.SystemTime()).Seconds(), Peak: float64(usage.PeakOf(state))}
	if info, err := os.Stat(w.model); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return out, fmt.Errorf("there is no model in %s: %v", w.model, err)
	}
	return out, nil
}

// run runs child until it exits. If child fails, the error contains the output of child.
func run(child *exec.Cmd) error {
	var said bytes.Buffer
	child.Stdout, child.Stderr = &said, &said
	if err := child.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// superstep is the contestant Superstep, which runs as the command superstep.
type superstep struct{ command string }

func (superstep) name() string { return "superstep" }

func (s superstep) process(w work, args ...string) *exec.Cmd {
	child := exec.Command(s.command, append(args, "--parallelism", strconv.Itoa(w.threads))...)
	child.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(w.threads))
	return child
}

func (s superstep) train(w work) *exec.Cmd {
	return s.process(w, w.problem.arguments(w.csv, w.model)...)
}

func (s superstep) predict(w work) *exec.Cmd {
	keep := featureColumn(0)
	if w.problem.Labelled {
		keep = labelColumn
	}
	return s.process(w, "predict", "--model", w.model, "--input", w.csv, "--keep", keep, "--output", w.output, "--if-exists", "replace")
}

func (superstep) columns(*problem) []string { return nil }

// alinkProgram is the Java class that runs Alink. Its source is AlinkTraining.java.
const alinkProgram = "AlinkTraining"

// alink is the contestant Alink, which runs on Flink's local cluster in one Java process.
type alink struct{ java, dir string }

func (alink) name() string { return "Alink" }

// opened lists packages of the JDK that Flink 1.13 accesses by reflection. Java 17 permits this
// only with the flag --add-opens.
var opened = []string{"java.lang", "java.lang.reflect", "java.io", "java.math", "java.net", "java.nio", "java.text", "java.time",
	"java.util", "java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch"}

func (a alink) process(w work, action string, more ...string) *exec.Cmd {
	args := []string{"-XX:ActiveProcessorCount=" + strconv.Itoa(w.threads)}
	for _, name := range opened {
		args = append(args, "--add-opens", "java.base/"+name+"=ALL-UNNAMED")
	}
	args = append(args, "-cp", filepath.Join(a.dir, "classes")+string(filepath.ListSeparator)+filepath.Join(a.dir, "lib", "*"), alinkProgram,
		action, w.problem.Name, w.csv, strconv.Itoa(w.problem.Features), w.model, strconv.Itoa(w.threads))
	return exec.Command(a.java, append(args, more...)...)
}

func (a alink) train(w work) *exec.Cmd {
	return a.process(w, "train", strconv.Itoa(w.problem.Iterations))
}

func (a alink) predict(w work) *exec.Cmd { return a.process(w, "predict", w.output) }

func (alink) columns(p *problem) []string {
	if p.Labelled {
		return []string{labelColumn, detailColumn}
	}
	return []string{distanceColumn}
}
