//go:build !race

package tests

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// The tests of this file check rules that make results the same on every processor and in every
// build. Products must be rounded before they are added, functions whose last bits vary must
// not be called, and the compiled code must not have fused multiply-add instructions.

// variableBits has the names of the functions of package math whose results differ between
// processors, builds or architectures.
var variableBits = map[string]bool{
	"Exp": true, "Exp2": true, "Expm1": true, "Log": true, "Log2": true, "Log10": true,
	"Log1p": true, "Pow": true, "Sin": true, "Cos": true, "Tan": true, "Sincos": true,
	"Asin": true, "Acos": true, "Atan": true, "Atan2": true, "Sinh": true, "Cosh": true,
	"Tanh": true, "Asinh": true, "Acosh": true, "Atanh": true, "Cbrt": true, "Hypot": true,
	"Erf": true, "Erfc": true, "Erfinv": true, "Erfcinv": true, "Gamma": true, "Lgamma": true,
	"J0": true, "J1": true, "Jn": true, "Y0": true, "Y1": true, "Yn": true, "FMA": true,
}

// forbiddenImports has the packages on which results must not depend, each with the reason.
var forbiddenImports = map[string]string{
	"math/rand":       "draws must be functions of seed, purpose, shard, step and index: use sharding.Random",
	"math/rand/v2":    "draws must be functions of seed, purpose, shard, step and index: use sharding.Random",
	"math/cmplx":      "complex products fuse: write the real arithmetic out",
	"gonum.org/v1/":   "its kernels differ between processors: only tests and plots may use it",
	"crypto/rand":     "results must be repeatable",
	"hash/maphash":    "seeds differ between processes: use xxh3",
	"simd/archsimd":   "kernels need a twin with the same bits: they belong into internal/kernel",
	"golang.org/x/ex": "experimental packages change",
}

// controlPackages has packages that compute no results, so the rules do not apply to them. Some
// of these packages need secrets, identities and waits that differ from run to run. The other
// packages inject faults of disks and connections for tests.
var controlPackages = []string{
	module + "/internal/security", module + "/internal/transport/membership", module + "/internal/peerlink",
	module + "/jobmanager", module + "/taskmanager", module + "/taskmanager/core", module + "/internal/client", module + "/internal/disk/faultydisk",
	module + "/internal/transport/middlebox", module + "/internal/tlstest", module + "/internal/s3test", module + "/engine/checkpoint/s3store",
}

// checkArithmetic returns a message for each violation of the rules in a file. Files named
// plot.go may import gonum, because plots are not results.
func checkArithmetic(fset *token.FileSet, file *ast.File, info *types.Info) []string {
	var found []string
	report := func(pos token.Pos, format string, a ...any) {
		p := fset.Position(pos)
		found = append(found, fmt.Sprintf("%s:%d: %s", filepath.Base(p.Filename), p.Line, fmt.Sprintf(format, a...)))
	}
	plot := filepath.Base(fset.Position(file.Pos()).Filename) == "plot.go"
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		for prefix, why := range forbiddenImports {
			if strings.HasPrefix(path, prefix) && !(plot && strings.HasPrefix(path, "gonum.org/")) {
				report(spec.Pos(), "imports %s: %s", path, why)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if f, ok := info.Uses[n.Sel].(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path() == "math" && variableBits[f.Name()] {
				report(n.Pos(), "math.%s varies by processor or build: use internal/kernel", f.Name())
			}
		case *ast.BinaryExpr:
			if (n.Op == token.ADD || n.Op == token.SUB) && (isFloatProduct(n.X, info) || isFloatProduct(n.Y, info)) {
				report(n.OpPos, "a product is added without rounding: write float64(x*y) so that it cannot fuse")
			}
		case *ast.AssignStmt:
			if (n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN) && isFloatProduct(n.Rhs[0], info) {
				report(n.TokPos, "a product is added without rounding: write float64(x*y) so that it cannot fuse")
			}
		}
		return true
	})
	return found
}

// isFloatProduct reports whether e is a product x*y of a floating-point type that is computed
// at run time and has no conversion around it.
func isFloatProduct(e ast.Expr, info *types.Info) bool {
	product, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok || product.Op != token.MUL {
		return false
	}
	tv := info.Types[product]
	if tv.Value != nil {
		return false
	}
	switch t := tv.Type.Underlying().(type) {
	case *types.Basic:
		return t.Info()&(types.IsFloat|types.IsComplex) != 0
	case *types.Interface: // a type parameter, which may be a floating-point type if its constraint admits one
		return tv.Type != nil && mayBeFloat(t)
	}
	return false
}

// mayBeFloat reports whether a constraint admits a floating-point type.
func mayBeFloat(constraint *types.Interface) bool {
	for i := range constraint.NumEmbeddeds() {
		switch e := constraint.EmbeddedType(i).Underlying().(type) {
		case *types.Union:
			for j := range e.Len() {
				if b, ok := e.Term(j).Type().Underlying().(*types.Basic); ok && b.Info()&types.IsFloat != 0 {
					return true
				}
			}
		case *types.Interface:
			if mayBeFloat(e) {
				return true
			}
		}
	}
	return false
}

// resultPackages returns the import paths of the packages whose results users can see.
func resultPackages(t *testing.T) []string {
	t.Helper()
	var paths []string
	for path := range packagesOf(t) {
		if !strings.HasPrefix(path, "tests") && !strings.HasPrefix(path, "bench") {
			paths = append(paths, module+"/"+path)
		}
	}
	slices.Sort(paths)
	return paths
}

func TestArithmeticRules(t *testing.T) {
	t.Parallel()
	config := &packages.Config{
		Dir:  moduleRoot(t),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}
	loaded, err := packages.Load(config, resultPackages(t)...)
	require.NoError(t, err)
	for _, pkg := range loaded {
		require.Empty(t, pkg.Errors, "%s", pkg.PkgPath)
		for _, file := range pkg.Syntax {
			for _, finding := range checkArithmetic(pkg.Fset, file, pkg.TypesInfo) {
				if random := strings.Contains(finding, "imports crypto/rand") || strings.Contains(finding, "imports math/rand"); random && slices.Contains(controlPackages, pkg.PkgPath) {
					continue
				}
				t.Errorf("%s: %s", pkg.PkgPath, finding)
			}
		}
	}
}

// TestArithmeticRulesCatch requires that checkArithmetic finds violations of each rule.
func TestArithmeticRulesCatch(t *testing.T) {
	source := `package bad

import (
	"math"
	"math/rand"
)

func f[T float32 | float64](a, b, c float64, x, y T) (float64, T) {
	a += b * c
	d := a + (b * c)
	d -= float64(b*c) + math.Exp(a)*rand.Float64()
	return d - b*c, x*y + x
}

func fine(a, b, c float64, i, j int) float64 { return a + float64(b*c) + float64(i*j+i) + 2*3.5 }
`
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.go"), []byte(source), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module bad\n\ngo 1.26\n"), 0o600))
	loaded, err := packages.Load(&packages.Config{
		Dir:  dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, ".")
	require.NoError(t, err)
	require.Len(t, loaded, 1)
	require.Empty(t, loaded[0].Errors)
	found := checkArithmetic(loaded[0].Fset, loaded[0].Syntax[0], loaded[0].TypesInfo)
	var lines []string
	for _, f := range found {
		lines = append(lines, f[:strings.Index(f, ": ")])
	}
	slices.Sort(lines)
	require.Equal(t, []string{"bad.go:10", "bad.go:11", "bad.go:11", "bad.go:12", "bad.go:12", "bad.go:5", "bad.go:9"}, lines, "%q", found)
}

// fusedAt matches the position (file, line and column) of each fused multiply-add in the
// compiler's output. With -trimpath, the name of a file begins with its import path.
var fusedAt = regexp.MustCompile(`(?m)^fmahash triggered (\S+:\d+:\d+)`)

// fusedIn compiles packages for a target and returns the positions where the compiler fuses a
// product with a sum, in files whose import path begins with prefix. The flag -d=fmahash makes
// the compiler report these positions, which takes a hundredth of the time of an assembly
// listing. fusedIn uses go list -export, because it compiles commands without linking them. It
// compiles other modules without inlining, which takes less time.
func fusedIn(t *testing.T, dir, prefix string, env []string, paths ...string) []string {
	t.Helper()
	require.NoError(t, programs.DependOnSources())
	cmd := proctest.Command("go", append([]string{"list", "-export", "-trimpath", "-gcflags=all=-dwarf=false -l", "-gcflags=-dwarf=false -d=fmahash=vy"}, paths...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	report, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", report)
	var found []string
	for _, match := range fusedAt.FindAllSubmatch(report, -1) {
		if place := string(match[1]); strings.HasPrefix(place, prefix+"/") {
			found = append(found, place)
		}
	}
	return found
}

// TestNoFusedMultiplyAdd requires that the compiler fuses no product with a sum. It compiles
// all packages for arm64. For arm64 the compiler fuses products with both sums and differences,
// but for amd64 only with sums. So for amd64 the test compiles only packages whose files differ
// from the files for arm64.
func TestNoFusedMultiplyAdd(t *testing.T) {
	t.Parallel()
	arm64, amd64 := []string{"GOARCH=arm64", "CGO_ENABLED=0"}, []string{"GOARCH=amd64", "GOAMD64=v3", "CGO_ENABLED=0"}
	paths := resultPackages(t)
	require.Empty(t, fusedIn(t, moduleRoot(t), module, arm64, paths...))
	there, here := filesOf(t, arm64, paths), filesOf(t, amd64, paths)
	var differ []string
	for path, files := range here {
		if there[path] != files {
			differ = append(differ, path)
		}
	}
	require.Contains(t, differ, module+"/internal/kernel")
	require.Empty(t, fusedIn(t, moduleRoot(t), module, amd64, differ...))
}

// filesOf returns, for each package, the list of the files that are compiled for a target.
func filesOf(t *testing.T, env, paths []string) map[string]string {
	t.Helper()
	cmd := proctest.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{.GoFiles}}"}, paths...)...)
	cmd.Dir = moduleRoot(t)
	cmd.Env = append(os.Environ(), env...)
	list, err := cmd.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(list)) {
		path, names, _ := strings.Cut(line, " ")
		files[path] = names
	}
	return files
}

// TestFusedMultiplyAddIsFound requires that fusedIn finds a fused multiply-add.
func TestFusedMultiplyAddIsFound(t *testing.T) {
	dir := t.TempDir()
	source := "package bad\n\nfunc F(x, y, z float64) float64 { t := x * y; return t + z }\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.go"), []byte(source), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module bad\n\ngo 1.26\n"), 0o600))
	for _, env := range [][]string{{"GOARCH=arm64"}, {"GOARCH=amd64", "GOAMD64=v3"}} {
		require.Equal(t, []string{"bad/bad.go:3:56"}, fusedIn(t, dir, "bad", env, "."), "%v", env)
	}
	require.Empty(t, fusedIn(t, dir, "good", []string{"GOARCH=arm64"}, "."))
}
