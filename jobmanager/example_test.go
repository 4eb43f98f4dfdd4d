package jobmanager_test

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager"
)

// The example starts a job manager on a free port of this machine, and calls Overview as a
// client.
func Example() {
	dir, err := os.MkdirTemp("", "jobmanager")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	m, err := jobmanager.New(context.Background(), jobmanager.Config{
		Listen: "127.0.0.1:0", Dir: dir + "/work", TokenFile: dir + "/token", Build: "v1",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	token, err := security.ReadToken(dir + "/token") // a file that only the same user can read
	if err != nil {
		fmt.Println(err)
		return
	}
	cc, err := grpc.NewClient(m.Address(), append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(security.TokenCredentials(token, false)))...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cc.Close()
	overview, err := wire.NewClient(cc).Overview(context.Background(), &wire.OverviewRequest{Version: wire.Version})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("job manager %s: %d task managers, uploads: %v\n", overview.Build, overview.TaskManagers, overview.Uploads)
	// Output:
	// job manager v1: 0 task managers, uploads: true
}
