//go:build !race

package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// arrowPath is the prefix of the import paths of Arrow.
const arrowPath = "github.com/apache/arrow/"

// exposed returns a message for each reference to a type of Arrow in an exported declaration of
// a file.
func exposed(set *token.FileSet, file *ast.File) (found []string) {
	arrow := map[string]bool{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.HasPrefix(path, arrowPath) {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		arrow[name] = true
	}
	look := func(what string, node ast.Node) {
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field: // a field of a struct, a method of an interface or a parameter; only the types of parameters matter
				exported := len(n.Names) == 0 || slices.ContainsFunc(n.Names, (*ast.Ident).IsExported)
				return exported
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && arrow[x.Name] {
					found = append(found, fmt.Sprintf("%v: %s has %s.%s", set.Position(n.Pos()), what, x.Name, n.Sel.Name))
				}
			}
			return true
		})
	}
	parameters := func(what string, list *ast.FieldList) {
		if list != nil {
			for _, f := range list.List {
				look(what, f.Type)
			}
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || receiver(d).IsExported()) {
				parameters(d.Name.Name, d.Type.Params)
				parameters(d.Name.Name, d.Type.Results)
				parameters(d.Name.Name, d.Type.TypeParams)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						look(s.Name.Name, s.Type)
					}
				case *ast.ValueSpec:
					if s.Type != nil && slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
						look(s.Names[0].Name, s.Type)
					}
				}
			}
		}
	}
	return found
}

// receiver returns the identifier of a method's receiver type.
func receiver(d *ast.FuncDecl) *ast.Ident {
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t
		default:
			return ast.NewIdent("_")
		}
	}
}

// TestArrowIsNotExposed requires that arrowbridge is the only public package whose exported
// declarations refer to types of Arrow. So a program that uses another version of Arrow
// compiles with all other packages.
func TestArrowIsNotExposed(t *testing.T) {
	root := moduleRoot(t)
	seen := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch slashed := filepath.ToSlash(name); {
			case d.Name() == "internal", d.Name() == "testdata", strings.HasPrefix(d.Name(), ".") && name != ".",
				slices.Contains([]string{"bench", "cmd", "tests", "operators/arrowbridge"}, slashed):
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		for _, f := range exposed(set, file) {
			t.Error(f)
		}
		return nil
	}))
	require.Greater(t, seen, 300)
}

// TestExposedFindsArrow requires that exposed finds types of Arrow.
func TestExposedFindsArrow(t *testing.T) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "x.go", `package x
import (
	"github.com/apache/arrow/go/v15/arrow"
	mem "github.com/apache/arrow/go/v15/arrow/memory"
)
func Bad(rows arrow.Record) (mem.Allocator, error) { return nil, nil }
func good(rows arrow.Record) {}
func (b *B[T]) Method(f func([]arrow.Array)) {}
func (b b) Method(f func([]arrow.Array)) {}
type Struct struct {
	Field  arrow.Field
	hidden arrow.Field
}
type Interface interface{ Do(arrow.DataType) }
type Alias = arrow.Schema
var Variable arrow.Field
func Fine() { var _ arrow.Record }
`, parser.SkipObjectResolution)
	require.NoError(t, err)
	var what []string
	for _, f := range exposed(set, file) {
		_, rest, _ := strings.Cut(f, ": ")
		what = append(what, rest)
	}
	require.Equal(t, []string{
		"Bad has arrow.Record", "Bad has mem.Allocator", "Method has arrow.Array",
		"Struct has arrow.Field", "Interface has arrow.DataType", "Alias has arrow.Schema", "Variable has arrow.Field",
	}, what)
}
