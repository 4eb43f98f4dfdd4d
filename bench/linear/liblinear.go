package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/bench/internal/rawrows"
)

// commandSolver is the line.Solver of the command of liblinear.
const commandSolver = "liblinear command"

// textFile is the name of the file with the rows in the format of the command. It is in the
// directory of the other files.
const textFile = "rows.txt"

// commandTolerances are the tolerances for the command, tried one after the other.
var commandTolerances = []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6}

// commandTask is a training with the command of liblinear.
type commandTask struct {
	Command string
	Dir     string
	Shape   shape
	Lasso   bool
}

// run trains at one tolerance after the other until the result no longer changes. The command
// does not report when training begins, and prints too few digits of the objective. The clock
// of a run therefore starts when the command closes the file of the rows, after parsing them,
// and stops when the process exits. The objective is computed from the coefficients that the
// command writes.
func (t commandTask) run() (outcome, error) {
	rows, err := readRows(t.Dir, t.Shape.Layout)
	if err != nil {
		return outcome{}, err
	}
	solver, out := "0", outcome{Method: "-s 0"}
	if t.Lasso {
		solver, out.Method = "6", "-s 6"
	}
	model := filepath.Join(t.Dir, "liblinear.model")
	text := filepath.Join(t.Dir, textFile)
	var last float64
	for _, tolerance := range commandTolerances {
		train := exec.Command(t.Command, "-q", "-s", solver, "-c", "1", "-e", strconv.FormatFloat(tolerance, 'g', -1, 64), text, model)
		seconds, err := timed(train, text)
		if err != nil {
			return outcome{}, err
		}
		w, err := coefficients(model, t.Shape.Features)
		if err != nil {
			return outcome{}, err
		}
		value := rows.objective(w, t.Lasso)
		out.Trace = append(out.Trace, point{seconds, value})
		if len(out.Trace) > 1 && last-value <= 1e-8*abs(last) {
			break
		}
		last = value
	}
	return out, nil
}

// look is the interval at which the open files of a process are inspected.
const look = 500 * time.Microsecond

// timed runs a command. It returns the seconds from the moment at which the command closes
// file, which it must open only once, to the end of its process. timed looks up the open files
// of the process in Linux's /proc.
func timed(command *exec.Cmd, file string) (float64, error) {
	file, err := filepath.EvalSymlinks(file) // the name that /proc shows
	if err != nil {
		return 0, err
	}
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var seen bool
	var began time.Time
	for {
		select {
		case err := <-ended:
			switch {
			case err != nil:
				return 0, fmt.Errorf("%s: %w: %s", command.Path, err, strings.TrimSpace(said.String()))
			case began.IsZero():
				return 0, fmt.Errorf("%s ended without having closed %s: its time cannot be told on this system (%s)", command.Path, file, runtime.GOOS)
			}
			return time.Since(began).Seconds(), nil
		case <-time.After(look):
			if !began.IsZero() {
				continue
			}
			if open := holds(command.Process.Pid, file); open {
				seen = true
			} else if seen {
				began = time.Now()
			}
		}
	}
}

// holds reports whether a process has a file open.
func holds(pid int, file string) bool {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	list, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	for _, f := range list {
		if to, err := os.Readlink(filepath.Join(folder, f.Name())); err == nil && to == file {
			return true
		}
	}
	return false
}

// coefficients reads a model of two classes that the command has written, and returns the
// coefficients for class 1. The file has the coefficients for the class that it lists first. If
// that class is 0 or −1, coefficients changes their signs.
func coefficients(path string, features int) ([]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, sign := bufio.NewScanner(f), 1.0
	for lines.Scan() && lines.Text() != "w" {
		if label, ok := strings.CutPrefix(lines.Text(), "label "); ok && !strings.HasPrefix(label, "1") {
			sign = -1
		}
	}
	var w []float64
	for lines.Scan() {
		v, err := strconv.ParseFloat(strings.TrimSpace(lines.Text()), 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		w = append(w, sign*v)
	}
	if len(w) > features { // the command leaves out coefficients after the last feature that occurs
		return nil, fmt.Errorf("%s: there are %d coefficients of %d features", path, len(w), features)
	}
	return append(w, make([]float64, features-len(w))...), lines.Err()
}

// rawRows are the rows of a problem.
type rawRows struct{ *rawrows.Table }

// readRows reads the files of a problem.
func readRows(dir string, l rawrows.Layout) (rawRows, error) {
	t, err := rawrows.Read(dir, l)
	return rawRows{t}, err
}

// row returns the indices and the values of row i. indices is nil for dense rows.
func (r rawRows) row(i int) (indices []int32, values []float64) {
	w := r.Width()
	if r.Indices != nil {
		indices = r.Indices[i*w : (i+1)*w]
	}
	return indices, r.Values[i*w : (i+1)*w]
}

// objective returns the mean loss plus the penalty for the coefficients w. The penalty is L1 if
// lasso is set, and L2 otherwise.
func (r rawRows) objective(w []float64, lasso bool) float64 {
	var loss, penalty float64
	for i, y := range r.Labels {
		indices, values := r.row(i)
		var margin float64
		for p, v := range values {
			j := p
			if indices != nil {
				j = int(indices[p])
			}
			margin += v * w[j]
		}
		if y > 0 {
			margin = -margin
		}
		loss += max(margin, 0) + math.Log1p(math.Exp(-math.Abs(margin)))
	}
	for _, v := range w {
		if lasso {
			penalty += abs(v)
		} else {
			penalty += v * v / 2
		}
	}
	return (loss + penalty) / float64(len(r.Labels))
}

// writeText writes the rows in the format of the command: labels 1 and -1, features counted
// from 1, numbers with all their digits.
func writeText(dir string, l rawrows.Layout) (err error) {
	rows, err := readRows(dir, l)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, textFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<20)
	if err := rows.write(out); err != nil {
		return err
	}
	return out.Flush()
}

func (r rawRows) write(out io.Writer) error {
	var line []byte
	for i, y := range r.Labels {
		line = append(line[:0], "-1"...)
		if y > 0 {
			line = append(line[:0], '1')
		}
		indices, values := r.row(i)
		for p, v := range values {
			j := p + 1
			if indices != nil {
				j = int(indices[p]) + 1
			}
			line = append(strconv.AppendInt(append(line, ' '), int64(j), 10), ':')
			line = strconv.AppendFloat(line, v, 'g', -1, 64)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}
