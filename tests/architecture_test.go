//go:build !race

package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

const module = "github.com/superstep-ml/superstep"

// importTable has the rules of docs/architecture.md. It maps a package pattern to the patterns
// of the packages that matching packages may import.
type importTable map[string][]string

// readImportTable reads the import table from doc. The table is in the fenced block that is
// marked "imports".
func readImportTable(doc string) (importTable, error) {
	_, rest, ok := strings.Cut(doc, "```imports\n")
	if !ok {
		return nil, fmt.Errorf("no block marked imports")
	}
	block, _, ok := strings.Cut(rest, "```")
	if !ok {
		return nil, fmt.Errorf("the imports block does not end")
	}
	table := importTable{}
	for line := range strings.Lines(block) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			return nil, fmt.Errorf("line %q has no colon", line)
		}
		table[from] = strings.Fields(to)
	}
	return table, nil
}

// matches reports whether pattern covers the package at path.
func matches(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return pattern == path
}

// violations returns a message for each import of the package at path that the table does not
// allow.
func (t importTable) violations(path string, imports []string) []string {
	var allowed []string
	listed := false
	for pattern, to := range t {
		if matches(pattern, path) {
			listed = true
			allowed = append(allowed, to...)
		}
	}
	if !listed {
		return []string{path + " is not in the table"}
	}
	var bad []string
	for _, imported := range imports {
		within := func(pattern string) bool { return matches(pattern, imported) }
		if !slices.ContainsFunc(allowed, within) && !isOwnInternal(path, imported) {
			bad = append(bad, path+" imports "+imported)
		}
	}
	return bad
}

// isOwnInternal reports whether an import is allowed without a rule. A package may import
// packages of its own internal folder, and packages of one internal folder may import each
// other.
func isOwnInternal(path, imported string) bool {
	parent, _, ok := strings.Cut(imported, "/internal/")
	return ok && (path == parent || strings.HasPrefix(path, parent+"/internal/"))
}

// packagesOf returns the imports of each package of the module, as listed by the go command.
func packagesOf(t *testing.T) map[string][]string {
	t.Helper()
	cmd := proctest.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = moduleRoot(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	packages := map[string][]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return packages
		} else {
			require.NoError(t, err)
		}
		var ours []string
		for _, imported := range p.Imports {
			if rest, ok := strings.CutPrefix(imported, module+"/"); ok {
				ours = append(ours, rest)
			}
		}
		packages[strings.TrimPrefix(p.ImportPath, module+"/")] = ours
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "go.mod"))
	return root
}

func TestImportsFollowTheTable(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(moduleRoot(t), "docs", "architecture.md"))
	require.NoError(t, err)
	table, err := readImportTable(string(doc))
	require.NoError(t, err)
	packages := packagesOf(t)
	require.Greater(t, len(packages), 10)
	for path, imports := range packages {
		if path == "tests" || strings.HasSuffix(path, "/batchtest") {
			continue // these packages are only used by tests
		}
		for _, v := range table.violations(path, imports) {
			t.Errorf("%s; docs/architecture.md does not allow it", v)
		}
	}
	for pattern := range table {
		found := false
		for path := range packages {
			found = found || matches(pattern, path)
		}
		require.True(t, found, "%s is in the table, so a package must match it", pattern)
	}
}

// TestImportTableCatches requires that importTable.violations finds an import that the table
// does not allow.
func TestImportTableCatches(t *testing.T) {
	table := importTable{"shared": nil, "engine": {"shared"}, "examples/...": {"engine"}}
	require.Equal(t, []string{"shared imports engine"}, table.violations("shared", []string{"engine"}))
	require.Equal(t, []string{"engine imports comqueue"}, table.violations("engine", []string{"shared", "comqueue"}))
	require.Empty(t, table.violations("examples/kmeans", []string{"engine"}))
	require.Equal(t, []string{"examples/kmeans imports shared"}, table.violations("examples/kmeans", []string{"shared"}))
	require.Equal(t, []string{"jobmanager is not in the table"}, table.violations("jobmanager", nil))
}

// startsUntied matches code that starts a program without proctest. Such a program may outlive
// its test.
var startsUntied = regexp.MustCompile(`\bexec\.Command(Context)?\(|\bos\.StartProcess\(`)

// TestProgramsEndWithTheirTest requires that tests start programs with proctest.
func TestProgramsEndWithTheirTest(t *testing.T) {
	mayStart := map[string]string{
		"internal/proctest/command_test.go":      "it is what is tested",
		"bench/collective/compare/ended_test.go": "a child of a peer, which the comparison has to end",
		"bench/linear/linear_test.go":            "programs that end by themselves, by a function of the benchmark",
		"taskmanager/script_test.go":             "a worker's child, which the task manager has to end",
		"tests/architecture_test.go":             "the words to look for",
	}
	seen := 0
	root := moduleRoot(t)
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		name, err := filepath.Rel(root, path)
		if found := startsUntied.Find(text); found != nil && mayStart[filepath.ToSlash(name)] == "" {
			t.Errorf("%s: %s...) starts a program that may outlive the test: proctest has the same functions", name, found)
		}
		return err
	}))
	require.Greater(t, seen, 100)
}
