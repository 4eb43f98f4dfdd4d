//go:build !race

package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(text)
}

// TestReadmeCommands requires that the indented lines between the marks in the README are
// exactly the commands that other checks run.
func TestReadmeCommands(t *testing.T) {
	_, rest, ok := strings.Cut(readme(t), "<!-- commands -->\n")
	require.True(t, ok)
	between, _, ok := strings.Cut(rest, "<!-- end -->")
	require.True(t, ok)
	var commands []string
	for line := range strings.Lines(between) {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	require.Equal(t, []string{"go run ./examples/kmeans", "go test ./..."}, commands)
}

// vetProgram compiles a program in a new module.
func vetProgram(t *testing.T, source string) {
	t.Helper()
	g := newGuide(t)
	_, stderr, err := g.sh(g.dir, "mkdir depot && cd depot && go mod init example.com/depot && go mod edit -replace "+module+"=../superstep")
	require.NoError(t, err, stderr)
	g.tidy()
	require.NoError(t, os.WriteFile(filepath.Join(g.module(), "main.go"), []byte(source), 0o666))
	_, stderr, err = g.sh(g.module(), "go vet .")
	require.NoError(t, err, stderr)
}

// goBlock returns the first block of Go code of a page.
func goBlock(t *testing.T, page string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "```go\n")
	require.True(t, ok)
	program, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	return program
}

// TestReadmeProgram requires that the program in the README compiles with the current packages.
func TestReadmeProgram(t *testing.T) {
	vetProgram(t, `package main

import (
	"`+module+`/algorithms/kmeans"
	"`+module+`/engine"
	"`+module+`/operators"
)

type args struct {
	Input, Output string
	K             int
}

`+goBlock(t, readme(t)))
}

// TestTrainingProgram requires that the pipeline in docs/training.md compiles with the current
// packages.
func TestTrainingProgram(t *testing.T) {
	page, err := os.ReadFile("../docs/training.md")
	require.NoError(t, err)
	imports := ""
	for _, pkg := range []string{"algorithms/evaluate", "algorithms/logistic", "algorithms/model", "algorithms/pipeline", "algorithms/prepare", "engine"} {
		imports += "\t\"" + module + "/" + pkg + "\"\n"
	}
	vetProgram(t, "package main\n\nimport (\n"+imports+")\n\nfunc main() {}\n\nfunc job(b *engine.Builder, rows, others *engine.Dataset) {\n"+goBlock(t, string(page))+"}\n")
}

// TestReadmeTable requires that every name in the README's table of what works is an exported
// function of an operators package or of engine.
func TestReadmeTable(t *testing.T) {
	functions := map[string]bool{}
	for _, pattern := range []string{"../operators/*.go", "../operators/*/*.go", "../engine/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
					functions[f.Name.Name] = true
				}
			}
		}
	}
	name := regexp.MustCompile("`([A-Za-z.]+)`")
	named := 0
	for line := range strings.Lines(readme(t)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(cells[2], -1) {
			_, function, qualified := strings.Cut(m[1], ".")
			if !qualified {
				function = m[1]
			}
			require.True(t, functions[function], "the README says that %s works today, so there must be such a function in operators or engine", m[1])
			named++
		}
	}
	require.Greater(t, named, 25)
}

// TestReadmeLinks requires that links to files of the repository lead to existing files.
func TestReadmeLinks(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(readme(t), -1)
	require.NotEmpty(t, links)
	for _, m := range links {
		_, err := os.Stat(filepath.Join("..", m[1]))
		require.NoError(t, err)
	}
}
