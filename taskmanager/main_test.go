//go:build unix

package taskmanager

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/superstep-ml/superstep/internal/wire"
)

// roleEnv is the environment variable that makes the test binary run as something other than a
// test.
const roleEnv = "TASKMANAGER_TEST_ROLE"

// TestMain runs the tests, unless the test binary was started as a worker by a task manager or
// as a separate task manager.
func TestMain(m *testing.M) {
	if os.Getenv(wire.WorkerEnv) != "" {
		workerMain()
		return
	}
	switch os.Getenv(roleEnv) {
	case "taskmanager":
		if err := Run(context.Background(), Config{
			JobManager: os.Args[1], Dir: os.Args[2], Slots: 2,
			DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
		}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case "mute":
		select {}
	}
	goleak.VerifyTestMain(m)
}
