// Command avo writes the AVX2 and AVX-512 forms of the loops of package kernel: the assembly,
// its Go declarations, and declarations for other processors. It is a separate module, so that
// the library does not depend on the packages that generate the assembly.
//
// Every loop computes each of its outputs by the same sequence of operations as the pure Go
// form. Each operation is rounded separately: a multiplication and the following addition are
// two instructions. The lanes of a register always belong to different outputs. Only the filter
// of package kernel uses fused multiply-add, because its scores are not outputs.
//
//	go generate ./internal/kernel
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"regexp"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "..", "directory of package kernel")
	flag.Parse()
	if err := generate(*dir); err != nil {
		log.Fatal(err)
	}
}

// generate writes all files to a directory.
func generate(dir string) error {
	for _, part := range []struct {
		name   string
		fill   func()
		refuse func(assembly []byte) error
	}{
		{"vector", vectors, onlyAVX2},
		{"rows", rows, onlyAVX2},
		{"leaves", leaves, onlyAVX2},
		{"csr", sparseRows, onlyAVX2},
		{"tile", tiles, onlyAVX2},
		{"elementary", avxElementaries, onlyAVX2},
		{"nearest", searches, onlyAVX2},
		{"hist", histograms, onlyAVX2},
		{"slots", slots, onlyAVX2},
		{"wide", wides, notFused},
		{"wideelementary", wideElementaries, notFused},
		{"filter", filters, notFused},
		{"scores", scores, anyRounding},
		{"thresholds", thresholds, notFused},
	} {
		context := build.NewContext()
		use(context)
		context.ConstraintExpr("amd64")
		part.fill()
		if err := write(context, dir, part.name, part.refuse); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// write compiles the functions in context and writes them to name_amd64.s, name_amd64.go and
// name_other.go in dir. It returns the error of check for the assembly, if there is one.
func write(context *build.Context, dir, name string, check func(assembly []byte) error) error {
	file, err := context.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	config := printer.Config{Argv: []string{"go", "generate"}, Pkg: "kernel"}
	assembly, err := printer.NewGoAsm(config).Print(file)
	if err != nil {
		return err
	}
	if err := check(assembly); err != nil {
		return err
	}
	stubs, err := printer.NewStubs(config).Print(file)
	if err != nil {
		return err
	}
	other, err := stubsElsewhere(config, file)
	if err != nil {
		return err
	}
	for suffix, text := range map[string][]byte{"_amd64.s": assembly, "_amd64.go": stubs, "_other.go": other} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

var (
	// beyondAVX2 matches registers that only AVX-512 has. The register allocator uses them when
	// the first sixteen are in use.
	beyondAVX2 = regexp.MustCompile(`\b([XY](1[6-9]|2[0-9]|3[01])|Z[0-9]+|K[0-7])\b`)
	fused      = regexp.MustCompile(`\bVFN?M(ADD|SUB)\w*`)
)

// onlyAVX2 returns an error if the assembly needs more than AVX2, or has fused operations.
func onlyAVX2(assembly []byte) error {
	for i, line := range bytes.Split(assembly, []byte("\n")) {
		if m := beyondAVX2.Find(line); m != nil {
			return fmt.Errorf("line %d needs the register %s, which AVX2 does not have: %s", i+1, m, line)
		}
	}
	return notFused(assembly)
}

// notFused returns an error if the assembly has a fused multiply-add, which rounds once where
// the definition rounds twice.
func notFused(assembly []byte) error {
	if m := fused.Find(assembly); m != nil {
		return fmt.Errorf("the fused instruction %s", m)
	}
	return nil
}

// anyRounding accepts all assembly. It is for the filter, whose rounding errors cannot change a
// result.
func anyRounding([]byte) error { return nil }

// stubsElsewhere returns declarations of the functions for other architectures, where they are
// never called.
func stubsElsewhere(config printer.Config, file *ir.File) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\n//go:build !amd64\n\npackage %s\n", config.GeneratedWarning(), config.Pkg)
	for _, f := range file.Functions() {
		fmt.Fprintf(&b, "\nfunc %s%s { panic(\"kernel: no assembly\") }\n", f.Name, f.Signature.String())
	}
	return format.Source(b.Bytes())
}
