package engine

import (
	"fmt"
	"os"
)

// enterDir changes to the working directory of the client, so that relative paths of a job,
// also in user code, mean the same as there. If this machine does not have it, relative paths
// must fail rather than name something else: the process then changes to a directory made
// within scratch, and removes it. In a removed directory the system neither finds nor makes
// files. missing says why the client's directory was not entered.
func enterDir(dir, scratch string) (missing, err error) {
	if missing = os.Chdir(dir); missing == nil {
		return nil, nil
	}
	nowhere, err := os.MkdirTemp(scratch, "nowhere-")
	if err != nil {
		return missing, fmt.Errorf("make a directory: %w", err)
	}
	if err := os.Chdir(nowhere); err != nil {
		return missing, fmt.Errorf("enter a directory: %w", err)
	}
	if err := os.Remove(nowhere); err != nil {
		return missing, fmt.Errorf("leave no directory: %w", err)
	}
	return missing, nil
}
