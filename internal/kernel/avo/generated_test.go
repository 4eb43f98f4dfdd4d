package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCommittedFilesAreGenerated requires that the files in the package directory equal the
// files that the program writes.
func TestCommittedFilesAreGenerated(t *testing.T) {
	dir := t.TempDir()
	if err := generate(dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s must equal the output of the generator: run go generate in the package", filepath.Base(file))
		}
	}
}

// TestRefusals requires that onlyAVX2 refuses instructions and registers that only AVX-512 or
// FMA has.
func TestRefusals(t *testing.T) {
	for _, line := range []string{"\tVADDPD X16, X1, X2", "\tVADDPD Y1, Y31, Y2", "\tVMOVUPD Z1, (AX)", "\tKMOVQ K1, AX", "\tVFMADD231PD Y1, Y2, Y3", "\tVFNMADD132SD X1, X2, X3"} {
		if onlyAVX2([]byte("TEXT\n"+line+"\n")) == nil {
			t.Errorf("onlyAVX2 must refuse %q", line)
		}
	}
	if err := onlyAVX2([]byte("\tVADDPD Y15, Y1, Y2\n\tKORQ AX, BX\n")); err != nil {
		t.Error(err)
	}
}
