package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/engine"
)

// standard has the temporary files that replace standard input and output if a path on the
// command line is -. Files are needed because a job reads its inputs more than once, and writes
// its outputs to a temporary file first.
type standard struct {
	dir    string // directory of the files; "" if nothing is replaced
	input  string
	output string
}

// streams lists the flags of a program for which the path - is allowed: in has flags of input
// files, and out has flags of output files.
type streams struct{ in, out []string }

// replaced replaces the paths - of a command line by temporary files, and stores standard input
// in the file that replaces it. If a cluster is used, - as an input is an error, because the
// workers read the input themselves. If there are checkpoints, - is an error, because a process
// that continues the run would not have the files.
func (of streams) replaced(words []string, in io.Reader, cluster string) (s standard, made []string, err error) {
	made = slices.Clone(words)
	remote := cluster != "" && cluster != "local"
	kept := slices.ContainsFunc(words, func(w string) bool { return w == "--checkpoint-dir" || strings.HasPrefix(w, "--checkpoint-dir=") })
	var used string // the flag that takes standard input
	for i := 0; i < len(made); i++ {
		flag, value, joined := strings.Cut(made[i], "=")
		if !joined && i+1 < len(made) {
			value = made[i+1]
		}
		read, written := slices.Contains(of.in, flag), slices.Contains(of.out, flag)
		if made[i] == "--help" || made[i] == "-h" {
			return s, words, nil
		}
		if value != "-" || !read && !written {
			continue
		}
		switch {
		case kept:
			return s, nil, fmt.Errorf("%s - does not go with --checkpoint-dir: a later process could not use it again; name a file", flag)
		case read && remote:
			return s, nil, fmt.Errorf("%s - does not go with --cluster: its workers read files, not what this command is given", flag)
		case read && used == flag, written && s.output != "" && slices.Equal(of.out, []string{flag}):
			return s, nil, fmt.Errorf("%s is given twice", flag)
		case read && used != "":
			return s, nil, fmt.Errorf("%s and %s cannot both be standard input", used, flag)
		case written && s.output != "":
			return s, nil, errors.New("only one output can be standard output")
		}
		if s.dir == "" {
			if s.dir, err = os.MkdirTemp("", "superstep-"); err != nil {
				return s, nil, err
			}
		}
		var path string
		if read {
			used = flag
			if s.input, err = spooled(filepath.Join(s.dir, "stdin"), in); err != nil {
				return s, nil, err
			}
			path = s.input
		} else {
			s.output = filepath.Join(s.dir, "stdout")
			if path = s.output; remote && flag == "--output" {
				path = engine.ClientPath + path
			}
		}
		if joined {
			made[i] = flag + "=" + path
		} else {
			made[i+1] = path
			i++
		}
	}
	return s, made, nil
}

// spooled copies in to a file and returns its name. The name is path with the ending for the
// form of the data, which spooled finds from the first bytes: Arrow, Parquet, or otherwise CSV.
func spooled(path string, in io.Reader) (string, error) {
	var head [8]byte
	n, err := io.ReadFull(in, head[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("cannot read standard input: %w", err)
	}
	switch {
	case bytes.HasPrefix(head[:n], []byte("ARROW1")), bytes.HasPrefix(head[:n], []byte{0xff, 0xff, 0xff, 0xff}):
		path += ".arrow"
	case bytes.HasPrefix(head[:n], []byte("PAR1")):
		path += ".parquet"
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, io.MultiReader(bytes.NewReader(head[:n]), in))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("cannot keep standard input: %w", err)
	}
	return path, nil
}

// clusterOf returns the cluster that the command line names or, without --cluster, the cluster
// that the environment names.
func clusterOf(words []string) string {
	cluster := os.Getenv("SUPERSTEP_CLUSTER")
	for i, word := range words {
		if value, ok := strings.CutPrefix(word, "--cluster="); ok {
			cluster = value
		} else if word == "--cluster" && i+1 < len(words) {
			cluster = words[i+1]
		}
	}
	return cluster
}

// finish copies the output file to out.
func (s standard) finish(out io.Writer) (err error) {
	if s.output == "" {
		return nil
	}
	f, err := os.Open(s.output)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(out, f); err != nil {
		return fmt.Errorf("cannot write standard output: %w", err)
	}
	return nil
}

// remove removes the temporary files.
func (s standard) remove() {
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // on errors the system removes temporary files later
	}
}

// named replaces the names of the temporary files in a text by "standard input" and "standard
// output".
func (s standard) named(text string) string {
	for _, of := range [][2]string{{s.input, "standard input"}, {s.output, "standard output"}} {
		if of[0] != "" {
			text = strings.ReplaceAll(text, of[0], of[1])
		}
	}
	return text
}
