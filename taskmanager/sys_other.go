//go:build !unix

package taskmanager

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

var errPlatform = errors.New("task managers run on Linux and other kinds of Unix only, as workers need process groups and pipes")

func workerAttr() *syscall.SysProcAttr { return nil }
func onMainThread() bool               { return false }
func awaitEnd(int)                     {}
func isStopped(int) bool               { return false }
func machineMemory() int64             { return 0 }
func memoryKills() int64               { return -1 }
func killGroup(int) error              { return errPlatform }
func lockFile(*os.File) (bool, error)  { return false, errPlatform }
func readable(*os.File) bool           { return false }

func readReady(*os.File, []byte, sync.Locker, func([]byte)) error { return errPlatform }

func busy(error) bool                 { return false }
func endedBy(s *os.ProcessState) Exit { return Exit{Code: s.ExitCode()} }
