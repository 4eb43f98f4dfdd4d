package engine

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// modulePath is the path of this module. It is taken from the package itself, so that a copy of
// the module under another path still recognizes its own frames.
var modulePath = strings.TrimSuffix(reflect.TypeFor[Builder]().PkgPath(), "/engine")

// library lists the top-level folders of this module whose frames are never the
// user's: a misuse is reported where their caller stands.
var library = []string{"engine", "operators", "comqueue", "algorithms", "collective", "shared", "internal"}

// commands is the package of the built-in jobs, whose users have a command line and no
// source lines.
const commands = "cmd/internal/builtin"

// userSite returns "file.go:31" for the innermost frame of the calling
// goroutine that belongs to the user. Test files of this module count as the
// user's, as do its examples. Where there is no such frame it returns "".
func userSite() string {
	pcs := make([]uintptr, 64)
	for {
		n := runtime.Callers(2, pcs)
		if n < len(pcs) {
			pcs = pcs[:n]
			break
		}
		pcs = make([]uintptr, 2*len(pcs)) // a deep stack, such as a recursive job function
	}
	frames := runtime.CallersFrames(pcs)
	for {
		frame, more := frames.Next()
		if isUserFrame(frame.Function, frame.File) {
			return position(frame.File, frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// isUserFrame reports whether a frame of that function and file is the user's
// code.
func isUserFrame(function, file string) bool {
	if function == "" || file == "" {
		return false
	}
	if strings.HasSuffix(file, "_test.go") {
		return true
	}
	pkg := packageOf(function)
	if pkg == "runtime" || pkg == "reflect" {
		return false
	}
	rest, ours := strings.CutPrefix(pkg, modulePath+"/")
	if !ours {
		return true
	}
	if rest == commands {
		return false
	}
	top, _, _ := strings.Cut(rest, "/")
	for _, dir := range library {
		if top == dir {
			return false
		}
	}
	return true
}

// packageOf returns the import path of a symbol such as
// "example.com/x.Map[go.shape.struct { example.com/x.A int }].func1". Type
// arguments may hold slashes and dots of their own, so they are cut off first;
// dots in the last element of an import path are escaped in symbols.
func packageOf(symbol string) string {
	if open := strings.IndexByte(symbol, '['); open >= 0 {
		symbol = symbol[:open]
	}
	last := strings.LastIndexByte(symbol, '/') + 1
	if dot := strings.IndexByte(symbol[last:], '.'); dot >= 0 {
		return symbol[:last+dot]
	}
	return symbol
}

// position writes a source position without the directory, which is a path of
// the machine.
func position(file string, line int) string {
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// funcIdentity names the user function fn by symbol and line, such as
// "main.parse main.go:31"; a closure has the line where it begins. A value that
// is no function, such as a struct whose method is called, is named by its
// type. It is the same in every process running the same binary. nil gives "".
func funcIdentity(fn any) string {
	if fn == nil {
		return ""
	}
	v := reflect.ValueOf(fn)
	if v.Kind() != reflect.Func {
		return typeIdentity(v.Type())
	}
	if v.IsNil() {
		return ""
	}
	f := runtime.FuncForPC(v.Pointer())
	if f == nil {
		return v.Type().String()
	}
	symbol := plainSymbol(f.Name())
	file, line := f.FileLine(f.Entry())
	// Method values and wrappers are written by the compiler and have no line.
	if file == "" || strings.HasPrefix(file, "<") {
		return symbol
	}
	return symbol + " " + position(file, line)
}

// typeIdentity names the type of a function object.
func typeIdentity(t reflect.Type) string {
	star := ""
	for t.Kind() == reflect.Pointer {
		t, star = t.Elem(), star+"*"
	}
	if t.Name() == "" || t.PkgPath() == "" {
		return star + t.String()
	}
	return star + t.PkgPath() + "." + plainSymbol(t.Name())
}

// plainSymbol drops type arguments and the mark of a method value from a
// symbol: the linker writes type arguments by shape, which says nothing to a
// reader.
func plainSymbol(symbol string) string {
	var b strings.Builder
	depth := 0
	for _, r := range strings.TrimSuffix(symbol, "-fm") {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// funcIdentities names several functions, in order, separated by commas; nil
// functions are left out.
func funcIdentities(fns ...any) string {
	var names []string
	for _, fn := range fns {
		if name := funcIdentity(fn); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
