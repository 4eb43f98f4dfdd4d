package main_test

import (
	"os"
	"testing"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

func TestMain(m *testing.M) { os.Exit(programs.Main(m)) }
